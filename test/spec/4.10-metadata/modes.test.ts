import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { createLoginSteps, REDIRECT } from '../../support/oauth/login-steps.ts';
import { startUpstream } from '../../support/oauth/upstream.ts';

const BASE = 'https://gw.example';
const PROXY = {
  BASE_URL: BASE,
  OAUTH_AUTHORIZATION_URL: 'https://id.example/authorize',
  OAUTH_TOKEN_URL: 'https://id.example/token',
  OAUTH_CLIENT_ID: 'provider-client',
};
const BROKER = { ...PROXY, OAUTH_MODE: 'broker' };

let gateway: TestGateway;

const start = async (env: Record<string, string>) => {
  gateway = closeAfterTest(await startGateway({ env }));
  return createLoginSteps(gateway);
};

describe('metadata by mode', () => {
  const METADATA = ['oauth-authorization-server', 'openid-configuration'];

  test.each([
    { env: PROXY, issuer: 'upstream', iss: undefined, documents: undefined },
    {
      env: { ...PROXY, OAUTH_METADATA_ISSUER: 'self' },
      issuer: 'self',
      iss: undefined,
      documents: undefined,
    },
    {
      env: { ...PROXY, CIMD_ALLOWED_HOSTS: 'claude.ai' },
      issuer: 'upstream',
      iss: undefined,
      documents: true,
    },
    { env: BROKER, issuer: 'self', iss: true, documents: true },
    {
      env: { ...BROKER, CIMD_ALLOWED_HOSTS: 'none', OAUTH_METADATA_ISSUER: 'upstream' },
      issuer: 'self',
      iss: true,
      documents: undefined,
    },
  ])('§4.10 $env.OAUTH_MODE $issuer: issuer and what is supported', async (row) => {
    await start(row.env);
    for (const name of METADATA) {
      const { json } = await gateway.request({ path: `/.well-known/${name}` });
      expect(json.issuer).toBe(row.issuer === 'self' ? BASE : gateway.issuer.url);
      expect(json.authorization_response_iss_parameter_supported).toBe(row.iss);
      expect(json.client_id_metadata_document_supported).toBe(row.documents);
    }
    const resource = await gateway.request({ path: '/.well-known/oauth-protected-resource/mcp' });
    expect(resource.json.authorization_servers).toEqual([BASE]);
  });

  test('§4.10 proxy mode says at start which clients will not log in, and what to set', async () => {
    await start(PROXY);
    const said = () =>
      gateway.log.filter(({ msg }) => /compare the issuer.*OAUTH_MODE=broker/.test(msg));
    expect(said()).toEqual([expect.objectContaining({ level: 'info' })]);
    await gateway.close();
    await start(BROKER);
    expect(said()).toEqual([]);
  });
});

describe('consent in proxy mode', () => {
  test('§4.6 off by default: neither page nor callback is there', async () => {
    const steps = await start(PROXY);
    const client = await steps.register();
    expect((await steps.authorize(client)).status).toBe(302);
    expect((await steps.post('/oauth/consent', {})).status).toBe(404);
    expect((await steps.get('/oauth/callback')).status).toBe(404);
  });

  test('§4.6 OAUTH_CONSENT=page asks first, then sends the client’s own request on', async () => {
    const steps = await start({ ...PROXY, OAUTH_CONSENT: 'page' });
    const client = await steps.register();
    const { asked } = await steps.approve(client, { anything: 'else' });
    expect(Object.fromEntries(asked.searchParams)).toMatchObject({
      client_id: 'provider-client',
      redirect_uri: REDIRECT,
      code_challenge: client.challenge,
      anything: 'else',
    });
    // By the provider's own client nobody comes past the question.
    const own = await steps.authorize({ ...client, id: 'provider-client' });
    expect([own.status, own.json.error]).toEqual([400, 'invalid_client']);
    const denied = await steps.decide(await steps.ask(await steps.register()), 'deny');
    expect(new URL(denied.headers.location ?? '').searchParams.get('error')).toBe('access_denied');
  });
});

test('§4.6 OAUTH_CONSENT=off in broker mode with open registration is warned of', async () => {
  const warnings = () =>
    gateway.log.filter(({ level, msg }) => level === 'warn' && /OAUTH_CONSENT/.test(msg));
  await start({ ...BROKER, OAUTH_CONSENT: 'off' });
  expect(warnings()).toHaveLength(1);
  await gateway.close();
  await start({
    ...BROKER,
    OAUTH_CONSENT: 'off',
    CIMD_ALLOWED_HOSTS: 'none',
    DCR_ACCESS_TOKEN: 'a-secret-of-the-house',
  });
  expect(warnings()).toEqual([]);
});

describe('registration by mode', () => {
  test('§4.8 DCR_ACCESS_TOKEN: registration needs it, and nothing else does', async () => {
    const steps = await start({ ...PROXY, DCR_ACCESS_TOKEN: 'a-secret-of-the-house' });
    const register = (authorization?: string) =>
      gateway.request({
        method: 'POST',
        path: '/oauth/register',
        body: { redirect_uris: [REDIRECT] },
        headers: authorization === undefined ? {} : { authorization },
      });
    for (const wrong of [undefined, 'Bearer wrong', 'Basic a-secret-of-the-house', 'Bearer']) {
      const { status, json, headers } = await register(wrong);
      expect([status, json.error]).toEqual([401, 'invalid_token']);
      expect(headers['www-authenticate']).toBe('Bearer');
    }
    const { status, json } = await register('Bearer a-secret-of-the-house');
    expect(status).toBe(201);
    expect(
      (await steps.authorize({ id: json.client_id, verifier: '', challenge: 'x'.repeat(43) }))
        .status,
    ).toBe(302);
    expect(JSON.stringify(gateway.log)).not.toContain('a-secret-of-the-house');
  });

  test('§4.8 OAUTH_REDIRECT_SCHEMES and [::1] are broker mode’s by default', async () => {
    await start(PROXY);
    for (const uri of ['cursor://x/cb', 'http://[::1]:1/cb']) {
      const body = { redirect_uris: [uri] };
      const { json } = await gateway.request({ method: 'POST', path: '/oauth/register', body });
      expect(json.error).toBe('invalid_redirect_uri');
    }
  });
});

describe('popups', () => {
  test.each([
    { popups: 'true', policy: 'unsafe-none' },
    { popups: 'false', policy: 'same-origin' },
  ])('§4.12 OAUTH_POPUPS=$popups: $policy on the pages of the login only', async (row) => {
    const steps = await start({ ...BROKER, OAUTH_POPUPS: row.popups });
    const client = await steps.register();
    const policyOf = ({ headers }: { headers: Readonly<Record<string, string | undefined>> }) =>
      headers['cross-origin-opener-policy'];
    expect(policyOf(await steps.authorize(client))).toBe(row.policy);
    expect(policyOf(await steps.decide(await steps.ask(client)))).toBe(row.policy);
    expect(policyOf(await steps.callback({ state: 'x' }))).toBe(row.policy);
    expect(policyOf(await steps.get('/health'))).toBe('same-origin');
  });
});

describe('start-up errors of broker mode', () => {
  const problems = (env: Record<string, string>) => {
    try {
      loadConfig({ OIDC_ISSUER: 'https://id.example', ...env });
      return [];
    } catch (error) {
      return error instanceof ConfigError ? error.problems : [String(error)];
    }
  };

  test.each([
    { what: 'plain http', env: { ...BROKER, BASE_URL: 'http://gw.example' }, says: 'BASE_URL' },
    {
      what: 'no client',
      env: { OAUTH_MODE: 'broker', BASE_URL: BASE },
      says: 'OAUTH_CLIENT_ID is missing',
    },
    {
      what: 'Redis without a secret',
      env: { ...BROKER, REDIS_URL: 'redis://localhost' },
      says: 'OAUTH_STATE_SECRET is missing',
    },
    {
      what: 'the consent page on Redis without a secret',
      env: { ...PROXY, OAUTH_CONSENT: 'page', REDIS_URL: 'redis://localhost' },
      says: 'OAUTH_STATE_SECRET is missing',
    },
    {
      what: 'a short secret',
      env: { ...BROKER, OAUTH_STATE_SECRET: `${'x'.repeat(32)},tooshort` },
      says: 'OAUTH_STATE_SECRET: the value given (not shown)',
    },
    {
      what: 'javascript:',
      env: { ...BROKER, OAUTH_REDIRECT_SCHEMES: 'javascript' },
      says: 'OAUTH_REDIRECT_SCHEMES',
    },
    {
      what: 'a host with a port',
      env: { ...BROKER, CIMD_ALLOWED_HOSTS: 'a.example:1' },
      says: 'CIMD_ALLOWED_HOSTS',
    },
    {
      what: 'another mode',
      env: { ...BROKER, OAUTH_MODE: 'both' },
      says: 'OAUTH_MODE: "both" is not valid',
    },
  ])('§5 $what: one sentence that names the variable', ({ env, says }) => {
    expect(problems(env)).toEqual([expect.stringContaining(says)]);
  });

  test.each(['http://localhost:3000', 'http://127.0.0.1:3000', 'http://[::1]:3000', BASE])(
    '§5 BASE_URL %s can be an issuer',
    (url) => expect(problems({ ...BROKER, BASE_URL: url })).toEqual([]),
  );
});

test('§4.7 broker: no code, verifier or token lies in the store as it is', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-sealed-'));
  const upstream = await startUpstream();
  try {
    const steps = await start({ ...BROKER, OAUTH_TOKEN_URL: upstream.url, DATA_DIR: dataDir });
    const client = await steps.register({ client_name: 'can be found' });
    const question = await steps.ask(client);
    const { cookie, asked } = await steps.approve(client);
    const state = asked.searchParams.get('state') ?? '';
    const idToken = await gateway.issuer.sign({
      aud: 'provider-client',
      iat: Math.floor(Date.now() / 1000),
      nonce: asked.searchParams.get('nonce'),
    });
    const tokens = {
      access_token: 'the-access-token',
      refresh_token: 'the-refresh-token',
      id_token: idToken,
    };
    upstream.answer((res) => void res.end(JSON.stringify(tokens)));
    const { headers } = await steps.callback({ code: 'the-provider-code', state }, cookie);
    const back = new URL(headers.location ?? '');
    const whole = async () => (await readFile(join(dataDir, 'store.mdb'))).toString('latin1');
    const before = await whole();
    const { json } = await steps.redeem(client, back);
    expect((await steps.refresh(client, json.refresh_token)).status).toBe(200);
    const stored = before + (await whole());
    expect(stored).toContain('can be found');
    const sent = Object.fromEntries(upstream.received[0]?.form ?? []);
    const secrets = [
      ...Object.values(question.form),
      question.cookie.split('=')[1],
      state,
      back.searchParams.get('code'),
      sent.code_verifier,
      'the-provider-code',
      ...Object.values(tokens),
      json.access_token,
      json.refresh_token,
    ];
    for (const secret of secrets) {
      expect(secret?.length).toBeGreaterThan(10);
      expect(stored).not.toContain(secret);
    }
  } finally {
    await upstream.close();
    await rm(dataDir, { recursive: true, force: true });
  }
});
