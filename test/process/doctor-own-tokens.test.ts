// `postern doctor` where clients get the gateway's own tokens (§5.11): what they need of the provider, what they do not,
// and the mistakes that are left.
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createGrantId } from '../../src/logins/grants/grant.ts';
import { createTokenCodec, hashResource, hashUser } from '../../src/logins/grants/token-codec.ts';
import { createSeal } from '../../src/store/seal/seal.ts';
import { type DoctorHow, runDoctor } from '../support/gateway/doctor.ts';
import { startInside } from '../support/gateway/gateway-inside.ts';
import { freePort } from '../support/gateway/ports.ts';
import { type Env, endPosterns, startPostern } from '../support/gateway/process.ts';
import { logIn } from '../support/gateway/process-login.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { startIssuer } from '../support/oauth/issuer.ts';
import { startProvider } from '../support/oauth/provider.ts';
import { startUpstream } from '../support/oauth/upstream.ts';
import { startRedis } from '../support/stores/redis.ts';

const CLIENT = { secret: 'the-secret-of-the-gateway', auth: 'post' } as const;
const BASE_URL = 'http://localhost:9';
const SECRET = 'a-secret-of-the-gateway-that-is-long-enough';

const provider = useShared(() => startProvider({ gatewayUrl: BASE_URL, client: CLIENT }));
/** Its document says what a test wants it to say, and leads to the provider. */
const issuer = useShared(startIssuer);
let env: Env;

beforeAll(() => {
  env = {
    ...withoutEndpoints(provider.env),
    BASE_URL,
    HOST: '127.0.0.1',
    OAUTH_MODE: 'broker',
    OAUTH_STATE_SECRET: SECRET,
    CIMD_ALLOWED_HOSTS: 'none',
  };
});
afterEach(endPosterns);

const withoutEndpoints = (given: Env): Env =>
  Object.fromEntries(Object.entries(given).filter(([name]) => !/^OAUTH_\w+_URL$/.test(name)));

const diagnose = (changed: Env = {}, how: DoctorHow = {}) =>
  runDoctor(undefined, { ...how, env: { ...env, ...changed } });

/** With a provider whose discovery document has these members. */
async function diagnoseProvider(document: Readonly<Record<string, unknown>>, changed: Env = {}) {
  issuer.document = {
    authorization_endpoint: `${provider.issuer}/auth`,
    token_endpoint: `${provider.issuer}/token`,
    ...document,
  };
  return diagnose({ OIDC_ISSUER: issuer.url, ...changed });
}

describe('doctor: what own tokens need', () => {
  test('§20.2 doctor: six settings are enough, and what the provider need not do is said', async () => {
    const { code, failures, find } = await diagnose();
    expect([code, failures]).toEqual([0, []]);
    for (const check of [
      'tokens',
      'tokens.not-needed',
      'provider.discovery',
      'provider.key-set',
      'provider.offline-access',
      'provider.revocation',
      'provider.client-secret',
      'provider.redirect-uri',
    ]) {
      expect(find(check).status, check).toBe('ok');
    }
    expect(find('tokens.not-needed').what).toMatch(
      /^Own tokens: the provider need not issue JWT access tokens\. .*mapper.*algorithm.*OIDC_AUDIENCE/,
    );
    expect(find('token').what).toContain('whether a login works to the end');
  });

  test('§20.2 doctor: a setting that was removed is named, with the way on', async () => {
    const { code, failures, find } = await diagnose({ OAUTH_TOKENS: 'provider' });
    expect([code, failures]).toEqual([1, ['settings']]);
    expect(find('settings')).toMatchObject({
      setting: 'OAUTH_TOKENS',
      what: expect.stringContaining('Remove it.'),
    });
  });

  test.each<{ what: string; changed: Env; said: RegExp }>([
    {
      what: 'nobody in particular',
      changed: {},
      said: /^All users at the provider may log in/,
    },
    {
      what: 'addresses and claims',
      changed: {
        LOGIN_ALLOWED_EMAILS: '*@example.com,ada@example.org',
        LOGIN_ALLOWED_CLAIMS: 'hd=example.com',
      },
      said: /only these may log in: LOGIN_ALLOWED_EMAILS=\*@example\.com,ada@example\.org and LOGIN_ALLOWED_CLAIMS=hd=example\.com\.$/,
    },
    {
      what: 'groups',
      changed: { LOGIN_ALLOWED_GROUPS: 'staff' },
      said: /only these may log in: LOGIN_ALLOWED_GROUPS=staff\.$/,
    },
  ])('§20.2 doctor: who may log in, where the settings name $what', async ({ changed, said }) => {
    const { code, find } = await diagnose(changed);
    expect([code, find('login-policy')]).toMatchObject([
      0,
      { status: 'ok', what: expect.stringMatching(said) },
    ]);
  });

  test('§20.2 doctor: OIDC_AUDIENCE has no use, which is said with the way on', async () => {
    const { failures, find } = await diagnose({ OIDC_AUDIENCE: 'https://mcp.example.com' });
    expect(failures).toEqual(['settings']);
    expect(find('settings')).toMatchObject({
      setting: 'OIDC_AUDIENCE',
      what: expect.stringMatching(/Remove it\..*OAUTH_ACCEPT_PROVIDER_TOKENS=true/),
    });
  });
});

describe('doctor: planted mistakes that are left', () => {
  test('§20.2 doctor: a wrong client secret, with own tokens', async () => {
    const { code, failures } = await diagnose({ OAUTH_CLIENT_SECRET: 'another' });
    expect([code, failures]).toEqual([1, ['provider.client-secret']]);
  });

  test('§20.2 doctor: a wrong issuer, with own tokens', async () => {
    const { failures } = await diagnose({ OIDC_ISSUER: `${provider.issuer}/` });
    expect(failures).toContain('provider.issuer');
  });

  test('§20.2 doctor: no scope openid in the list of the provider', async () => {
    const { find } = await diagnoseProvider({ scopes_supported: ['api.read', 'offline_access'] });
    expect(find('provider.openid')).toMatchObject({ status: 'warning', setting: 'OIDC_ISSUER' });
  });

  test('§20.2 doctor: a client that may not ask for openid', async () => {
    const endpoint = closeAfterTest(await startUpstream());
    endpoint.answer((res) => {
      const Location = `${BASE_URL}/oauth/callback?error=invalid_scope&error_description=openid`;
      res.writeHead(302, { Location }).end();
    });
    const { failures, find } = await diagnose({ OAUTH_AUTHORIZATION_URL: `${endpoint.url}/auth` });
    expect(failures).toEqual(['provider.authorization-request']);
    expect(find('provider.authorization-request').remedy).toContain('allow it openid');
  });

  test('§20.2 doctor: a provider without offline_access: what follows, and the setting that says how long', async () => {
    const scopes_supported = ['openid', 'profile', 'email'];
    const { code, find } = await diagnoseProvider({ scopes_supported });
    expect(code).toBe(0);
    expect(find('provider.offline-access')).toMatchObject({
      status: 'warning',
      why: expect.stringContaining('OAUTH_GRANT_UNRENEWED_SECONDS (28800 s)'),
      setting: 'OAUTH_ADDED_SCOPES, OAUTH_GRANT_UNRENEWED_SECONDS',
    });
    const added = { OAUTH_ADDED_SCOPES: 'offline_access' };
    const asked = await diagnoseProvider({ scopes_supported }, added);
    expect(asked.find('provider.offline-access').status).toBe('ok');
  });

  test.each<{ what: string; document: object; changed?: Env; said: RegExp; why?: RegExp }>([
    {
      what: 'cannot tell of logouts',
      document: {},
      said: /does not say that it can notify the gateway of logouts/,
    },
    {
      what: 'says that it cannot',
      document: { backchannel_logout_supported: 'true' },
      said: /does not say that it can notify the gateway of logouts/,
    },
    {
      what: 'tells of logouts, by session',
      document: { backchannel_logout_supported: true, backchannel_logout_session_supported: true },
      said: /Register http:\/\/localhost:9\/oauth\/backchannel-logout as back-channel logout URL of the gateway's client\.$/,
      why: /logins from that session end/,
    },
    {
      what: 'tells of logouts, by session, where all end',
      document: { backchannel_logout_supported: true, backchannel_logout_session_supported: true },
      changed: { OAUTH_BACKCHANNEL_ENDS: 'all' },
      said: /Register/,
      why: /all logins of the user end/,
    },
    {
      what: 'tells of logouts, without the session',
      document: { backchannel_logout_supported: true },
      said: /backchannel_logout_session_supported/,
      why: /all logins of the user end/,
    },
  ])('§20.2 doctor: a provider that $what', async ({ document, changed, said, why = /^$/ }) => {
    const { code, find } = await diagnoseProvider({ ...document }, changed);
    const found = find('provider.backchannel-logout');
    expect([code, found.status]).toEqual([0, 'ok']);
    expect(found.what).toMatch(said);
    expect(found.why ?? '').toMatch(why);
  });

  test('§20.2 doctor: whether users can log out at the provider, and what to register for that', async () => {
    const without = await diagnoseProvider({});
    expect(without.find('provider.end-session').what).toContain('no page');
    const end_session_endpoint = 'https://login.example/logout';
    const { find } = await diagnoseProvider({ end_session_endpoint });
    expect(find('provider.end-session').what).toMatch(
      /log out at login\.example, too\. Register http:\/\/localhost:9\/account as post-logout/,
    );
  });

  test('§20.2 doctor: a provider that signs ID tokens with a shared secret', async () => {
    const { failures, find } = await diagnoseProvider({
      id_token_signing_alg_values_supported: ['HS256'],
    });
    expect(failures).toEqual(['provider.id-token']);
    expect(find('provider.id-token').what).toContain('HS256');
  });
});

describe('doctor --token: own tokens', () => {
  const codec = createTokenCodec(createSeal([SECRET]), BASE_URL);
  const grantId = createGrantId();
  const seconds = () => Math.floor(Date.now() / 1000);
  const write = (expiresAt: number) =>
    codec.writeAccessToken({
      grantId,
      userKey: hashUser({ issuer: 'https://idp.example', sub: 'ann' }),
      generation: 1,
      issuedAt: expiresAt - 3600,
      expiresAt,
      scopeMask: 1,
      resourceHashes: [hashResource(`${BASE_URL}/mcp`)],
    });
  const check = (token: string, changed: Env = {}) =>
    diagnose(changed, { args: ['--token', token] });

  test('§20.2, §13.3 doctor --token: one of the provider whose user may not use the gateway, and what to set', async () => {
    const accepting = {
      OIDC_ISSUER: issuer.url,
      OIDC_AUDIENCE: `${BASE_URL}/mcp`,
      OAUTH_ACCEPT_PROVIDER_TOKENS: 'true',
      LOGIN_ALLOWED_EMAILS: '*@example.com',
      LOGIN_EXEMPT_CLIENTS: 'nightly',
    };
    const judge = async (azp: string) => {
      const token = await issuer.sign({ aud: `${BASE_URL}/mcp`, sub: 'service', azp });
      const { find } = await diagnose(accepting, { args: ['--token', token] });
      return find('token');
    };
    expect((await judge('nightly')).status).toBe('ok');
    expect(await judge('app')).toMatchObject({
      status: 'failure',
      setting: 'LOGIN_ALLOWED_EMAILS, LOGIN_ALLOWED_GROUPS, LOGIN_ALLOWED_CLAIMS',
      remedy: expect.stringContaining('LOGIN_EXEMPT_CLIENTS'),
    });
  });

  test('§20.2 doctor --token: what a token of the gateway is, without a word of it', async () => {
    const token = write(seconds() + 1800);
    const { failures, find, findings } = await check(token);
    expect(failures).toEqual([]);
    expect(find('token').what).toMatch(
      new RegExp(`of the login \\(grant\\) ${grantId}, with 30 min`),
    );
    expect(JSON.stringify(findings)).not.toContain(token);
  });

  test.each([
    ['that has expired', () => write(seconds() - 60), 'token.expired'],
    ['that was cut', () => write(seconds() + 1800).slice(0, -3), 'token.unknown'],
    ['for refreshes', () => codec.writeRefreshToken({ grantId, generation: 1 }), 'token.refresh'],
    ['of the provider', () => 'an-opaque-token-of-the-provider', 'token.not-own'],
  ])('§20.2 doctor --token: one %s', async (_name, make, name) => {
    const { code, failures } = await check(make());
    expect([code, failures]).toEqual([1, [name]]);
  });

  test('§20.2 doctor --token: one of another secret', async () => {
    const { failures } = await check(write(seconds() + 1800), {
      OAUTH_STATE_SECRET: 'another-secret-that-is-long-enough-as-well',
    });
    expect(failures).toEqual(['token.unknown']);
  });
});

test('§20.2 doctor URL: a gateway with own tokens, and calls by one: good, revoked, and of somebody else', async () => {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const own = closeAfterTest(await startProvider({ gatewayUrl: url }));
  await startPostern({
    ...own.env,
    OAUTH_MODE: 'broker',
    CIMD_ALLOWED_HOSTS: 'none',
    PORT: String(port),
  });
  const without = await runDoctor(url);
  expect(without.failures).toEqual([]);
  expect(without.find('token').what).toContain('whether a login works to the end');
  // A made-up refresh token is refused by the gateway itself: that says nothing of the provider.
  expect(without.find('provider.client-secret').status).toBe('unknown');

  const { accessToken, clientId } = await logIn(url, 'ann');
  expect(accessToken).toMatch(/^pst_/);
  const called = await runDoctor(url, { args: ['--token', accessToken] });
  expect(called.failures).toEqual([]);
  expect(called.find('token').what).toContain("one of the gateway's own");
  expect(called.find('tools').what).toContain('service_ping');

  const foreign = await runDoctor(url, { args: ['--token', 'an-opaque-token'] });
  expect(foreign.failures).toEqual(['token.not-own']);

  const body = new URLSearchParams({ token: accessToken, client_id: clientId });
  await fetch(`${url}/oauth/revoke`, { method: 'POST', body });
  const revoked = await runDoctor(url, { args: ['--token', accessToken] });
  expect(revoked.failures).toEqual(['token.revoked']);
});

test('§20.2 doctor: how many logins still need an older secret', async () => {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const own = closeAfterTest(await startProvider({ gatewayUrl: url }));
  const redis = closeAfterTest(await startRedis());
  const settings = {
    ...own.env,
    OAUTH_MODE: 'broker',
    CIMD_ALLOWED_HOSTS: 'none',
    PORT: String(port),
    REDIS_URL: redis.url,
  };
  const old = await startInside({ ...settings, OAUTH_STATE_SECRET: SECRET });
  const logins = [await logIn(url, 'ann'), await logIn(url, 'ben')];
  await old.close();
  const both = { ...settings, OAUTH_STATE_SECRET: `a-newer-${SECRET},${SECRET}` };
  await startInside(both);
  const seen = async () => (await runDoctor(undefined, { env: both })).find('store.secrets').what;
  expect(await seen()).toMatch(/^2 of 2 logins /);
  for (const [login, expected] of [
    [logins[0], /^1 of 2 logins /],
    [logins[1], /^No login needs an older .* \(2 are /],
  ] as const) {
    const { refreshToken = '', clientId = '' } = login ?? {};
    const answer = await fetch(`${url}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: refreshToken,
        client_id: clientId,
      }),
    });
    expect(answer.status).toBe(200);
    expect(await seen()).toMatch(expected);
  }
});

test('§20.2 doctor: a login needs an older secret as long as its client has a token by it, whatever it calls', async () => {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const own = closeAfterTest(await startProvider({ gatewayUrl: url }));
  const redis = closeAfterTest(await startRedis());
  const settings = {
    ...own.env,
    OAUTH_MODE: 'broker',
    CIMD_ALLOWED_HOSTS: 'none',
    PORT: String(port),
    REDIS_URL: redis.url,
  };
  const refresh = async (
    body: Readonly<Record<string, string>>,
  ): Promise<Readonly<Record<'access_token' | 'refresh_token', string>>> => {
    const form = new URLSearchParams({ grant_type: 'refresh_token', ...body });
    const answer = await fetch(`${url}/oauth/token`, { method: 'POST', body: form });
    expect(answer.status).toBe(200);
    return JSON.parse(await answer.text());
  };
  const old = await startInside({ ...settings, OAUTH_STATE_SECRET: SECRET });
  const { refreshToken = '', clientId: client_id } = await logIn(url, 'ann');
  const first = await refresh({ refresh_token: refreshToken, client_id, scope: 'openid' });
  await old.close();
  const both = { ...settings, OAUTH_STATE_SECRET: `a-newer-${SECRET},${SECRET}` };
  await startInside(both);
  const seen = async () => (await runDoctor(undefined, { env: both })).find('store.secrets').what;
  // Its grant notes that its tokens are in use now.
  const call = await runDoctor(url, { args: ['--token', first.access_token] });
  expect(call.failures).toEqual([]);
  expect(await seen()).toMatch(/^1 of 1 logins /);
  await refresh({ refresh_token: first.refresh_token, client_id, scope: 'openid' });
  expect(await seen()).toMatch(/^No login needs an older /);
});
