// The server of echoing-server.mjs by each way in which servers are reached.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { closeAfterTest } from '../lifetimes.ts';
import { answer } from './echoing-server.mjs';
import { listenOnLoopback } from './listen.ts';

export const TRANSPORTS = ['json', 'events', 'stateless', 'sse', 'stdio'] as const;

/** As the configuration file has them. */
export const startEchoingServers = async () => ({
  json: { url: await listen('session', sendJson) },
  events: { url: await listen('session', sendEvent) },
  stateless: { url: await listen('stateless', sendJson) },
  sse: { type: 'sse', url: await listenSse() },
  stdio: {
    command: process.execPath,
    args: [fileURLToPath(new URL('echoing-server.mjs', import.meta.url))],
  },
});

async function listen(
  era: 'session' | 'stateless',
  send: (res: ServerResponse, response: string) => void,
): Promise<string> {
  const server = await listenOnLoopback(async (req, res) => {
    const response = req.method === 'POST' ? answer(await readText(req), era) : undefined;
    if (response === undefined) res.writeHead(req.method === 'POST' ? 202 : 405).end();
    else send(res, response);
  });
  return closeAfterTest(server).url;
}

const sendJson = (res: ServerResponse, response: string): void =>
  void res.writeHead(200, { 'content-type': 'application/json' }).end(response);

const sendEvent = (res: ServerResponse, response: string): void =>
  void res.writeHead(200, { 'content-type': 'text/event-stream' }).end(toEvent(response));

const toEvent = (response: string): string =>
  `event: message\n${response
    .split(/[\r\n]/)
    .map((line) => `data: ${line}\n`)
    .join('')}\n`;

async function listenSse(): Promise<string> {
  const streams: ServerResponse[] = [];
  const server = await listenOnLoopback(
    async (req, res) => {
      if (req.method === 'GET') {
        const count = streams.push(res.writeHead(200, { 'content-type': 'text/event-stream' }));
        res.write(`event: endpoint\ndata: /messages/${count - 1}\n\n`);
        return;
      }
      const response = answer(await readText(req));
      res.writeHead(202).end();
      const stream = streams[Number(req.url?.split('/').at(-1))];
      if (response !== undefined) stream?.write(toEvent(response));
    },
    0,
    '/sse',
  );
  return closeAfterTest(server).url;
}

async function readText(req: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of req.setEncoding('utf8')) text += piece;
  return text;
}
