// An MCP server with sessions on a loopback socket: the official SDK 1.x as its examples use it.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { LoggingMessageNotification } from '@modelcontextprotocol/sdk/types.js';
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
  /** Calls of `wait` that have begun. */
  begunWaits(): number;
  /** Whether the stream of the session (GET) is open. */
  isStreaming(session: string): boolean;
  /** Writes a log message that belongs to no call. */
  log(session: string, params: LoggingMessageNotification['params']): Promise<void>;
  /** Forgets all sessions, as a server does that was started again. */
  forgetSessions(): Promise<void>;
  close(): Promise<void>;
}

export async function startSdk1Http(port = 0): Promise<Sdk1HttpServer> {
  const transports = new Map<string, StreamableHTTPServerTransport>();
  const servers = new Map<string, McpServer>();
  const streaming = new Set<string>();
  const waits = createWaits();
  const received: { method: string; headers: IncomingMessage['headers'] }[] = [];
  let opened = 0;

  async function openSession(): Promise<StreamableHTTPServerTransport> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized(id) {
        opened += 1;
        transports.set(id, transport);
        servers.set(id, server);
      },
      onsessionclosed: (id) => void transports.delete(id),
    });
    const server = createSdk1Server(waits);
    await server.connect(transport);
    return transport;
  }

  /** The SDK has the stream once it has written the head of its answer. */
  function noteStream(id: string, res: ServerResponse): void {
    const { writeHead } = res;
    res.writeHead = function noteHead(...args: Parameters<typeof writeHead>) {
      if (args[0] === 200) {
        streaming.add(id);
        void once(res, 'close').then(() => streaming.delete(id));
      }
      return writeHead.apply(res, args);
    } as typeof writeHead;
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
    if (req.method === 'GET' && typeof id === 'string') noteStream(id, res);
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
    begunWaits: () => waits.count().started,
    isStreaming: (session) => streaming.has(session),
    log: async (session, params) => servers.get(session)?.sendLoggingMessage(params),
    async forgetSessions() {
      const lost = [...transports.values()];
      transports.clear();
      for (const transport of lost) await transport.close();
    },
    close,
  };
}
