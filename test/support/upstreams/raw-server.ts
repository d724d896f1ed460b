// A server of the session era whose calls are answered by the test, byte by byte where it likes.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ListeningServer, listenOnLoopback } from './listen.ts';

/** `id` is that of the call. */
export type RawAnswer = (res: ServerResponse, id: number, message: RawCall) => void;

export interface RawCall {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

const INITIALIZED = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'raw', version: '1' },
};

const ANY_TOOL = { name: 'any', inputSchema: { type: 'object' } };

export const startRawServer = (answer: RawAnswer): Promise<ListeningServer> =>
  listenOnLoopback((req, res) => {
    void readBody(req).then((text) => {
      const message = text === '' ? {} : JSON.parse(text);
      const { id, method } = message;
      if (id === undefined) res.writeHead(202).end();
      else if (method === 'initialize') sendJson(res, { id, result: INITIALIZED });
      else if (method === 'tools/list') sendJson(res, { id, result: { tools: [ANY_TOOL] } });
      else if (method === 'tools/call') answer(res, id, message);
      else sendJson(res, { id, error: { code: -32601, message: 'Unknown method' } });
    });
  });

export function sendJson(res: ServerResponse, message: object): void {
  res.writeHead(200, { 'content-type': 'application/json' });
  res.end(JSON.stringify({ jsonrpc: '2.0', ...message }));
}

/** Each message when it is said; the answer ends with the one that has the id of the call. */
export function openStream(res: ServerResponse, id: number): (message: object) => void {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  return function say(message) {
    res.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
    if ('id' in message && message.id === id) res.end();
  };
}

async function readBody(req: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of req.setEncoding('utf8')) text += piece;
  return text;
}
