import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { createProviderAccess } from '../../../src/logins/auth/auth.ts';
import { noMetrics } from '../../../src/telemetry/metrics/metrics.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import {
  INITIALIZE_REQUEST,
  startGateway,
  type TestGateway,
  type TestResponse,
} from '../../support/gateway/gateway.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { ACCEPT_PROVIDER_TOKENS } from '../../support/oauth/issuer.ts';

type Claims = Readonly<Record<string, unknown>>;

const NOW = 1_800_000_000;
let clock: ManualClock;
let gateway: TestGateway;

async function start(env: Readonly<Record<string, string>> = {}): Promise<TestGateway> {
  clock = manualClock(NOW * 1000);
  gateway = await startGateway({ env, deps: { clock } });
  expect((await send()).status).toBe(200);
  return gateway;
}

const send = async (claims: Claims = {}, header: Claims = {}): Promise<TestResponse> =>
  gateway.rpc(INITIALIZE_REQUEST, { token: await gateway.issuer.sign(claims, { header }) });

/** What the bearer is told, and the line of the log. */
function refusalOf({ status, json }: TestResponse) {
  const line = gateway.log.findLast(({ msg }) => msg === 'Refused.');
  return { status, ...json.error?.data, line };
}

const NO_ID_TOKENS = {};
const BROKER = { OAUTH_MODE: 'broker', OAUTH_CLIENT_ID: 'client-1', ...ACCEPT_PROVIDER_TOKENS };
/** Its access tokens are opaque. */
const ID_TOKENS = { ...BROKER, OIDC_PROVIDER: 'google' };
const DEX = { OIDC_PROVIDER: 'dex', OIDC_AUDIENCE: 'http://localhost:3000/mcp' };

const MODES = [
  { mode: 'by default', env: NO_ID_TOKENS },
  { mode: 'with OIDC_PROVIDER=google, beside tokens of the gateway', env: ID_TOKENS },
  { mode: 'with OIDC_PROVIDER=dex', env: DEX },
] as const;

describe.each(MODES)('kinds of tokens, $mode', ({ env }) => {
  useShared(() => start(env));

  test.each(
    [undefined, 'JWT', 'jwt', 'Jwt', 'at+jwt', 'AT+JWT', 'at+JWT', 'application/at+jwt'].concat([
      'Application/AT+JWT',
    ]),
  )('§5.2 the typ header %s is accepted', async (typ) => {
    expect((await send({}, { typ })).status).toBe(200);
  });

  test.each([
    'logout+jwt',
    'secevent+jwt',
    'dpop+jwt',
    'token-introspection+jwt',
    'application/logout+jwt',
    'application/jwt',
    'id+jwt',
    'oauth-authz-req+jwt',
    'JWE',
    'JOSE',
    'JWT ',
    ' JWT',
    'JWT\n',
    'xJWT',
    'at+jwtx',
    'application/application/at+jwt',
    'text/at+jwt',
    '',
    null,
    7,
    true,
    ['JWT'],
    {},
  ])('§5.2 the typ header %j: 401 invalid_token, and what is allowed', async (typ) => {
    const { fetches } = gateway.issuer;
    const before = fetches.keys;
    const answer = refusalOf(await send({}, { typ }));
    expect(answer).toMatchObject({ status: 401, reason: 'invalid_token' });
    expect(answer.details).toContain(JSON.stringify(typ));
    expect(answer.details).toContain('JWT, at+jwt, application/at+jwt');
    expect(answer.line).toMatchObject({ expected: 'JWT, at+jwt, application/at+jwt, or no typ' });
    expect(fetches.keys).toBe(before);
  });

  test.each<{ claims: Claims; kind: string }>([
    { claims: { events: {} }, kind: 'security event' },
    { claims: { events: null }, kind: 'security event' },
    {
      claims: { events: { 'http://schemas.openid.net/event/backchannel-logout': {} } },
      kind: 'logout',
    },
    { claims: { cnf: { jkt: 'x' } }, kind: 'DPoP' },
    { claims: { cnf: { 'x5t#S256': 'x' } }, kind: 'certificate' },
    { claims: { cnf: '' }, kind: 'bound to a key' },
    { claims: { typ: 'Refresh' }, kind: 'refresh token' },
    { claims: { typ: 'Offline' }, kind: 'refresh token' },
    { claims: { typ: 'Logout' }, kind: 'logout token' },
  ])('§5.2 the claims $claims are always refused', async ({ claims, kind }) => {
    const answer = refusalOf(await send(claims));
    expect(answer).toMatchObject({ status: 401, reason: 'invalid_token' });
    expect(answer.details).toContain(Object.keys(claims)[0]);
    expect(answer.details).toContain(kind);
    expect(answer.line).toMatchObject({ level: 'info', expected: 'an access token' });
  });

  test.each([{ typ: 'Bearer' }, { typ: 'DPoP' }, { typ: 7 }, { nonce: 'n' }, { auth_time: 1 }])(
    '§5.2 the claims %j are no mark',
    async (claims) => {
      expect((await send(claims)).status).toBe(200);
    },
  );

  const accepts: Claims[] = [
    ...(env === ID_TOKENS
      ? [{ at_hash: 'x' }, { c_hash: 'x' }, { s_hash: 'x' }, { typ: 'ID' }]
      : []),
    ...(env === DEX ? [{ at_hash: 'x' }] : []),
  ];
  const marks: Claims[] = [{ at_hash: 'x' }, { c_hash: 'x' }, { s_hash: 'x' }, { typ: 'ID' }];
  const isAccepted = (claims: Claims) =>
    accepts.some((one) => JSON.stringify(one) === JSON.stringify(claims));

  test.each(marks)('§5.2 the mark of an ID token %j', async (claims) => {
    const answer = refusalOf(await send(claims));
    if (isAccepted(claims)) {
      expect(answer.status).toBe(200);
      return;
    }
    expect(answer).toMatchObject({ status: 401, reason: 'invalid_token' });
    expect(answer.details).toMatch(/ID token.*Send the access token/);
  });

  test('§5.2 at_hash beside another mark counts as that mark', async () => {
    const status = env === ID_TOKENS ? 200 : 401;
    expect((await send({ at_hash: 'x', c_hash: 'y' })).status).toBe(status);
  });
});

describe('details name what is wrong and what is allowed', () => {
  useShared(start);

  const SECRET = 'opaqueSecret0123456789';

  test.each([
    { token: SECRET, says: 'The token is not a JWT' },
    { token: `a.${SECRET}`, says: 'The token is not a JWT' },
    { token: `${SECRET}.b.c.d`, says: 'The token is not a JWT' },
    { token: `${SECRET}.b.c.d.e`, says: 'The token is not a JWT' },
  ])('§7.1 $token: $says, and nothing of it in the answer or the log', async ({ token, says }) => {
    const answer = refusalOf(await gateway.rpc(INITIALIZE_REQUEST, { token }));
    expect(answer).toMatchObject({ status: 401, reason: 'invalid_token' });
    expect(answer.details).toContain(says);
    expect(JSON.stringify([answer, gateway.log])).not.toContain(SECRET);
  });

  test('§7.1 a token that is no JWT: what this usually means, and what helps', async () => {
    const { details } = refusalOf(await gateway.rpc(INITIALIZE_REQUEST, { token: SECRET }));
    expect(details).toContain('opaque access token');
    expect(details).toContain('OAUTH_MODE=broker');
    expect(details).toContain('/providers');
  });

  test.each<{ claims: Claims; reason: string; says: string[]; facts: Claims }>([
    {
      claims: { iss: undefined },
      reason: 'invalid_issuer',
      says: ['iss claim of the token is missing', 'OIDC_ISSUER'],
      facts: {},
    },
    {
      claims: { iss: 'https://other.example' },
      reason: 'invalid_issuer',
      says: ['"https://other.example"', 'OIDC_ISSUER'],
      facts: { found: 'https://other.example' },
    },
    {
      claims: { aud: undefined },
      reason: 'invalid_audience',
      says: ['aud claim of the token is missing', '"http://localhost:3000/mcp"', 'OIDC_AUDIENCE'],
      facts: { expected: expect.arrayContaining(['http://localhost:3000/mcp']) },
    },
    {
      claims: { aud: ['account'] },
      reason: 'invalid_audience',
      says: ['["account"]', '"http://localhost:3000/mcp"'],
      facts: { found: ['account'] },
    },
    {
      claims: { sub: undefined },
      reason: 'missing_claim',
      says: ['sub claim of the token is missing'],
      facts: {},
    },
    { claims: { sub: 5 }, reason: 'missing_claim', says: ['5', 'string'], facts: { found: 5 } },
    {
      claims: { exp: undefined },
      reason: 'invalid_token',
      says: ['exp claim of the token is missing'],
      facts: {},
    },
    {
      claims: { exp: NOW - 42 },
      reason: 'expired_token',
      says: ['expired 42 seconds ago', 'clock', 'OIDC_CLOCK_TOLERANCE_SECONDS'],
      facts: { exp: NOW - 42, now: NOW },
    },
    {
      claims: { exp: NOW - 599 },
      reason: 'expired_token',
      says: ['expired 599 seconds ago', 'clock'],
      facts: { exp: NOW - 599, now: NOW },
    },
    {
      claims: { nbf: NOW + 60 },
      reason: 'invalid_token',
      says: ['60 seconds', 'nbf', 'clock'],
      facts: { nbf: NOW + 60, now: NOW },
    },
  ])('§7.1 $claims: $reason, with found and expected', async (row) => {
    const answer = refusalOf(await send(row.claims));
    expect(answer).toMatchObject({ status: 401, reason: row.reason, line: row.facts });
    for (const part of row.says) expect(answer.details).toContain(part);
  });

  test.each([{ exp: NOW - 600 }, { exp: NOW - 86_400 }, { nbf: NOW + 600 }])(
    '§7.1 ten minutes and more are no matter of clocks: %j',
    async (claims) => {
      const { details } = refusalOf(await send(claims));
      expect(details).toMatch(/(600|86400) seconds/);
      expect(details).not.toContain('clock');
    },
  );

  test('§7.1 an issuer that differs in its slash: the details say so', async () => {
    const { details } = refusalOf(await send({ iss: `${gateway.issuer.url}/` }));
    expect(details).toContain('without the slash at the end');
  });

  test('§7.1 a long value is cut', async () => {
    const { details } = refusalOf(await send({ iss: 'x'.repeat(5000) }));
    expect(details.length).toBeLessThan(700);
    const kid = 'k'.repeat(5000);
    const token = await gateway.issuer.sign({}, { header: { kid, typ: 't'.repeat(5000) } });
    const { line } = refusalOf(await gateway.rpc(INITIALIZE_REQUEST, { token }));
    expect(JSON.stringify(line).length).toBeLessThan(1500);
  });
});

describe('MAX_TOKEN_BYTES', () => {
  test('§5 MAX_TOKEN_BYTES is the longest token that is accepted', async () => {
    closeAfterTest(await start({ MAX_TOKEN_BYTES: '2048' }));
    expect((await send({ name: 'x'.repeat(1000) })).status).toBe(200);
    const { status, reason, details } = refusalOf(await send({ name: 'x'.repeat(2000) }));
    expect([status, reason]).toEqual([401, 'invalid_token']);
    expect(details).toMatch(/\d+ bytes; at most 2048 are accepted \(MAX_TOKEN_BYTES\)/);
  });

  test('§5 a user in 300 groups gets in by the default', async () => {
    closeAfterTest(await start());
    const groups = Array.from({ length: 300 }, (_, index) => `/department/group-${index}-of-many`);
    const token = await gateway.issuer.sign({ groups });
    expect(token.length).toBeGreaterThan(8192);
    expect((await gateway.rpc(INITIALIZE_REQUEST, { token })).status).toBe(200);
  });
});

describe('inspectToken: the same judgement without the signature', () => {
  useShared(start);

  const auth = () => {
    const { url } = gateway.issuer;
    const config = loadConfig({
      OIDC_ISSUER: url,
      BASE_URL: gateway.baseUrl,
      METRICS_ENABLED: 'false',
    });
    const { log } = collectLog();
    const keySet = {
      start() {},
      waitForKeys: () => Promise.reject(new Error('no key may be looked for')),
      find: () => [],
      findAfterRefresh: () => Promise.reject(new Error('no key may be looked for')),
      isFetched: false,
      describe: () => {
        throw new Error('nobody asks');
      },
      close() {},
    };
    const runtime = { config, fetch, clock, log, metrics: noMetrics };
    return createProviderAccess(runtime, () => false, { keySet, isServerAudience: () => false })
      .auth;
  };

  test('§5.2 a good token: no problem, and its sub', async () => {
    const token = await gateway.issuer.sign();
    expect(auth().inspectToken(token)).toEqual({ sub: 'user-1', problem: undefined });
    const [header, payload] = token.split('.');
    expect(auth().inspectToken(`${header}.${payload}.AAAA`).problem).toBeUndefined();
  });

  test.each<Claims>([
    { iss: 'https://other.example' },
    { aud: 'other' },
    { exp: NOW - 60 },
    { nbf: NOW + 60 },
    { at_hash: 'x' },
    { cnf: {} },
  ])('§5.2 %j: the problem that a call would meet, and whom it names', async (claims) => {
    const token = await gateway.issuer.sign(claims);
    const { reason, details } = refusalOf(await gateway.rpc(INITIALIZE_REQUEST, { token }));
    const { sub, problem } = auth().inspectToken(token);
    expect(sub).toBe('user-1');
    expect([problem?.key, problem?.message]).toEqual([reason, details]);
    expect(Object.keys(problem?.failure.facts ?? {}).length).toBe(2);
  });

  const DEEP = `${'['.repeat(5000)}${']'.repeat(5000)}`;
  const base64url = (text: string) => Buffer.from(text).toString('base64url');
  const RS256 = base64url('{"alg":"RS256"}');

  test('§7.1 a header nested thousands of levels deep is refused like any other', async () => {
    const token = `${base64url(`{"alg":"RS256","typ":${DEEP}}`)}.e30.AAAA`;
    const answer = refusalOf(await gateway.rpc(INITIALIZE_REQUEST, { token }));
    expect(answer).toMatchObject({ status: 401, reason: 'invalid_token' });
  });

  test.each(['iss', 'aud', 'exp', 'nbf', 'sub'])(
    '§7.1 a claim %s nested thousands of levels deep is refused like any other',
    (claim) => {
      const { url } = gateway.issuer;
      const claims = { iss: url, aud: gateway.baseUrl, exp: NOW + 60, sub: 'a', [claim]: 'deep' };
      const payload = base64url(JSON.stringify(claims).replace('"deep"', DEEP));
      const { problem } = auth().inspectToken(`${RS256}.${payload}.AAAA`);
      expect(problem?.row.status).toBe(401);
    },
  );

  test.each(['', 'opaque', 'a.b.c', 'é.é.é', `${'x'.repeat(20_000)}`])(
    '§5.2 %j is a problem, and names nobody',
    (token) => {
      const { sub, problem } = auth().inspectToken(token);
      expect(sub).toBeUndefined();
      expect(problem?.key).toBe('invalid_token');
      expect(problem?.failure.facts).toMatchObject({
        found: expect.any(String),
        expected: expect.any(String),
      });
    },
  );
});

describe('the challenge', () => {
  test.each([
    { mode: 'proxy', env: {}, document: '/.well-known/oauth-protected-resource' },
    { mode: 'broker', env: BROKER, document: '/.well-known/oauth-protected-resource/mcp' },
  ])('§5.6 OAUTH_MODE=$mode: every 401 names $document', async ({ mode, env, document }) => {
    closeAfterTest(await start(env));
    const expected = `Bearer resource_metadata="${gateway.baseUrl}${document}"`;
    const headers = { authorization: 'Bearer x' };
    for (const ask of [
      { path: '/mcp' },
      { path: '/mcp', method: 'POST', body: INITIALIZE_REQUEST },
      { path: '/mcp', method: 'POST', body: INITIALIZE_REQUEST, headers },
      { path: '/mcp', method: 'DELETE' },
    ]) {
      const answer = await gateway.request(ask);
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toBe(expected);
    }
    // RFC 9728 §3.3: what the document says of itself is what the client asked for.
    const { json } = await gateway.request({ path: document });
    const { pathname } = new URL(json.resource);
    expect(pathname).toBe(mode === 'broker' ? '/mcp' : '/');
  });

  test('§5.6 with MCP_STREAMS the probe by GET names it, too', async () => {
    closeAfterTest(await start({ ...BROKER, MCP_STREAMS: 'true' }));
    const { status, headers } = await gateway.request({ path: '/mcp' });
    expect(status).toBe(401);
    expect(headers['www-authenticate']).toContain('/.well-known/oauth-protected-resource/mcp"');
  });
});
