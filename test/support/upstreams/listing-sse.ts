// A server of 2024-11-05 (HTTP+SSE) that says of itself, and lists, what a test says.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { closeAfterTest } from '../lifetimes.ts';
import { listenOnLoopback } from './listen.ts';

export interface SseListing {
  readonly tools: readonly unknown[];
  /** Capabilities and instructions, by the headers of the request. */
  describe(headers: IncomingMessage['headers']): object;
  /** Gets the stream of a `tools/call`, which has no answer otherwise. */
  onCall?(stream: ServerResponse, message: SseMessage): void;
  /** The status that refuses a message; undefined to accept it. */
  refuse?(message: SseMessage): number | undefined;
}

interface SseMessage {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly arguments?: Readonly<Record<string, unknown>> };
}

/** Closed once the test has ended. */
export async function serveSse(listing: SseListing): Promise<{ readonly url: string }> {
  const streams = new Map<string, ServerResponse>();
  const results: Readonly<Record<string, (headers: IncomingMessage['headers']) => object>> = {
    initialize: (headers) => ({
      protocolVersion: '2024-11-05',
      serverInfo: { name: 'sse', version: '1' },
      ...listing.describe(headers),
    }),
    'tools/list': () => ({ tools: listing.tools }),
  };

  function openStream(res: ServerResponse): void {
    const id = String(streams.size);
    streams.set(id, res);
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write(`event: endpoint\ndata: /messages?id=${id}\n\n`);
  }

  async function receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of req) text += chunk;
    const message: SseMessage = JSON.parse(text);
    const { id, method } = message;
    const refused = listing.refuse?.(message);
    res.writeHead(refused ?? 202).end();
    if (id === undefined || refused !== undefined) return;
    const stream = streams.get(
      new URL(req.url ?? '/', 'http://localhost').searchParams.get('id') ?? '',
    );
    if (stream !== undefined && method === 'tools/call' && listing.onCall !== undefined) {
      listing.onCall(stream, message);
      return;
    }
    const result = results[method]?.(req.headers);
    const answer = result ? { result } : { error: { code: -32601, message: 'Method not found' } };
    stream?.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n\n`);
  }

  const server = await listenOnLoopback(
    (req, res) => {
      if (req.method === 'GET') openStream(res);
      else void receive(req, res);
    },
    0,
    '/sse',
  );
  return closeAfterTest(server);
}
