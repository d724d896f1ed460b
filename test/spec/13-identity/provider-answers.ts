// A provider that answers at its userinfo endpoint as it is told, and Microsoft Graph beside it.
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Fetch } from '../../../src/platform/fetch-with-limits.ts';

export interface Answer {
  readonly status?: number;
  readonly type?: string;
  readonly body?: unknown;
}

export interface AnsweringServer {
  readonly url: string;
  /** What it was sent, in order. */
  readonly requests: {
    readonly path: string;
    readonly authorization?: string;
    readonly body: string;
  }[];
  answer: Answer | 'hang up';
  close(): Promise<void>;
}

export async function startAnsweringServer(): Promise<AnsweringServer> {
  const server = createServer(async (req, res) => {
    const { authorization } = req.headers;
    const body = await readText(req);
    started.requests.push({ path: req.url ?? '', ...(authorization && { authorization }), body });
    const { answer } = started;
    if (answer === 'hang up') return void res.destroy();
    const { status = 200, type = 'application/json', body: sent = {} } = answer;
    res.writeHead(status, { 'Content-Type': type });
    res.end(typeof sent === 'string' ? sent : JSON.stringify(sent));
  });
  server.keepAliveTimeout = 0;
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const started: AnsweringServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    answer: {},
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
  return started;
}

async function readText(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** What goes to an https address of the internet arrives at this server, under its host and path. */
export const fetchAt =
  (server: AnsweringServer): Fetch =>
  (url, init) =>
    fetch(url.replace(/^https:\/\//, `${server.url}/`), init);
