// An MCP server of the session era on a loopback socket that lists, and answers, whatever a test says.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JsonObject } from '../../../src/platform/json.ts';
import { closeAfterTest } from '../lifetimes.ts';
import { type ListeningServer, listenOnLoopback } from './listen.ts';

export interface Listing {
  tools: readonly unknown[];
  prompts: readonly unknown[];
  resources: readonly unknown[];
  resourceTemplates: readonly unknown[];
  instructions?: string;
  capabilities: JsonObject;
  /** In place of the own answer: `result`, `error`, or a promise of either. */
  answers: Readonly<
    Record<string, (params: JsonObject, headers: IncomingMessage['headers']) => unknown>
  >;
}

export interface ListingServer {
  readonly url: string;
  readonly port: number;
  /** May be changed at any time. */
  readonly listing: Listing;
  /** Requests so far, by method. */
  readonly requests: readonly { readonly method: string; readonly params: JsonObject }[];
  count(method: string): number;
  /** To the stream of the gateway, and those of clients, that are open. */
  notify(method: string, params?: object): void;
  openStreams(): number;
  /** Sessions that were ended by DELETE. */
  deletions(): number;
  close(): Promise<void>;
}

export const buildTool = (name: string, members: object = {}) => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: 'object' },
  ...members,
});

export async function startListingServer(
  given: Partial<Listing> = {},
  port = 0,
): Promise<ListingServer> {
  const listing: Listing = {
    tools: [],
    prompts: [],
    resources: [],
    resourceTemplates: [],
    capabilities: { tools: {}, prompts: {}, resources: {}, completions: {} },
    answers: {},
    ...given,
  };
  const requests: { method: string; params: JsonObject }[] = [];
  const streams = new Set<ServerResponse>();
  let deletions = 0;

  const ownAnswers: Readonly<Record<string, (params: JsonObject) => unknown>> = {
    initialize: ({ protocolVersion }) => ({
      result: {
        protocolVersion,
        capabilities: listing.capabilities,
        serverInfo: { name: 'listing', version: '1' },
        ...(listing.instructions !== undefined && { instructions: listing.instructions }),
      },
    }),
    ping: () => ({ result: {} }),
    'tools/list': () => ({ result: { tools: listing.tools } }),
    'prompts/list': () => ({ result: { prompts: listing.prompts } }),
    'resources/list': () => ({ result: { resources: listing.resources } }),
    'resources/templates/list': () => ({
      result: { resourceTemplates: listing.resourceTemplates },
    }),
    'tools/call': ({ name }) => ({ result: { content: [{ type: 'text', text: `ran ${name}` }] } }),
    'prompts/get': ({ name }) => ({
      result: { messages: [{ role: 'user', content: { type: 'text', text: `got ${name}` } }] },
    }),
    'resources/read': ({ uri }) => ({ result: { contents: [{ uri, text: `read ${uri}` }] } }),
    'resources/subscribe': () => ({ result: {} }),
    'resources/unsubscribe': () => ({ result: {} }),
    'completion/complete': ({ ref }) => ({
      result: { completion: { values: [JSON.stringify(ref)] } },
    }),
  };

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    if (req.method === 'GET') return openStream(res);
    if (req.method === 'DELETE') deletions += 1;
    if (req.method !== 'POST') return void res.writeHead(405).end();
    let text = '';
    for await (const chunk of req) text += chunk;
    const { id, method, params = {} } = JSON.parse(text);
    if (id === undefined) return void res.writeHead(202).end();
    requests.push({ method, params });
    const answer = listing.answers[method] ?? ownAnswers[method];
    const outcome = (await answer?.(params, req.headers)) ?? {
      error: { code: -32601, message: 'Method not found' },
    };
    res.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'the-session' });
    res.end(JSON.stringify({ jsonrpc: '2.0', id, ...(outcome as object) }));
  }

  function openStream(res: ServerResponse): void {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.flushHeaders();
    streams.add(res);
    res.on('close', () => streams.delete(res));
  }

  const { close, ...listening }: ListeningServer = await listenOnLoopback(
    (req, res) => void handle(req, res).catch(() => res.destroy()),
    port,
  );
  return {
    url: listening.url,
    port: listening.port,
    listing,
    requests,
    count: (method) => requests.filter((one) => one.method === method).length,
    notify(method, params = {}) {
      const data = JSON.stringify({ jsonrpc: '2.0', method, params });
      for (const res of streams) res.write(`event: message\ndata: ${data}\n\n`);
    },
    openStreams: () => streams.size,
    deletions: () => deletions,
    close,
  };
}

/** Closed once the test has ended. */
export const serveForTest = async (
  listing: Partial<Listing> = {},
  port = 0,
): Promise<ListingServer> => closeAfterTest(await startListingServer(listing, port));
