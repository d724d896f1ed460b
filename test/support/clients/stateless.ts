// Requests of MCP 2026-07-28, which say in body and headers of which version they are.
import { type ClientRequest, request } from 'node:http';
import type { RpcOptions, TestGateway, TestResponse } from '../gateway/gateway.ts';

export const STATELESS = '2026-07-28';
export const PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion';
export const CLIENT_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
export const CLIENT_INFO = 'io.modelcontextprotocol/clientInfo';
export const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
export const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';

/** What stands in `_meta`, or in the headers, over the request's own: undefined leaves it out. */
export type Overrides<Value> = Readonly<Record<string, Value | undefined>>;

export interface StatelessOptions extends Omit<RpcOptions, 'headers'> {
  readonly id?: string | number;
  readonly meta?: Overrides<unknown>;
  readonly headers?: Overrides<string>;
}

export type Params = Readonly<Record<string, unknown>>;

/** The body of a request, and its headers. */
export function statelessRequest(
  method: string,
  params: Params = {},
  { id = 1, meta, headers }: StatelessOptions = {},
) {
  const claims = {
    [PROTOCOL_VERSION]: STATELESS,
    [CLIENT_INFO]: { name: 'test', version: '1' },
    [CLIENT_CAPABILITIES]: {},
  };
  const all: Overrides<string> = {
    'mcp-protocol-version': STATELESS,
    'mcp-method': method,
    'mcp-name': nameOf(method, params),
    ...headers,
  };
  return {
    message: { jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...claims, ...meta } } },
    headers: Object.fromEntries(
      Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
  };
}

/** POST /mcp with a valid token. */
export function stateless(
  gateway: Pick<TestGateway, 'rpc'>,
  method: string,
  params?: Params,
  options: StatelessOptions = {},
): Promise<TestResponse> {
  const { message, headers } = statelessRequest(method, params, options);
  return gateway.rpc(message, { ...options, headers });
}

/** tools/call over a socket: its response is read, or given up, by the test. */
export async function sendToolCall(
  gateway: Pick<TestGateway, 'listen' | 'baseUrl' | 'issuer'>,
  name: string,
  options?: StatelessOptions,
): Promise<ClientRequest> {
  const { message, headers } = statelessRequest('tools/call', { name }, options);
  const sent = request({
    host: '127.0.0.1',
    port: await gateway.listen(),
    path: '/mcp',
    method: 'POST',
    headers: {
      ...headers,
      host: new URL(gateway.baseUrl).host,
      'content-type': 'application/json',
      authorization: `Bearer ${await gateway.issuer.sign()}`,
    },
  });
  sent.end(JSON.stringify(message));
  return sent;
}

/** tools/call. */
export const callTool = (
  gateway: Pick<TestGateway, 'rpc'>,
  name: string,
  args?: Params,
  options?: StatelessOptions,
): Promise<TestResponse> =>
  stateless(gateway, 'tools/call', { name, ...(args && { arguments: args }) }, options);

/** What a client declares that can be asked anything. */
export const ASKABLE = { [CLIENT_CAPABILITIES]: { elicitation: {}, sampling: {}, roots: {} } };

/** The user filled in the form. */
export const accepted = (content: object) => ({ action: 'accept', content });

/** What a retry has beside the call's own members. */
export interface Retry {
  readonly inputResponses?: unknown;
  readonly requestState?: unknown;
  readonly arguments?: unknown;
}

/** tools/call of a client that can be asked anything: the first time, or again with answers. */
export const askingCall = (
  gateway: Pick<TestGateway, 'rpc'>,
  name: string,
  retry: Retry = {},
  options: StatelessOptions = {},
): Promise<TestResponse> =>
  stateless(
    gateway,
    'tools/call',
    { name, ...retry },
    {
      ...options,
      meta: { ...ASKABLE, ...options.meta },
    },
  );

/** What a client does: is asked, and calls again with its answers and the state that asked. */
export async function answeringCall(
  gateway: Pick<TestGateway, 'rpc'>,
  name: string,
  { inputResponses, ...retry }: Retry,
  options: StatelessOptions = {},
): Promise<TestResponse> {
  const asked = await askingCall(gateway, name, retry, options);
  const { requestState } = asked.json.result;
  return askingCall(gateway, name, { ...retry, inputResponses, requestState }, options);
}

/** As `Mcp-Name` carries what a header cannot. */
export const encoded = (name: string): string =>
  `=?base64?${Buffer.from(name).toString('base64')}?=`;

/** The JSON-RPC messages of an event stream; a line that is none of its format fails the test. */
export const eventsIn = (text: string): readonly Params[] =>
  text
    .split('\n\n')
    .filter((event) => event !== '' && !event.startsWith(':'))
    .map((event) => {
      const data = /^event: message\ndata: (.*)$/.exec(event)?.[1];
      if (data === undefined) throw new Error(`No event: ${event}`);
      return JSON.parse(data);
    });

const SUBJECTS: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

function nameOf(method: string, params: Params): string | undefined {
  const subject = SUBJECTS[method];
  const name = subject && params[subject];
  if (typeof name !== 'string') return undefined;
  return /^[\x21-\x7e]+$/.test(name) ? name : encoded(name);
}
