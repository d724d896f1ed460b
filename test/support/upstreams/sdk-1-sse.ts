// An MCP server of 2024-11-05 on a loopback socket: HTTP+SSE of the official SDK 1.x.
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { listenOnLoopback } from './listen.ts';
import { createSdk1Server } from './sdk-1-tools.ts';
import { createWaits } from './waits.ts';

export interface SseServer {
  readonly url: string;
  /** Sessions whose streams are open. */
  readonly sessions: () => number;
  dropConnections(): void;
  close(): Promise<void>;
}

export async function startSdk1Sse(): Promise<SseServer> {
  const transports = new Map<string, SSEServerTransport>();
  const waits = createWaits();
  const { url, server, close } = await listenOnLoopback(
    async (req, res) => {
      const target = new URL(req.url ?? '/', 'http://localhost');
      if (req.method === 'GET' && target.pathname === '/sse') {
        const transport = new SSEServerTransport('/messages', res);
        transports.set(transport.sessionId, transport);
        res.on('close', () => transports.delete(transport.sessionId));
        await createSdk1Server(waits).connect(transport);
        return;
      }
      const transport = transports.get(target.searchParams.get('sessionId') ?? '');
      if (req.method !== 'POST' || transport === undefined) res.writeHead(404).end();
      else await transport.handlePostMessage(req, res);
    },
    0,
    '/sse',
  );
  return {
    url,
    sessions: () => transports.size,
    dropConnections: () => server.closeAllConnections(),
    close,
  };
}
