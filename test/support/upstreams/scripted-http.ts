// An MCP server on a loopback socket that answers each method as a test wants it, right or wrong.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { JsonObject } from '../../../src/platform/json.ts';
import { type ListeningServer, listenOnLoopback } from './listen.ts';

export interface ScriptedRequest {
  /** GET, POST or DELETE. */
  readonly http: string;
  readonly headers: IncomingHttpHeaders;
  /** The JSON-RPC message; empty where there is none. */
  readonly message: JsonObject;
  /** As it came. */
  readonly text: string;
}

export type Respond = (res: ServerResponse, request: ScriptedRequest) => void;

export interface ScriptedHttp extends Pick<ListeningServer, 'url' | 'port' | 'server' | 'close'> {
  readonly received: readonly ScriptedRequest[];
  /** Answers a method from now on; `GET` and `DELETE` are methods, too. */
  answer(method: string, respond: Respond): void;
  /** Is another server from now on, at the same address. */
  become(era: keyof typeof DEFAULTS): void;
  /** How often a method has come. */
  count(method: string): number;
}

export const sendJson = (res: ServerResponse, value: unknown, status = 200): void =>
  void res
    .writeHead(status, { 'content-type': 'application/json' })
    .end(typeof value === 'string' ? value : JSON.stringify(value));

export const toResult = ({ message }: ScriptedRequest, result: JsonObject): JsonObject => ({
  jsonrpc: '2.0',
  id: message.id,
  result,
});

export const toError = ({ message }: ScriptedRequest, code: number, text: string): JsonObject => ({
  jsonrpc: '2.0',
  id: message.id ?? null,
  error: { code, message: text },
});

export const toEvent = (value: unknown): string =>
  `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;

/** A stream that begins with these events; it goes on until the test ends it. */
export const startEvents = (res: ServerResponse, ...events: readonly unknown[]): ServerResponse => {
  res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  for (const event of events) res.write(toEvent(event));
  return res;
};

const DEFAULTS = {
  session: {
    'server/discover': (res, request) => sendJson(res, toError(request, -32600, 'Bad'), 400),
    initialize(res, request) {
      res.setHeader('mcp-session-id', `session-${++sessions}`);
      const serverInfo = { name: 'raw', version: '1' };
      const result = { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
      sendJson(res, toResult(request, result));
    },
  },
  stateless: {
    'server/discover'(res, request) {
      const supportedVersions = ['2026-07-28'];
      const result = { resultType: 'complete', supportedVersions, capabilities: { tools: {} } };
      sendJson(res, toResult(request, result));
    },
  },
} as const satisfies Record<string, Readonly<Record<string, Respond>>>;

let sessions = 0;

const respondByDefault: Respond = (res, request) => {
  if (request.http === 'GET') res.writeHead(405).end();
  else if (request.http === 'DELETE' || request.message.id === undefined) res.writeHead(202).end();
  else sendJson(res, toResult(request, { content: [] }));
};

async function read(req: IncomingMessage): Promise<ScriptedRequest> {
  let body = '';
  for await (const chunk of req) body += chunk;
  const { method: http = '', headers } = req;
  return { http, headers, message: body === '' ? {} : JSON.parse(body), text: body };
}

const nameMethod = ({ http, message }: ScriptedRequest): string =>
  typeof message.method === 'string' ? message.method : http === 'POST' ? 'response' : http;

export async function startScriptedHttp(
  era: keyof typeof DEFAULTS,
  given: {
    readonly port?: number;
    readonly tls?: { readonly key: string; readonly cert: string };
  } = {},
): Promise<ScriptedHttp> {
  let answers = new Map<string, Respond>(Object.entries(DEFAULTS[era]));
  const received: ScriptedRequest[] = [];
  const listening = await listenOnLoopback(
    async (req, res) => {
      const request = await read(req);
      received.push(request);
      (answers.get(nameMethod(request)) ?? respondByDefault)(res, request);
    },
    given.port,
    '/mcp',
    given.tls,
  );
  return {
    ...listening,
    received,
    answer: (method, respond) => void answers.set(method, respond),
    become(other) {
      answers = new Map(Object.entries(DEFAULTS[other]));
    },
    count: (method) => received.filter((request) => nameMethod(request) === method).length,
  };
}
