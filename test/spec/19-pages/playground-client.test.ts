// §19.3: the gateway's own client. It needs no registration, and has one redirect URI.
import { describe, expect, test } from 'vitest';
import { useGateway } from '../../support/gateway/use-gateway.ts';
import { useShared } from '../../support/lifetimes.ts';
import { BASE, startBroker } from '../../support/oauth/broker.ts';
import { type Client, createLoginSteps, newPkce } from '../../support/oauth/login-steps.ts';
import { startUpstream } from '../../support/oauth/upstream.ts';

const ID = 'postern-playground';
const CALLBACK = `${BASE}/playground/callback`;

/** Everything but the one: nearly the same, elsewhere, and the gateway's other addresses. */
const OTHER_URIS = [
  `${CALLBACK}/`,
  `${CALLBACK}?x=1`,
  `${CALLBACK}#x`,
  `${BASE}/playground/Callback`,
  `${BASE}/playground`,
  `${BASE}/oauth/callback`,
  `${BASE}:443/playground/callback`,
  `${BASE.replace('https', 'http')}/playground/callback`,
  'https://evil.example/playground/callback',
  'https://GW.example/playground/callback',
  'http://localhost:3000/playground/callback',
];

const newPlayground = (): Client => ({ id: ID, ...newPkce() });

describe('in broker mode', () => {
  const broker = useShared(() => startBroker({ OAUTH_LOOPBACK_ANY_PORT: 'true' }));

  test('§19.3 the playground logs in without a registration, by its one redirect URI', async () => {
    const { steps } = broker;
    const playground = newPlayground();
    const back = await steps.logIn(playground, { redirect_uri: CALLBACK });
    expect(`${back.origin}${back.pathname}`).toBe(CALLBACK);
    const { status, json } = await steps.redeem(playground, back, { redirect_uri: CALLBACK });
    expect(status).toBe(200);
    expect(json.access_token).toMatch(/^pst_/);
  });

  test('§19.3 its user is asked as for any other client, and told that it is the gateway’s own', async () => {
    const { steps } = broker;
    const { status, text } = await steps.authorize(newPlayground(), { redirect_uri: CALLBACK });
    expect(status).toBe(200);
    expect(text).toContain('Playground');
    expect(text).toContain('this gateway: it is one of its own pages');
    expect(text).toContain(CALLBACK);
  });

  test.each(OTHER_URIS)('§19.3 nobody gets %s by its id', async (redirectUri) => {
    const { status, json, headers } = await broker.steps.authorize(newPlayground(), {
      redirect_uri: redirectUri,
    });
    expect(status).toBe(400);
    expect(json.error).toBe('invalid_redirect_uri');
    expect(headers.location).toBeUndefined();
  });

  test.each(['POSTERN-PLAYGROUND', 'postern-playground ', 'postern-playground2', 'postern'])(
    '§19.3 the id %j is unknown',
    async (id) => {
      const { status, json } = await broker.steps.authorize(
        { ...newPlayground(), id },
        { redirect_uri: CALLBACK },
      );
      expect({ status, error: json.error }).toEqual({ status: 400, error: 'invalid_client' });
    },
  );

  test('§19.3 without PKCE, or with plain, there is no login', async () => {
    for (const change of [
      { code_challenge: undefined, code_challenge_method: undefined },
      { code_challenge_method: 'plain' },
      { code_challenge_method: undefined },
    ]) {
      const { status, text } = await broker.steps.authorize(newPlayground(), {
        redirect_uri: CALLBACK,
        ...change,
      });
      expect(status).toBe(400);
      expect(text).toContain('invalid_request');
    }
  });

  test('§19.3 no other client registers its redirect URI, nor redeems its code', async () => {
    const { steps } = broker;
    const refused = await broker.gateway.request({
      method: 'POST',
      path: '/oauth/register',
      body: { redirect_uris: [CALLBACK] },
    });
    expect(refused.json.error).toBe('invalid_redirect_uri');

    const back = await steps.logIn(newPlayground(), { redirect_uri: CALLBACK });
    const other = await steps.register();
    const { status, json } = await steps.redeem(other, back, { redirect_uri: CALLBACK });
    expect({ status, error: json.error }).toEqual({ status: 400, error: 'invalid_grant' });
  });
});

describe('in proxy mode', () => {
  const upstream = useShared(startUpstream);
  const gateway = useGateway(() => ({
    env: {
      BASE_URL: BASE,
      OAUTH_AUTHORIZATION_URL: 'https://id.example/authorize',
      OAUTH_TOKEN_URL: `${upstream.url}/token`,
      OAUTH_CLIENT_ID: 'provider-client',
      OAUTH_CLIENT_SECRET: 'provider-secret',
    },
  }));
  const steps = () => createLoginSteps(gateway);

  test('§19.3 its id is replaced by the provider’s client, as a registered client’s is', async () => {
    const { status, headers } = await steps().authorize(newPlayground(), {
      redirect_uri: CALLBACK,
    });
    expect(status).toBe(302);
    const asked = new URL(headers.location ?? '');
    expect(asked.origin).toBe('https://id.example');
    expect(asked.searchParams.get('client_id')).toBe('provider-client');
    expect(asked.searchParams.get('redirect_uri')).toBe(CALLBACK);
  });

  test('§19.3 its code is redeemed with the gateway’s credentials', async () => {
    upstream.answer((res) => void res.writeHead(200).end('{"access_token":"t"}'));
    const back = new URL(`${CALLBACK}?code=the-code`);
    const { status } = await steps().redeem(newPlayground(), back, { redirect_uri: CALLBACK });
    expect(status).toBe(200);
    expect(Object.fromEntries(upstream.received.at(-1)?.form ?? [])).toMatchObject({
      client_id: 'provider-client',
      client_secret: 'provider-secret',
      redirect_uri: CALLBACK,
    });
  });

  test.each(OTHER_URIS)('§19.3 neither a login nor a token for %s by its id', async (uri) => {
    const asked = await steps().authorize(newPlayground(), { redirect_uri: uri });
    expect(asked.json.error).toBe('invalid_redirect_uri');
    const before = upstream.received.length;
    const back = new URL(`${CALLBACK}?code=the-code`);
    const redeemed = await steps().redeem(newPlayground(), back, { redirect_uri: uri });
    expect(redeemed.json.error).toBe('invalid_grant');
    expect(upstream.received).toHaveLength(before);
  });
});
