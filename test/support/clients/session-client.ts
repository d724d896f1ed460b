// A client of the session era that takes streams, against gateways that listen.

import { INITIALIZE_REQUEST, type TestGateway } from '../gateway/gateway.ts';
import { type EventStream, openEvents } from './event-stream.ts';

export interface SessionClient {
  readonly session: string;
  readonly token: string;
  /** POST of any message; resolves at the head of the answer. */
  send(message: object, headers?: Headers): Promise<EventStream>;
  /** A request; resolves to the whole JSON-RPC response, which must be plain JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  ask(method: string, params?: object): Promise<any>;
  /** tools/call; its answer may be a stream. */
  call(name: string, args?: object, how?: CallOptions): Promise<EventStream>;
  /** The answer to a request of the server; resolves to the status. */
  answer(id: unknown, result: unknown): Promise<number>;
  /** notifications/cancelled; resolves to the status. */
  cancel(requestId: unknown): Promise<number>;
  /** GET /mcp. */
  watch(headers?: Headers): Promise<EventStream>;
  /** DELETE /mcp; resolves to the status. */
  end(): Promise<number>;
  /** The same session at another replica. */
  at(other: TestGateway): Promise<SessionClient>;
}

type Headers = Readonly<Record<string, string>>;

export interface CallOptions {
  readonly id?: string | number;
  readonly progressToken?: string | number;
  readonly headers?: Headers;
}

export interface ClientOptions {
  readonly capabilities?: object;
  readonly protocolVersion?: string;
  readonly token?: string;
}

/** What the specification asks of clients. */
export const BOTH_TYPES = 'application/json, text/event-stream';

export async function openClient(
  gateway: TestGateway,
  { capabilities = {}, protocolVersion = '2025-11-25', token }: ClientOptions = {},
): Promise<SessionClient> {
  const mine = token ?? (await gateway.issuer.sign());
  const params = { ...INITIALIZE_REQUEST.params, capabilities, protocolVersion };
  const { headers, text } = await gateway.rpc({ ...INITIALIZE_REQUEST, params }, { token: mine });
  const session = headers['mcp-session-id'];
  if (session === undefined) throw new Error(`initialize answered ${text}`);
  return clientOf(await gateway.listen(), session, mine);
}

/** A client that knows, or pretends to know, the id of a session. */
export function clientOf(port: number, session: string, token: string): SessionClient {
  const own = { authorization: `Bearer ${token}`, 'mcp-session-id': session };

  const send: SessionClient['send'] = (body, headers) =>
    openEvents({ port, body, headers: { ...own, accept: BOTH_TYPES, ...headers } });

  async function statusOf(message: object): Promise<number> {
    const answer = await send({ jsonrpc: '2.0', ...message });
    await answer.text();
    return answer.status;
  }

  return {
    session,
    token,
    send,
    async ask(method, params) {
      const answer = await send({ jsonrpc: '2.0', id: 1, method, ...(params && { params }) });
      if (answer.isStream) throw new Error(`${method} was answered with a stream`);
      return JSON.parse(await answer.text());
    },
    call: (name, args = {}, { id = 1, progressToken, headers } = {}) =>
      send(
        {
          jsonrpc: '2.0',
          id,
          method: 'tools/call',
          params: {
            name,
            arguments: args,
            ...(progressToken !== undefined && { _meta: { progressToken } }),
          },
        },
        headers,
      ),
    answer: (id, result) => statusOf({ id, result }),
    cancel: (requestId) => statusOf({ method: 'notifications/cancelled', params: { requestId } }),
    watch: (headers) =>
      openEvents({
        port,
        method: 'GET',
        headers: { ...own, accept: 'text/event-stream', ...headers },
      }),
    async end() {
      const answer = await openEvents({ port, method: 'DELETE', headers: own });
      await answer.text();
      return answer.status;
    },
    at: async (other) => clientOf(await other.listen(), session, token),
  };
}

/** The result or error of an answer that may be a stream: its last message. */
export async function lastOf(answer: EventStream) {
  return answer.isStream ? (await answer.rest()).at(-1) : JSON.parse(await answer.text());
}
