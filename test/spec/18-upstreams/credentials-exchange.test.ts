import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { getOriginalToken } from '../../../src/http/endpoint/message.ts';
import { createProviderMetadata } from '../../../src/http/oauth-client/provider-metadata.ts';
import { GATEWAY_CALLER } from '../../../src/mcp/upstream/upstream.ts';
import { openCredentials } from '../../../src/servers/credentials/credentials.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { openTestRuntime } from '../../support/gateway/runtime.ts';
import { useFresh, useShared } from '../../support/lifetimes.ts';
import { startIssuer } from '../../support/oauth/issuer.ts';
import { startUpstream } from '../../support/oauth/upstream.ts';
import { callerOf, requireHeaders } from '../../support/upstreams/callers.ts';

const AUDIENCE = 'https://wiki.example';
const NOW = 1_800_000_000;

const issuer = useShared(startIssuer);

/** A token endpoint, and the credentials of a server that uses it. */
const provider = useFresh(async () => {
  const endpoint = await startUpstream();
  const clock = manualClock(NOW * 1000);
  const { log, lines } = collectLog();
  let issued = 0;
  const answer = (status: number, body: unknown) =>
    endpoint.answer((res) => void res.writeHead(status).end(JSON.stringify(body)));
  const issue = (members: object = {}) =>
    endpoint.answer((res) => {
      issued += 1;
      res.end(
        JSON.stringify({
          access_token: `token-${issued}`,
          issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
          token_type: 'Bearer',
          expires_in: 300,
          ...members,
        }),
      );
    });
  issue();

  const toAuth = (more: { readonly scope?: string }) => ({
    type: 'token-exchange',
    audience: AUDIENCE,
    ...more,
  });

  const create = (
    auth: { readonly scope?: string } = {},
    client: { readonly authMethod: 'post' | 'basic' } = { authMethod: 'post' },
  ) =>
    requireHeaders(
      openCredentials(
        openTestRuntime({
          config: loadConfig({
            OIDC_ISSUER: endpoint.url,
            OAUTH_MODE: 'broker',
            OAUTH_TOKEN_URL: `${endpoint.url}/token`,
            OAUTH_CLIENT_ID: 'gateway',
            OAUTH_CLIENT_SECRET: 'pass word',
            OAUTH_CLIENT_AUTH: client.authMethod,
          }),
          fetch,
          clock,
          log,
        }),
        {
          getProviderToken: getOriginalToken,
          metadata: createProviderMetadata({ fetch, clock, log }, endpoint.url),
          connections: undefined,
        },
      ).openAccess({
        name: 'wiki',
        url: `${AUDIENCE}/mcp`,
        auth: toAuth(auth),
      }),
    );

  return {
    clock,
    lines,
    answer,
    issue,
    create,
    respond: (respond: (res: ServerResponse) => void) => endpoint.answer(respond),
    received: endpoint.received,
    close: endpoint.close,
  };
});

const signIn = (claims: Readonly<Record<string, unknown>> = {}) =>
  issuer.sign({ sub: 'ada', exp: NOW + 3600, ...claims });

describe('the request', () => {
  test("§18.6 token-exchange: RFC 8693 with the caller's token, by the gateway's client", async () => {
    const token = await signIn();
    const headers = await provider.create()(callerOf(token));
    expect(headers).toEqual({ authorization: 'Bearer token-1' });
    const [request] = provider.received;
    expect(request?.path).toBe('/token');
    expect(Object.fromEntries(request?.form ?? [])).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      audience: AUDIENCE,
      client_id: 'gateway',
      client_secret: 'pass word',
    });
    expect(request?.headers.cookie).toBeUndefined();
    expect(request?.headers.authorization).toBeUndefined();
  });

  test('§18.6 token-exchange: scope and OAUTH_CLIENT_AUTH are heeded', async () => {
    const getHeaders = provider.create({ scope: 'read write' }, { authMethod: 'basic' });
    await getHeaders(callerOf(await signIn()));
    const [request] = provider.received;
    expect(request?.headers.authorization).toBe(
      `Basic ${Buffer.from('gateway:pass+word').toString('base64')}`,
    );
    expect(Object.fromEntries(request?.form ?? [])).toMatchObject({
      scope: 'read write',
    });
    expect(request?.form.has('client_secret')).toBe(false);
  });

  test('§18.6 token-exchange: for the gateway itself the provider is not asked, and nothing is sent', async () => {
    expect(await provider.create()(GATEWAY_CALLER)).toEqual({});
    expect(provider.received).toHaveLength(0);
  });
});

describe('how long a token is kept', () => {
  test.each([
    { what: 'expires_in', members: { expires_in: 100 }, exp: 3600, seconds: 95 },
    { what: 'expires_in as text', members: { expires_in: '100' }, exp: 3600, seconds: 95 },
    { what: "the exp of the caller's token", members: {}, exp: 50, seconds: 50 },
    {
      what: 'a minute where the provider does not say',
      members: { expires_in: undefined },
      exp: 3600,
      seconds: 55,
    },
  ])('§18.6 token-exchange: until $what', async ({ members, exp, seconds }) => {
    provider.issue(members);
    const getHeaders = provider.create();
    const ada = callerOf(await signIn({ exp: NOW + exp }));
    const first = await getHeaders(ada);
    provider.clock.advance(seconds * 1000 - 1);
    expect(await getHeaders(ada)).toEqual(first);
    provider.clock.advance(1);
    expect(await getHeaders(ada)).not.toEqual(first);
    expect(provider.received).toHaveLength(2);
  });

  test.each([
    { what: 'no time', members: { expires_in: 0 } },
    { what: 'a time in the past', members: { expires_in: -5 } },
    { what: 'a time that is none', members: { expires_in: 'soon' }, kept: true },
  ])('§18.6 token-exchange: $what', async ({ members, kept = false }) => {
    provider.issue(members);
    const getHeaders = provider.create();
    const ada = callerOf(await signIn());
    await getHeaders(ada);
    await getHeaders(ada);
    expect(provider.received).toHaveLength(kept ? 1 : 2);
  });

  test('§18.6 token-exchange: each token of a caller has one of its own', async () => {
    const getHeaders = provider.create();
    const callers = [await signIn(), await signIn({ sub: 'eve' }), await signIn({ jti: 'other' })];
    for (let round = 0; round < 2; round += 1) {
      const headers = await Promise.all(callers.map((token) => getHeaders(callerOf(token))));
      expect(new Set(headers.map(({ authorization }) => authorization)).size).toBe(3);
    }
    expect(provider.received).toHaveLength(3);
  });

  test('§18.6 token-exchange: of many calls at once one asks the provider', async () => {
    const waiting: ServerResponse[] = [];
    provider.respond((res) => void waiting.push(res));
    const getHeaders = provider.create();
    const ada = callerOf(await signIn());
    const calls = Array.from({ length: 20 }, () => getHeaders(ada));
    await expect.poll(() => waiting.length, { timeout: 20_000 }).toBe(1);
    waiting[0]?.end('{"access_token":"one","token_type":"bearer","expires_in":60}');
    for (const headers of await Promise.all(calls)) {
      expect(headers).toEqual({ authorization: 'Bearer one' });
    }
    expect(provider.received).toHaveLength(1);
  });

  test('§18.6 token-exchange: a bounded number of tokens is kept, the oldest goes', async () => {
    const getHeaders = provider.create();
    const [ada, eve] = [await signIn({ sub: 'ada' }), await signIn({ sub: 'eve' })];
    const { user } = callerOf(ada);
    if (user === undefined) throw new Error('No user');
    await getHeaders(callerOf(ada));
    for (let index = 0; index < 2000; index += 1) {
      await getHeaders({ ...callerOf(ada), user: { ...user, token: `${eve}${index}` } });
    }
    await getHeaders(callerOf(ada));
    expect(provider.received).toHaveLength(2002);
  }, 60_000);
});

const REFUSED = /gives this login no access to it; only the operator/;
const UNREACHABLE = /could not be reached to get access to it/;

describe('when the token is to be renewed', () => {
  /** Of 300 s, after 296: what is left is less than a token should still be good for. */
  async function useToken() {
    const getHeaders = provider.create();
    const ada = callerOf(await signIn());
    const first = await getHeaders(ada);
    provider.clock.advance(296_000);
    return { first, get: async () => getHeaders(ada) };
  }

  test('§18.6 token-exchange: while the provider is away, the one before serves until its end', async () => {
    const { first, get } = await useToken();
    provider.answer(503, {});
    for (let call = 0; call < 3; call += 1) expect(await get()).toEqual(first);
    expect(provider.received).toHaveLength(2);
    provider.clock.advance(4000);
    await expect(get()).rejects.toThrow(UNREACHABLE);
    provider.issue();
    provider.clock.advance(3001);
    expect(await get()).toEqual({ authorization: 'Bearer token-2' });
  });

  test('§18.6 token-exchange: a provider that does not answer is waited for a second', async () => {
    const { first, get } = await useToken();
    const waiting: ServerResponse[] = [];
    provider.respond((res) => void waiting.push(res));
    const calls = [get(), get()];
    await expect.poll(() => waiting.length).toBe(1);
    provider.clock.advance(1000);
    expect(await Promise.all(calls)).toEqual([first, first]);
    waiting[0]?.end('{"access_token":"late","token_type":"Bearer","expires_in":60}');
    await expect.poll(get).toEqual({ authorization: 'Bearer late' });
    expect(provider.received).toHaveLength(2);
  });

  test('§18.6 token-exchange: what the provider refuses is refused at once', async () => {
    const { get } = await useToken();
    provider.answer(400, { error: 'invalid_grant' });
    await expect(get()).rejects.toThrow(REFUSED);
  });

  test('§18.6 token-exchange: who is refused with many tokens pushes out nobody', async () => {
    const getHeaders = provider.create();
    const ada = callerOf(await signIn());
    const first = await getHeaders(ada);
    provider.answer(400, { error: 'invalid_target' });
    const { user, ...rest } = callerOf(await signIn({ sub: 'eve' }));
    if (user === undefined) throw new Error('No user');
    for (let index = 0; index < 2000; index += 1) {
      const refused = getHeaders({ ...rest, user: { ...user, token: `${user.token}${index}` } });
      await expect(refused).rejects.toThrow(REFUSED);
    }
    expect(await getHeaders(ada)).toEqual(first);
    expect(provider.received).toHaveLength(2001);
  });
});

describe('when the provider makes no token', () => {
  test.each([
    {
      what: 'a refusal',
      status: 400,
      body: { error: 'invalid_target' },
      message: REFUSED,
      said: 'invalid_target',
    },
    {
      what: 'a refusal of the gateway',
      status: 401,
      body: { error: 'invalid_client' },
      message: REFUSED,
      said: 'OAUTH_CLIENT_SECRET',
    },
    { what: 'no object', status: 200, body: [], message: REFUSED, said: 'not a JSON object' },
    {
      what: 'no token',
      status: 200,
      body: { token_type: 'Bearer' },
      message: REFUSED,
      said: 'no access_token',
    },
    {
      what: 'a token that breaks out of its header',
      status: 200,
      body: { token_type: 'Bearer', access_token: 'a\r\nHost: b' },
      message: REFUSED,
      said: 'no access_token',
    },
    {
      what: 'a huge token',
      status: 200,
      body: { token_type: 'Bearer', access_token: 'a'.repeat(20_000) },
      message: REFUSED,
      said: 'no access_token',
    },
    {
      what: 'a token of another type',
      status: 200,
      body: { token_type: 'N_A', access_token: 'a' },
      message: REFUSED,
      said: 'N_A',
    },
    { what: 'a fault of its own', status: 503, body: {}, message: UNREACHABLE, said: '503' },
    {
      what: 'that there are too many requests',
      status: 429,
      body: {},
      message: UNREACHABLE,
      said: '429',
    },
    { what: 'a redirect', status: 302, body: {}, message: UNREACHABLE, said: 'redirect' },
  ])(
    '§18.6 token-exchange: $what is told to the model, and to the operator in full',
    async ({ status, body, message, said }) => {
      provider.answer(status, body);
      const token = await signIn();
      await expect(provider.create()(callerOf(token))).rejects.toMatchObject({
        name: 'UpstreamError',
        failure: 'unavailable',
        message: expect.stringMatching(message),
      });
      expect(provider.lines).toEqual([
        expect.objectContaining({
          level: 'warn',
          server: 'wiki',
          audience: AUDIENCE,
          reason: expect.stringContaining(said),
        }),
      ]);
    },
  );

  test("§18.6 token-exchange: a provider that repeats the caller's token does not write it to the log", async () => {
    const token = await signIn();
    provider.answer(400, { error: 'invalid_grant', error_description: `bad token ${token}` });
    const getting = Promise.resolve(provider.create()(callerOf(token)));
    const thrown = await getting.catch((error: unknown) => error);
    expect(provider.lines).toHaveLength(1);
    expect(JSON.stringify(provider.lines)).not.toContain(token.slice(0, 50));
    expect(String(thrown)).not.toContain(token.slice(0, 50));
  });

  test('§18.6 token-exchange: a model that tries again at once is not heard by the provider', async () => {
    provider.answer(400, { error: 'invalid_target' });
    const getHeaders = provider.create();
    const ada = callerOf(await signIn());
    for (let index = 0; index < 5; index += 1)
      await expect(getHeaders(ada)).rejects.toThrow(REFUSED);
    expect(provider.received).toHaveLength(1);
    provider.issue();
    provider.clock.advance(3001);
    expect(await getHeaders(ada)).toEqual({ authorization: 'Bearer token-1' });
  });
});
