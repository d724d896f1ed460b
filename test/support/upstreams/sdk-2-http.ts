// An MCP server without sessions on a loopback socket: the official SDK 2.x as its examples use it.
import type { IncomingMessage } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { listenOnLoopback } from './listen.ts';
import { createSdk2Server } from './sdk-2-tools.ts';
import { createWaits } from './waits.ts';

export interface Sdk2HttpServer {
  readonly url: string;
  readonly port: number;
  /** Headers of each request, the newest last. */
  readonly received: readonly {
    readonly method: string;
    readonly headers: IncomingMessage['headers'];
  }[];
  close(): Promise<void>;
}

export async function startSdk2Http(port = 0): Promise<Sdk2HttpServer> {
  const waits = createWaits();
  const received: { method: string; headers: IncomingMessage['headers'] }[] = [];
  const handler = createMcpHandler(
    () =>
      createSdk2Server(waits, {
        toolsChanged: () => handler.notify.toolsChanged(),
        resourceUpdated: (uri) => handler.notify.resourceUpdated(uri),
      }),
    { legacy: 'reject' },
  );
  const handle = toNodeHandler(handler);
  const { server: _server, ...listening } = await listenOnLoopback((req, res) => {
    received.push({ method: req.method ?? '', headers: req.headers });
    void handle(Object.assign(req, { method: req.method ?? '', url: req.url ?? '' }), res);
  }, port);
  return { ...listening, received };
}
