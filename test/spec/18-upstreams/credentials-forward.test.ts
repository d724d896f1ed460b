import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { formatProblem } from '../../../src/config/problem.ts';
import { getOriginalToken } from '../../../src/http/endpoint/message.ts';
import { GATEWAY_CALLER } from '../../../src/mcp/upstream/upstream.ts';
import {
  openCredentials,
  type UpstreamAuth,
} from '../../../src/servers/credentials/credentials.ts';
import type { HttpUpstreamConfig } from '../../../src/servers/http/http-config.ts';
import { findAuthProblems } from '../../../src/servers/transport/transports.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { openTestRuntime } from '../../support/gateway/runtime.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startIssuer } from '../../support/oauth/issuer.ts';
import { callerOf, requireHeaders } from '../../support/upstreams/callers.ts';

const AUDIENCE = 'https://wiki.example';

const issuer = useShared(startIssuer);

const openAccess = (auth: UpstreamAuth, url = 'https://wiki.example/mcp') =>
  openCredentials(openTestRuntime({ clock: manualClock() }), {
    getProviderToken: getOriginalToken,
    metadata: undefined,
    connections: undefined,
  }).openAccess({ name: 'wiki', url, auth });

const create = (auth: UpstreamAuth, url?: string) => requireHeaders(openAccess(auth, url));

describe('none', () => {
  test('§18.6 without auth a server learns nothing of the caller', () => {
    const nothing = { getHeaders: undefined, replaceRefusedToken: undefined, sign: undefined };
    expect(openAccess({ type: 'none' })).toEqual(nothing);
  });
});

describe('forward', () => {
  test.each([
    { what: 'is the audience', aud: AUDIENCE },
    { what: 'has the audience', aud: ['https://gw.example/mcp', AUDIENCE] },
  ])("§18.6 forward: the caller's token, where its aud $what", async ({ aud }) => {
    const token = await issuer.sign({ aud });
    expect(await create({ type: 'forward', audience: AUDIENCE })(callerOf(token))).toEqual({
      authorization: `Bearer ${token}`,
    });
  });

  test.each([
    { what: 'another', aud: 'https://gw.example/mcp' },
    { what: 'a longer one', aud: `${AUDIENCE}/` },
    { what: 'none', aud: undefined },
    { what: 'an object', aud: { [AUDIENCE]: true } },
    { what: 'a list in a list', aud: [[AUDIENCE]] },
  ])('§18.6 forward: an aud of $what: the server is not asked', async ({ aud }) => {
    const token = await issuer.sign({ aud });
    await expect(
      create({ type: 'forward', audience: AUDIENCE })(callerOf(token)),
    ).rejects.toMatchObject({
      failure: 'unavailable',
      message: expect.stringMatching(/token of this login was not made for it/),
    });
  });

  test.each([
    { url: 'http://127.0.0.1:8080/mcp', isSent: true },
    { url: 'http://localhost/mcp', isSent: true },
    { url: 'http://[::1]/mcp', isSent: true },
    { url: 'http://wiki.example/mcp', isSent: false },
    { url: 'http://localhost.example/mcp', isSent: false },
    { url: 'http://127.0.0.1.example/mcp', isSent: false },
    { url: 'http://10.0.0.7/mcp', isSent: false },
  ])('§18.6 forward: to $url: sent: $isSent', async ({ url, isSent }) => {
    const caller = callerOf(await issuer.sign({ aud: AUDIENCE }));
    const headers = create({ type: 'forward', audience: AUDIENCE }, url)(caller);
    if (isSent) expect((await headers).authorization).toMatch(/^Bearer /);
    else await expect(headers).rejects.toThrow('by https only');
  });

  test('§18.6 forward: nothing for the gateway itself', async () => {
    expect(await create({ type: 'forward', audience: AUDIENCE })(GATEWAY_CALLER)).toEqual({});
  });
});

describe('at start', () => {
  const OIDC = { OIDC_ISSUER: 'https://id.example' };

  test.each([
    { auth: { type: 'identity' }, env: OIDC, problem: undefined },
    { auth: { type: 'token-exchange', audience: AUDIENCE }, env: OIDC, problem: 'OAUTH_CLIENT_ID' },
    {
      auth: { type: 'token-exchange', audience: AUDIENCE },
      env: {
        OIDC_PROVIDER: 'github',
        OAUTH_MODE: 'broker',
        OAUTH_CLIENT_ID: 'gateway',
        OAUTH_CLIENT_SECRET: 'secret',
      },
      problem: 'GitHub does not: use forward or identity',
    },
    {
      auth: { type: 'token-exchange', audience: AUDIENCE },
      env: { ...OIDC, OAUTH_CLIENT_ID: 'gateway' },
      problem: undefined,
    },
    {
      auth: { type: 'forward', audience: AUDIENCE },
      env: { AUTH_REQUIRED: 'false' },
      problem: 'AUTH_REQUIRED',
    },
    { auth: { type: 'forward', audience: AUDIENCE }, env: OIDC, problem: undefined },
    { auth: { type: 'none' }, env: { AUTH_REQUIRED: 'false' }, problem: undefined },
  ] as const)('§18.6 $auth.type with $env: $problem', ({ auth, env, problem }) => {
    const problems = findAuthProblems([serverOf(auth)], loadConfig({ ...env })).map(formatProblem);
    expect(problems).toEqual(
      problem === undefined
        ? []
        : [expect.stringMatching(new RegExp(`^Server wiki: auth ${auth.type} .*${problem}`))],
    );
  });
});

const serverOf = (auth: UpstreamAuth): HttpUpstreamConfig => ({
  name: 'wiki',
  prefix: 'wiki',
  timeoutMs: 60_000,
  required: false,
  tools: { include: ['*'], exclude: [], describe: {} },
  kind: 'http',
  era: 'auto',
  roots: true,
  url: 'https://wiki.example/mcp',
  transport: 'streamable-http',
  headers: {},
  ca: undefined,
  cookies: true,
  auth,
});
