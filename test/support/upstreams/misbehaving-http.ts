// An MCP server over HTTP, of either era or over HTTP+SSE, that is told who calls, and does wrong to one user what a test wants.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JsonObject } from '../../../src/platform/json.ts';
import { type ListeningServer, listenOnLoopback } from './listen.ts';

export type HttpKind = 'session' | 'stateless' | 'sse';

export interface MisbehavingHttp extends Pick<ListeningServer, 'url' | 'close'> {
  /** From now on, to this user. */
  misbehave(sub: string, way: HttpWay): void;
  /** Requests of this user so far. */
  count(sub: string): number;
}

/** One request, and what can be done with it. */
interface Exchange {
  readonly message: JsonObject;
  refuse(status: number): void;
  /** A result, or an error of JSON-RPC. */
  answer(members: JsonObject): void;
  /** Text of an event stream, in front of the answer; false while it is not read. */
  write(text: string): boolean;
  /** Calls back once it is read again, and again until the connection ends. */
  repeat(step: () => void): void;
  dropConnection(): void;
}

type Misbehave = (exchange: Exchange) => void;

const isCall = ({ message }: Exchange) => message.method === 'tools/call';
const toEvent = (message: JsonObject) => `event: message\ndata: ${JSON.stringify(message)}\n\n`;
const refuseWith =
  (status: number): Misbehave =>
  ({ refuse }) =>
    refuse(status);
/** What is wrong with calls alone. */
const inCalls =
  (misbehave: Misbehave): Misbehave =>
  (exchange) =>
    isCall(exchange) ? misbehave(exchange) : behave(exchange);

const NOTIFICATION = toEvent({
  jsonrpc: '2.0',
  method: 'notifications/message',
  params: { level: 'info', data: 'again' },
});

const WAYS = {
  'answers 401': refuseWith(401),
  'answers 403': refuseWith(403),
  'answers 500 to calls': inCalls(refuseWith(500)),
  'answers 503 to calls': inCalls(refuseWith(503)),
  'answers 504': refuseWith(504),
  'redirects calls': inCalls(refuseWith(307)),
  'does not answer calls': inCalls(() => {}),
  'drops the connection of calls': inCalls(({ dropConnection }) => dropConnection()),
  'floods with notifications': inCalls(({ write, repeat }) =>
    repeat(() => {
      for (let count = 0; count < 100 && write(NOTIFICATION); count += 1);
    }),
  ),
  'begins a giant answer': inCalls(({ write, repeat }) => {
    write('event: message\ndata: {"jsonrpc":"2.0","result":{"text":"');
    repeat(() => write('x'.repeat(65_536)));
  }),
  'streams for ever': inCalls(({ write, repeat }) => repeat(() => write(': still there\n\n'))),
  'answers byte by byte': inCalls(({ write, repeat }) => {
    write('event: message\ndata: ');
    repeat(() => write('x'));
  }),
  'lists what is no list': (exchange) =>
    exchange.message.method === 'tools/list'
      ? exchange.answer({ result: { ...COMPLETE, tools: 'none' } })
      : behave(exchange),
  'lists what is no JSON': (exchange) => {
    if (exchange.message.method === 'tools/list')
      exchange.write('event: message\ndata: {nonsense\n\n');
    else behave(exchange);
  },
  /** What is right, and takes long to read. */
  'answers at length': inCalls(({ answer }) =>
    answer({ result: { ...COMPLETE, content: [{ type: 'text', text: 'x'.repeat(6_000_000) }] } }),
  ),
  'asks nonsense': inCalls(({ write }) => {
    write(toEvent({ jsonrpc: '2.0', id: 'a', method: 'elicitation/create', params: 'nothing' }));
    write(toEvent({ jsonrpc: '2.0', id: 'b', method: 'no/such', params: {} }));
  }),
} as const satisfies Readonly<Record<string, Misbehave>>;

export type HttpWay = keyof typeof WAYS;
export const HTTP_WAYS = Object.keys(WAYS) as readonly HttpWay[];

const COMPLETE = { resultType: 'complete' };

const RESULTS: Readonly<Record<string, JsonObject>> = {
  'server/discover': { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } },
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'misbehaving', version: '1' },
  },
  'tools/list': { tools: [{ name: 't', inputSchema: { type: 'object' } }] },
  'tools/call': { content: [{ type: 'text', text: 'as ever' }] },
};

function behave({ message, answer }: Exchange): void {
  const result = RESULTS[String(message.method)];
  answer(
    result === undefined
      ? { error: { code: -32601, message: 'Method not found' } }
      : { result: { ...COMPLETE, ...result } },
  );
}

export async function startMisbehavingHttp(kind: HttpKind): Promise<MisbehavingHttp> {
  const ways = new Map<string, HttpWay>();
  const requests: string[] = [];
  const streams = new Map<string, ServerResponse>();

  const judge = (sub: string): Misbehave => {
    const way = ways.get(sub);
    return way === undefined ? behave : WAYS[way];
  };

  /** HTTP+SSE: all answers come on the stream. */
  function openStream(res: ServerResponse, sub: string): void {
    const id = String(streams.size);
    streams.set(id, res);
    const open = () => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write(`event: endpoint\ndata: /messages?id=${id}\n\n`);
    };
    const exchange = createExchange({}, res, res);
    judge(sub)({ ...exchange, answer: open, write: () => false, repeat: () => {} });
    if (!res.headersSent) open();
  }

  function createExchange(message: JsonObject, res: ServerResponse, out: ServerResponse): Exchange {
    const write = (text: string): boolean => {
      if (!out.headersSent) out.writeHead(200, { 'content-type': 'text/event-stream' });
      return out.write(text);
    };
    const repeat = (step: () => void): void => {
      if (out.destroyed) return;
      step();
      if (out.writableNeedDrain) out.once('drain', () => repeat(step));
      else setImmediate(() => repeat(step));
    };
    return {
      message,
      refuse: (status) => void res.writeHead(status, { location: '/elsewhere' }).end(),
      answer(members) {
        const text = toEvent({ jsonrpc: '2.0', id: message.id, ...members });
        write(text);
        if (out === res) res.end();
      },
      write,
      repeat,
      dropConnection: () => void out.destroy(),
    };
  }

  async function receive(req: IncomingMessage, res: ServerResponse, sub: string): Promise<void> {
    let text = '';
    for await (const chunk of req) text += chunk;
    const message: JsonObject = text === '' ? {} : JSON.parse(text);
    const stream = streams.get(
      new URL(req.url ?? '/', 'http://localhost').searchParams.get('id') ?? '',
    );
    if (message.id === undefined) {
      res.writeHead(202).end();
      return;
    }
    if (message.method === 'initialize') res.setHeader('mcp-session-id', `of-${sub}`);
    if (kind !== 'stateless' && message.method === 'server/discover') {
      res.writeHead(400).end();
      return;
    }
    const exchange = createExchange(message, res, stream ?? res);
    judge(sub)(exchange);
    if (stream !== undefined && !res.headersSent) res.writeHead(202).end();
  }

  const server = await listenOnLoopback(
    (req, res) => {
      const sub = readSubject(req);
      requests.push(sub);
      if (req.method === 'POST') void receive(req, res, sub);
      else if (req.method === 'GET' && kind === 'sse') openStream(res, sub);
      else res.writeHead(req.method === 'DELETE' ? 202 : 405).end();
    },
    0,
    kind === 'sse' ? '/sse' : '/mcp',
  );
  return {
    url: server.url,
    close: server.close,
    misbehave: (sub, way) => void ways.set(sub, way),
    count: (sub) => requests.filter((one) => one === sub).length,
  };
}

/** Of the gateway's own token (`identity`); empty where there is none. */
function readSubject({ headers }: IncomingMessage): string {
  const [, claims] = headers.authorization?.split('.') ?? [];
  return claims === undefined ? '' : JSON.parse(Buffer.from(claims, 'base64url').toString()).sub;
}
