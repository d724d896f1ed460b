import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { logInAs } from '../../../scripts/demo/login.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { createGateway, type Deps, type Gateway } from '../../../src/gateway/gateway.ts';
import { specCatalog } from '../catalogs/spec-catalog.ts';
import { type ProviderOptions, startProvider } from '../oauth/provider.ts';
import { collectLog, type LogLine } from './log.ts';
import { noInternet } from './no-internet.ts';
import { freePort } from './ports.ts';
import { type PrefixRule, startPrefixProxy } from './prefix-proxy.ts';

/** A gateway on a loopback socket, and the OpenID provider behind it. */
export interface Service {
  readonly baseUrl: string;
  readonly mcpUrl: URL;
  readonly issuer: string;
  readonly log: readonly LogLine[];
  /** Registers a client and logs `name` in by it, all through the gateway. */
  logIn(name: string): Promise<Tokens>;
  /** The same address, store and provider, with other settings. */
  restart(env?: Readonly<Record<string, string>>): Promise<void>;
  /** Another configuration file, or lock. */
  reload: Gateway['reload'];
  close(): Promise<void>;
}

export interface Tokens {
  readonly clientId: string;
  readonly accessToken: string;
  readonly refreshToken: string;
}

export interface ServiceOptions {
  /** As by default: proxy. */
  readonly mode?: 'broker';
  /** A free one unless given. */
  readonly port?: number;
  /** Served below this path, behind a proxy. */
  readonly basePath?: string;
  /** What that proxy does with the path; it removes it unless given. */
  readonly prefixRule?: PrefixRule;
  readonly provider?: Omit<ProviderOptions, 'gatewayUrl'>;
  readonly env?: Readonly<Record<string, string>>;
  readonly deps?: Partial<Deps>;
}

/** Where nobody listens: the login helper stops before it gets there. */
export const REDIRECT_URI = 'http://127.0.0.1:9/callback';

/** Limits that no test runs into. */
export const GENEROUS = {
  DCR_RATE_LIMIT_MAX: '1000',
  OAUTH_AUTHORIZE_RATE_LIMIT_MAX: '1000',
  OAUTH_CONSENT_RATE_LIMIT_MAX: '1000',
  OAUTH_CALLBACK_RATE_LIMIT_MAX: '1000',
  MCP_RATE_LIMIT_MAX: '10000',
} as const;

export async function startService(options: ServiceOptions = {}): Promise<Service> {
  const port = options.port ?? (await freePort());
  const { basePath = '', prefixRule } = options;
  const baseUrl = `http://localhost:${port}${basePath}`;
  const ownPort = basePath === '' ? port : await freePort();
  const proxy =
    basePath === '' ? undefined : await startPrefixProxy(port, basePath, ownPort, prefixRule);
  const provider = await startProvider({ gatewayUrl: baseUrl, ...options.provider });
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-service-'));
  const { log, lines } = collectLog();
  let env = {
    HOST: '127.0.0.1',
    PORT: String(ownPort),
    ...(basePath !== '' && { BASE_URL: baseUrl }),
    DATA_DIR: dataDir,
    ...GENEROUS,
    ...provider.env,
    ...(options.mode && { OAUTH_MODE: options.mode }),
    ...options.env,
  };
  async function open() {
    const gateway = await createGateway(loadConfig(env), {
      log,
      catalog: specCatalog,
      network: noInternet,
      ...options.deps,
    });
    await gateway.listen();
    return gateway;
  }
  let gateway = await open();

  return {
    baseUrl,
    mcpUrl: new URL(`${baseUrl}/mcp`),
    issuer: provider.issuer,
    log: lines,
    logIn: (name) => logIn(baseUrl, name),
    async restart(changed) {
      await gateway.close();
      env = { ...env, ...changed };
      gateway = await open();
    },
    reload: (setup) => gateway.reload(setup),
    async close() {
      await gateway.close();
      await proxy?.close();
      await provider.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function logIn(baseUrl: string, name: string): Promise<Tokens> {
  const client = await post(`${baseUrl}/oauth/register`, { redirect_uris: [REDIRECT_URI] });
  const clientId = String(client.client_id);
  const verifier = randomBytes(32).toString('base64url');
  const url = new URL(`${baseUrl}/oauth/authorize`);
  url.search = new URLSearchParams({
    client_id: clientId,
    redirect_uri: REDIRECT_URI,
    response_type: 'code',
    state: 'state',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }).toString();
  const back = await logInAs(name, url, REDIRECT_URI);
  const tokens = await post(`${baseUrl}/oauth/token`, {
    grant_type: 'authorization_code',
    code: back?.searchParams.get('code') ?? '',
    redirect_uri: REDIRECT_URI,
    client_id: clientId,
    code_verifier: verifier,
  });
  return {
    clientId,
    accessToken: String(tokens.access_token),
    refreshToken: String(tokens.refresh_token),
  };
}

async function post(url: string, body: unknown): Promise<Record<string, unknown>> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${text}`);
  return JSON.parse(text);
}
