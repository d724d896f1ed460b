import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'light-my-request';
import type { Config } from '../../../src/config/config.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { createGateway, type Deps, type Gateway } from '../../../src/gateway/gateway.ts';
import { specCatalog } from '../catalogs/spec-catalog.ts';
import { type Issuer, startIssuer } from '../oauth/issuer.ts';
import { collectLog, type LogLine } from './log.ts';
import { noInternet } from './no-internet.ts';

export interface TestRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON, a URLSearchParams as a form, a string as it is. */
  readonly body?: unknown;
  readonly remoteAddress?: string;
}

export interface TestResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
  /** The body as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly json: any;
}

export interface TestGateway {
  readonly baseUrl: string;
  readonly issuer: Issuer;
  readonly gateway: Gateway;
  /** Parsed log lines so far. */
  readonly log: readonly LogLine[];
  /** Listens on a free loopback port; resolves to it. */
  listen(): Promise<number>;
  request(request: TestRequest): Promise<TestResponse>;
  /** POST /mcp with a valid token of `sub` and, where given, a session. */
  rpc(message: unknown, options?: RpcOptions): Promise<TestResponse>;
  /** A JSON-RPC call in a session; id 1. */
  call(session: string, method: string, params?: unknown): Promise<TestResponse>;
  /** initialize; resolves to the session id. */
  open(options?: RpcOptions): Promise<string>;
  close(): Promise<void>;
}

export interface RpcOptions {
  readonly session?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface TestOptions {
  /** Environment variables over the tests' own. */
  readonly env?: Readonly<Record<string, string>>;
  readonly deps?: Partial<Deps>;
}

export const INITIALIZE_REQUEST = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  },
};

export const BASE_URL = 'http://localhost:3000';

/** With port 0, which the settings refuse: the system picks a free one. */
export const onFreePort = (config: Config): Config => ({
  ...config,
  server: { ...config.server, port: 0 },
});

/** A gateway with a real issuer and a real embedded store in a folder of its own. */
export async function startGateway({
  env = {},
  deps = {},
}: TestOptions = {}): Promise<TestGateway> {
  const issuer = await startIssuer({ ...(deps.clock && { clock: deps.clock }) });
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-test-'));
  const { log, lines } = collectLog();
  const config = loadConfig({
    BASE_URL,
    HOST: '127.0.0.1',
    DATA_DIR: dataDir,
    OIDC_ISSUER: issuer.url,
    METRICS_ENABLED: 'true',
    LOG_LEVEL: 'debug',
    MCP_RATE_LIMIT_MAX: '10000',
    OAUTH_AUTHORIZE_RATE_LIMIT_MAX: '10000',
    DCR_RATE_LIMIT_MAX: '10000',
    // The default, and meant: nobody has to be able to log in.
    OAUTH_MODE: 'proxy',
    ...env,
  });
  let listening: Promise<number> | undefined;
  const gateway = await createGateway(onFreePort(config), {
    log,
    catalog: specCatalog,
    network: noInternet,
    ...deps,
  });

  async function request({ method = 'GET', path, headers = {}, body, remoteAddress }: TestRequest) {
    const { payload, type } = encode(body);
    const answer = await inject(gateway.handler, {
      // light-my-request knows the common methods only by type.
      method: method as 'GET',
      url: path,
      headers: { host: new URL(config.server.baseUrl).host, ...type, ...headers },
      ...(payload !== undefined && { payload }),
      ...(remoteAddress !== undefined && { remoteAddress }),
    });
    return {
      status: answer.statusCode,
      headers: answer.headers as TestResponse['headers'],
      text: answer.payload,
      get json() {
        return JSON.parse(answer.payload);
      },
    };
  }

  async function rpc(message: unknown, { session, token, headers }: RpcOptions = {}) {
    return request({
      method: 'POST',
      path: '/mcp',
      body: message,
      headers: {
        authorization: `Bearer ${token ?? (await issuer.sign())}`,
        ...(session !== undefined && { 'mcp-session-id': session }),
        ...headers,
      },
    });
  }

  return {
    baseUrl: config.server.baseUrl,
    issuer,
    gateway,
    log: lines,
    listen: () => (listening ??= gateway.listen()),
    request,
    rpc,
    call: (session, method, params) =>
      rpc({ jsonrpc: '2.0', id: 1, method, ...(params !== undefined && { params }) }, { session }),
    async open(options) {
      const { status, headers, text } = await rpc(INITIALIZE_REQUEST, options);
      const session = headers['mcp-session-id'];
      if (session === undefined) throw new Error(`initialize answered ${status}: ${text}`);
      return session;
    },
    async close() {
      await gateway.close();
      await issuer.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

function encode(body: unknown): { payload?: string; type?: Record<string, string> } {
  if (body === undefined) return {};
  if (typeof body === 'string')
    return { payload: body, type: { 'content-type': 'application/json' } };
  if (body instanceof URLSearchParams) {
    return {
      payload: body.toString(),
      type: { 'content-type': 'application/x-www-form-urlencoded' },
    };
  }
  return { payload: JSON.stringify(body), type: { 'content-type': 'application/json' } };
}
