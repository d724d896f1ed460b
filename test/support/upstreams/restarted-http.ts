// A server of the session era that can be started anew at the same address: it then says of the sessions that it had what a test wants.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JsonObject } from '../../../src/platform/json.ts';
import { type ListeningServer, listenOnLoopback } from './listen.ts';

/** What came in a session, or without one. */
export interface RestartedRequest {
  readonly method: string;
  readonly params: JsonObject;
  readonly session: string | undefined;
  /** Whether it was carried out. */
  readonly isDone: boolean;
}

type Refuse = (res: ServerResponse, message: JsonObject) => void;

const refuseWith =
  (status: number, body = '', headers: Readonly<Record<string, string>> = {}): Refuse =>
  (res) =>
    void res.writeHead(status, headers).end(body);

const sendJson = (res: ServerResponse, value: object, status = 200): void =>
  void res
    .writeHead(status, { 'content-type': 'application/json' })
    .end(JSON.stringify({ jsonrpc: '2.0', ...value }));

const toError = (message: string) => ({ code: -32000, message });

/** How servers say that they do not know a session. */
export const LOSSES = {
  '401 with a text': refuseWith(401, 'Unauthorized: Session not found'),
  '401 with a challenge': refuseWith(401, '', { 'www-authenticate': 'Bearer realm="mcp"' }),
  '401 without a word': refuseWith(401),
  '410': refuseWith(410),
  '400 with a text': refuseWith(400, 'Unknown session'),
  '400 with the id of the request': (res, { id }) =>
    sendJson(res, { id, error: toError('Unknown session') }, 400),
  '503': refuseWith(503),
  '200 with an error that speaks of the session': (res, { id }) =>
    sendJson(res, { id, error: toError('The session has expired') }),
} as const satisfies Readonly<Record<string, Refuse>>;

export type Loss = keyof typeof LOSSES;
export const LOSS_WAYS = Object.keys(LOSSES) as readonly Loss[];

export interface RestartedHttp extends Pick<ListeningServer, 'url' | 'close'> {
  /** Oldest first. */
  readonly received: readonly RestartedRequest[];
  count(method: string): number;
  /** Loses its sessions and connections, and says so from now on in this way. */
  restart(loss: Refuse): void;
  /** Loses its sessions, whose streams stay open, as one that has expired behind a balancer. */
  forgetSessions(loss: Refuse): void;
  /** Loses one session alone. */
  lose(session: string | undefined, loss: Refuse): void;
  /** Answers this method in each session as it likes from now on, the handshake included; undefined for as before. */
  refuse(method: string, refuse: Refuse | undefined): void;
  /** GET streams that stand, by their session. */
  listStreams(): readonly string[];
}

export async function startRestartedHttp(protocolVersion = '2025-11-25'): Promise<RestartedHttp> {
  const sessions = new Set<string>();
  const streams = new Map<string, ServerResponse>();
  const received: RestartedRequest[] = [];
  const refusals = new Map<string, Refuse>();
  let refuseUnknown: Refuse = refuseWith(404);
  let lastSession = 0;

  function initialize(res: ServerResponse, id: unknown): void {
    lastSession += 1;
    const session = `session-${lastSession}`;
    sessions.add(session);
    res.setHeader('mcp-session-id', session);
    const capabilities = {
      tools: { listChanged: true },
      resources: { subscribe: true },
      logging: {},
    };
    const serverInfo = { name: 'restarted', version: '1' };
    sendJson(res, { id, result: { protocolVersion, capabilities, serverInfo } });
  }

  function openStream(res: ServerResponse, session: string): void {
    streams.set(session, res);
    res.on('close', () => streams.delete(session));
    res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  }

  function carryOut(res: ServerResponse, message: JsonObject, session: string): void {
    const { id, method } = message;
    if (method === 'GET') openStream(res, session);
    else if (method === 'DELETE') {
      sessions.delete(session);
      res.writeHead(204).end();
    } else if (id === undefined) res.writeHead(202).end();
    else sendJson(res, { id, result: RESULTS[String(method)] ?? {} });
  }

  function answer(res: ServerResponse, message: JsonObject, session: string | undefined): void {
    const { id, method } = message;
    const refuse = refusals.get(String(method));
    const isKnown = session !== undefined && sessions.has(session);
    const { params } = message;
    received.push({
      method: String(method),
      params: typeof params === 'object' && params !== null ? { ...params } : {},
      session,
      isDone: isKnown && refuse === undefined,
    });
    if (method === 'server/discover') {
      sendJson(res, { id, error: { code: -32601, message: 'Method not found' } });
    } else if (refuse !== undefined) refuse(res, message);
    else if (method === 'initialize') initialize(res, id);
    else if (isKnown) carryOut(res, message, session);
    else refuseUnknown(res, message);
  }

  function forgetSessions(loss: Refuse): void {
    refuseUnknown = loss;
    sessions.clear();
  }

  const server = await listenOnLoopback(async (req, res) => {
    const text = await read(req);
    const message: JsonObject = text === '' ? { method: req.method } : JSON.parse(text);
    const session = req.headers['mcp-session-id'];
    answer(res, message, typeof session === 'string' ? session : undefined);
  });

  return {
    url: server.url,
    close: server.close,
    received,
    count: (method) => received.filter((request) => request.method === method).length,
    forgetSessions,
    restart(loss) {
      forgetSessions(loss);
      for (const stream of streams.values()) stream.destroy();
    },
    lose(session, loss) {
      refuseUnknown = loss;
      sessions.delete(String(session));
      streams.get(String(session))?.destroy();
    },
    refuse(method, refuse) {
      if (refuse === undefined) refusals.delete(method);
      else refusals.set(method, refuse);
    },
    listStreams: () => [...streams.keys()],
  };
}

const RESULTS: Readonly<Record<string, JsonObject>> = {
  'tools/list': { tools: [{ name: 'do', inputSchema: { type: 'object' } }] },
  'tools/call': { content: [{ type: 'text', text: 'done' }] },
  'resources/list': { resources: [{ uri: 'a://1', name: 'one' }] },
  'resources/templates/list': { resourceTemplates: [] },
  'resources/read': { contents: [{ uri: 'a://1', text: 'one' }] },
};

async function read(req: IncomingMessage): Promise<string> {
  let text = '';
  for await (const piece of req.setEncoding('utf8')) text += piece;
  return text;
}
