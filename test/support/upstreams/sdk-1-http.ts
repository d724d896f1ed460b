// An MCP server with sessions on a loopback socket: the official SDK 1.x as its examples use it.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { listenOnLoopback } from './listen.ts';
import { createSdk1Server } from './sdk-1-tools.ts';
import { createWaits } from './waits.ts';

export interface Sdk1HttpServer {
  readonly url: string;
  readonly port: number;
  /** IDs of the sessions that are open. */
  readonly sessions: () => readonly string[];
  /** Sessions that were ever opened. */
  readonly opened: () => number;
  /** Headers of each request, the newest last. */
  readonly received: readonly {
    readonly method: string;
    readonly headers: IncomingMessage['headers'];
  }[];
  /** Forgets all sessions, as a server does that was started again. */
  forgetSessions(): Promise<void>;
  close(): Promise<void>;
}

export async function startSdk1Http(port = 0): Promise<Sdk1HttpServer> {
  const transports = new Map<string, StreamableHTTPServerTransport>();
  const waits = createWaits();
  const received: { method: string; headers: IncomingMessage['headers'] }[] = [];
  let opened = 0;

  async function openSession(): Promise<StreamableHTTPServerTransport> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized(id) {
        opened += 1;
        transports.set(id, transport);
      },
      onsessionclosed: (id) => void transports.delete(id),
    });
    await createSdk1Server(waits).connect(transport);
    return transport;
  }

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    received.push({ method: req.method ?? '', headers: req.headers });
    const id = req.headers['mcp-session-id'];
    const known = typeof id === 'string' ? transports.get(id) : undefined;
    if (id !== undefined && known === undefined) {
      const error = { code: -32001, message: 'Session not found' };
      res.writeHead(404, { 'content-type': 'application/json' });
      res.end(JSON.stringify({ jsonrpc: '2.0', error, id: null }));
      return;
    }
    await (known ?? (await openSession())).handleRequest(req, res);
  }

  const { close, ...listening } = await listenOnLoopback(
    (req, res) => void handle(req, res).catch(() => res.destroy()),
    port,
  );
  return {
    url: listening.url,
    port: listening.port,
    sessions: () => [...transports.keys()],
    opened: () => opened,
    received,
    async forgetSessions() {
      const lost = [...transports.values()];
      transports.clear();
      for (const transport of lost) await transport.close();
    },
    close,
  };
}
