// All that a call of /mcp meets, by callers who came by grants in the store. Their token is the id of the grant.

import { inject } from 'light-my-request';
import { loadConfig } from '../../../src/config/load.ts';
import { fail, GatewayError } from '../../../src/errors/gateway-error.ts';
import { createTransport } from '../../../src/gateway/gateway.ts';
import { createChallenge } from '../../../src/http/endpoint/bearer.ts';
import type { UserContext } from '../../../src/http/endpoint/message.ts';
import {
  getHeader,
  getOriginalToken,
  readBearerToken,
} from '../../../src/http/endpoint/message.ts';
import { createLimiter } from '../../../src/http/limits/limiter.ts';
import type { CallerChecks } from '../../../src/http/server/check-request.ts';
import { serveOwnCatalog } from '../../../src/mcp/catalog/own-catalog.ts';
import { createMcp } from '../../../src/mcp/mcp.ts';
import { createReplicaSeal } from '../../../src/store/seal/secrets.ts';
import { GRANT_VERSION_LENGTH, type Store } from '../../../src/store/store.ts';
import { NO_COUNTS } from '../../../src/telemetry/metrics/metrics.ts';
import { createPrometheusMetrics } from '../../../src/telemetry/metrics/prometheus.ts';
import { specCatalog } from '../catalogs/spec-catalog.ts';
import { type ManualClock, manualClock } from './clock.ts';
import { BASE_URL, INITIALIZE_REQUEST } from './gateway.ts';
import { collectLog } from './log.ts';
import { openTestRuntime } from './runtime.ts';

/** What the value of a grant says after its version. */
interface GrantedUser {
  readonly sub: string;
  readonly name: string;
  /** Undefined for OIDC_ISSUER. */
  readonly issuer?: string;
}

export const grantKeyOf = (id: string): string => `oauth:grant:${id}`;

const toUser = (id: string, version: string, { sub, name, issuer }: GrantedUser): UserContext => ({
  sub,
  ...(issuer !== undefined && { issuer }),
  name,
  claims: { sub, name },
  grant: { id, clientId: 'client', key: grantKeyOf(id), version, endsAt: Number.POSITIVE_INFINITY },
});

interface SendOptions {
  readonly method?: 'POST' | 'GET' | 'DELETE';
  readonly ip?: string;
  readonly session?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const ENV = {
  BASE_URL,
  OIDC_ISSUER: 'https://issuer.example',
  OAUTH_MODE: 'proxy',
  TRUST_PROXY: '1',
};

export async function startGrantedGateway(
  store: Store,
  {
    env = {},
    clock = manualClock(1_800_000_000_000),
  }: { readonly env?: Readonly<Record<string, string>>; readonly clock?: ManualClock } = {},
) {
  const { log, lines } = collectLog();
  const config = loadConfig({ ...ENV, ...env });
  const metrics = createPrometheusMetrics();
  const known = new Map<string, UserContext>();
  let reloads = 0;
  const getChallenge = createChallenge(BASE_URL, 'broker');
  const getSeal = createReplicaSeal(config.mcp.sessions.keyPrefix, { store, clock }, undefined);
  const runtime = openTestRuntime({ config, store, clock, log, metrics, getSeal });
  const mcp = createMcp(
    runtime,
    { all: serveOwnCatalog(specCatalog, runtime), findNamed: () => undefined },
    { judge: undefined, getGuards: undefined, askFirst: async () => {} },
    { findClientId: () => undefined, getProviderToken: getOriginalToken, getChallenge },
  );
  const checks: CallerChecks = {
    /** By what this process knows: it asks the store of nothing. */
    authenticate(request) {
      const user = known.get(readBearerToken(getHeader(request, 'authorization')) ?? '');
      if (user !== undefined) return user;
      throw new GatewayError('invalid_token', { headers: getChallenge(request.path) });
    },
    async reload(user) {
      reloads += 1;
      const { id, key } = user.grant ?? fail('internal_error');
      const value = (await store.get(key)) ?? fail('token_revoked');
      const version = value.slice(0, GRANT_VERSION_LENGTH);
      return toUser(id, version, JSON.parse(value.slice(GRANT_VERSION_LENGTH)));
    },
    getChallenge,
    limiter: createLimiter(runtime),
  };
  const server = createTransport(runtime, mcp.endpoints, checks, mcp.gives.corsHeaders);

  async function send(token: string, body: unknown, options: SendOptions = {}) {
    const { method = 'POST', ip = '10.0.0.1', session, path = '/mcp', headers } = options;
    const answer = await inject(server.handler, {
      method,
      url: path,
      headers: {
        host: new URL(BASE_URL).host,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        authorization: `Bearer ${token}`,
        'x-forwarded-for': ip,
        ...(session !== undefined && { 'mcp-session-id': session }),
        ...headers,
      },
      ...(body !== undefined && {
        payload: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    });
    return {
      status: answer.statusCode,
      headers: answer.headers,
      get json() {
        return JSON.parse(answer.payload);
      },
    };
  }

  return {
    log: lines,
    send,
    countReloads: () => reloads,
    /** All metrics, as `/metrics` shows them. */
    readMetrics: () => metrics.renderOpenMetrics(NO_COUNTS),
    /** Stores a grant; what this process knows of it stays as it was, unless `isKnown`. Resolves to its token. */
    async grant(id: string, version: string, user: GrantedUser, isKnown = true): Promise<string> {
      await store.set(grantKeyOf(id), version + JSON.stringify(user), 3600);
      if (isKnown) known.set(id, toUser(id, version, user));
      return id;
    },
    /** initialize; resolves to the session id. */
    async open(token: string): Promise<string> {
      const { headers, json } = await send(token, INITIALIZE_REQUEST);
      const session = headers['mcp-session-id'];
      if (typeof session !== 'string') throw new Error(JSON.stringify(json));
      return session;
    },
    async close() {
      mcp.stopWaiting();
      await server.close(0);
      await mcp.close();
    },
  };
}

export type GrantedGateway = Awaited<ReturnType<typeof startGrantedGateway>>;
