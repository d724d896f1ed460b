// `postern doctor` without a URL: the mistakes that newcomers make in their settings, each found by its name.
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type DoctorHow, runDoctor } from '../support/gateway/doctor.ts';
import { freePort } from '../support/gateway/ports.ts';
import { type Env, endPosterns, makeFolder } from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { startIssuer } from '../support/oauth/issuer.ts';
import { startProvider } from '../support/oauth/provider.ts';
import { startProxy } from '../support/oauth/proxy.ts';
import { startUpstream } from '../support/oauth/upstream.ts';

const CLIENT = { secret: 'the-secret-of-the-gateway', auth: 'post' } as const;
const BASE_URL = 'http://localhost:9';

const provider = useShared(() => startProvider({ gatewayUrl: BASE_URL, client: CLIENT }));
const issuer = useShared(startIssuer);
let env: Env;

beforeAll(() => {
  env = {
    ...withoutEndpoints(provider.env),
    BASE_URL,
    HOST: '127.0.0.1',
    OAUTH_MODE: 'broker',
    CIMD_ALLOWED_HOSTS: 'none',
  };
});
afterEach(endPosterns);

/** In broker mode the discovery document names them. */
const withoutEndpoints = (given: Env): Env =>
  Object.fromEntries(Object.entries(given).filter(([name]) => !/^OAUTH_\w+_URL$/.test(name)));

const diagnose = (changed: Env = {}, how: DoctorHow = {}) =>
  runDoctor(undefined, { ...how, env: { ...env, ...changed } });

/** The last line that doctor prints, which is wrapped. */
async function readStart(given: Env): Promise<string> {
  const { stdout } = await runInside(given, { args: ['doctor'] });
  return stdout.slice(stdout.indexOf('Start here:')).trimEnd().replaceAll('\n', ' ');
}

const issuerEnv = (): Env => ({
  OIDC_ISSUER: issuer.url,
  BASE_URL: 'http://localhost:3000',
  PORT: '9',
  HOST: '127.0.0.1',
});

describe('doctor without a URL: settings that are right', () => {
  test('§20.2 doctor: nothing fails, and a gateway that does not run yet is no failure', async () => {
    const { code, failures, find } = await diagnose();
    expect([code, failures]).toEqual([0, []]);
    for (const check of [
      'settings',
      'provider.discovery',
      'provider.key-set',
      'provider.client-secret',
      'provider.redirect-uri',
      'clock',
      'store',
    ])
      expect(find(check).status, check).toBe('ok');
    expect(find('gateway.running').status).toBe('unknown');
    expect(find('token').status).toBe('unknown');
    expect(find('clients').what).toMatch(/^Would log in: .*TypeScript SDK 2\.x.*Cursor/);
  });

  test('§20.2 doctor: in proxy mode, which redirect URIs the provider does not know, and whom that shuts out', async () => {
    const { failures, find } = await diagnose({ ...provider.env, OAUTH_MODE: 'proxy' });
    expect(failures).toEqual([]);
    expect(find('provider.redirect-uri')).toMatchObject({
      status: 'warning',
      what: expect.stringContaining('https://claude.ai/api/mcp/auth_callback'),
      setting: 'OAUTH_MODE',
    });
    expect(find('clients.issuer').what).toContain('TypeScript SDK 2.x');
  });

  test('§20.2 doctor: it leaves nothing behind in the folder where it runs', async () => {
    const { readdir } = await import('node:fs/promises');
    const cwd = await makeFolder();
    await diagnose({}, { cwd });
    expect(await readdir(cwd)).toEqual([]);
  });
});

test('§20.2 doctor: what the limits leave for ten people behind one address', async () => {
  const there = { BASE_URL: 'https://mcp.example' };
  expect((await diagnose(there)).find('limits')).toMatchObject({
    status: 'warning',
    what: 'With these limits 10 people behind one address share 100 calls of /mcp a minute and 10 registrations of clients an hour.',
    setting: 'MCP_USER_RATE_LIMIT_MAX, MCP_RATE_LIMIT_MAX, DCR_RATE_LIMIT_MAX',
  });
  const raised = {
    MCP_USER_RATE_LIMIT_MAX: '300',
    MCP_RATE_LIMIT_MAX: '10000',
    DCR_RATE_LIMIT_MAX: '200',
  };
  expect((await diagnose({ ...there, ...raised })).find('limits')).toMatchObject({
    status: 'ok',
    what: 'With these limits 10 people behind one address share 10,000 calls of /mcp a minute (300 each at most) and 200 registrations of clients an hour.',
  });
});

describe('doctor without a URL: planted mistakes', () => {
  test('§20.2 doctor: an issuer with a slash too many', async () => {
    const { code, find } = await diagnose({ OIDC_ISSUER: `${provider.issuer}/` });
    expect(code).toBe(1);
    expect(find('provider.issuer')).toMatchObject({
      status: 'failure',
      setting: 'OIDC_ISSUER',
      why: expect.stringContaining('a slash at the end counts'),
      remedy: expect.stringContaining(`set OIDC_ISSUER=${provider.issuer} `),
    });
  });

  test('§20.2 doctor: an issuer without the slash that the provider has', async () => {
    issuer.document = { issuer: `${issuer.url}/` };
    const { failures, find } = await runDoctor(undefined, { env: issuerEnv() });
    issuer.document = {};
    expect(failures).toEqual(['provider.issuer']);
    expect(find('provider.issuer').remedy).toContain(`set OIDC_ISSUER=${issuer.url}/ `);
  });

  test('§20.2 doctor: a setting that is missing as its name is misspelled is told once, and begun with', async () => {
    const { OIDC_ISSUER = '', OAUTH_CLIENT_ID: _, ...others } = env;
    const misspelled = { ...others, OIDC_ISUER: OIDC_ISSUER };
    const { code, failures, find, findings } = await runDoctor(undefined, { env: misspelled });
    expect([code, failures]).toEqual([1, ['settings.misspelled', 'settings']]);
    expect(find('settings.misspelled').setting).toBe('OIDC_ISSUER');
    expect(find('settings').what).toMatch(/^OAUTH_CLIENT_ID is missing/);
    expect(JSON.stringify(findings)).not.toContain('OIDC_ISSUER is missing');
    expect(await readStart(misspelled)).toBe(
      'Start here: OIDC_ISUER is set, but Postern has no such setting: rename it to OIDC_ISSUER, if that is what you meant.',
    );
  });

  test('§20.2 doctor: a setting that is wrong as another spelling has its value: that is begun with', async () => {
    const { OAUTH_CLIENT_SECRET = '', ...others } = env;
    const misspelled = { ...others, OAUTH_CLIENT_SECRT: OAUTH_CLIENT_SECRET };
    const { failures, find } = await runDoctor(undefined, { env: misspelled });
    expect(failures).toContain('provider.client-secret');
    expect(find('settings.misspelled').status).toBe('warning');
    expect(await readStart(misspelled)).toContain('rename it to OAUTH_CLIENT_SECRET');
  });

  test('§20.2 doctor: a wrong client secret', async () => {
    const { code, failures, find } = await diagnose({ OAUTH_CLIENT_SECRET: 'another' });
    expect([code, failures]).toEqual([1, ['provider.client-secret']]);
    expect(find('clients')).toMatchObject({
      status: 'unknown',
      what: expect.stringContaining('Not tried'),
    });
    expect(find('provider.client-secret').setting).toContain('OAUTH_CLIENT_SECRET');
  });

  test('§20.2 doctor: a secret with its quotation marks', async () => {
    const { find } = await diagnose({ OAUTH_CLIENT_SECRET: `"${CLIENT.secret}"` });
    expect(find('provider.client-secret').remedy).toContain('quotation mark');
  });

  test('§20.2 doctor: a secret that the provider wants sent in another way', async () => {
    const endpoint = closeAfterTest(await startUpstream());
    endpoint.answer((res) => {
      const isBasic = endpoint.received.at(-1)?.headers.authorization?.startsWith('Basic ');
      const error = isBasic ? 'invalid_grant' : 'invalid_client';
      res.writeHead(400, { 'Content-Type': 'application/json' }).end(JSON.stringify({ error }));
    });
    const { failures, find } = await diagnose({ OAUTH_TOKEN_URL: `${endpoint.url}/token` });
    expect(failures).toEqual(['provider.client-secret']);
    expect(find('provider.client-secret')).toMatchObject({
      setting: 'OAUTH_CLIENT_AUTH',
      remedy: expect.stringContaining('set OAUTH_CLIENT_AUTH=basic'),
    });
  });

  test('§20.2 doctor: a client that the provider does not know', async () => {
    const { failures } = await diagnose({ OAUTH_CLIENT_ID: 'nobody' });
    expect(failures).toEqual(['provider.client-secret', 'provider.client-id']);
  });

  test('§20.2 doctor: a redirect URI that the provider does not know', async () => {
    const { failures, find } = await diagnose({ BASE_URL: 'https://gateway.example' });
    expect(failures).toEqual(['provider.redirect-uri']);
    expect(find('provider.redirect-uri').remedy).toContain(
      'register exactly https://gateway.example/oauth/callback',
    );
  });

  test('§20.2 doctor: a clock that differs', async () => {
    const late = closeAfterTest(
      await startProvider({ gatewayUrl: BASE_URL, client: CLIENT, clockOffsetSeconds: -900 }),
    );
    const { failures, find } = await diagnose({ OIDC_ISSUER: late.issuer });
    expect(failures).toEqual(['clock']);
    expect(find('clock').what).toMatch(
      /^The provider's clock is (899|90[01]) s behind that of this machine\.$/,
    );
  });

  test('§20.2 doctor: a provider that is down', async () => {
    const port = await freePort();
    const { failures, find } = await diagnose({ OIDC_ISSUER: `http://localhost:${port}` });
    expect(failures).toEqual(['provider.reachable']);
    expect(find('provider.reachable').what).toContain(`Nothing listens at localhost:${port}`);
  });

  test('§20.2 doctor: no internet: the name of the provider cannot be resolved', async () => {
    const { failures, find } = await diagnose({ OIDC_ISSUER: 'https://login.invalid' });
    expect(failures).toEqual(['provider.reachable']);
    expect(find('provider.reachable')).toMatchObject({
      what: expect.stringContaining('The name login.invalid cannot be resolved'),
      remedy: expect.stringContaining('HTTPS_PROXY'),
    });
  });

  test('§20.2 doctor: a proxy that wants a password', async () => {
    const proxy = closeAfterTest(await startProxy(['gateway', 'password']));
    const { failures, find } = await diagnose({
      OIDC_ISSUER: 'https://login.example',
      HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`,
    });
    expect(failures).toEqual(['provider.reachable']);
    expect(find('provider.reachable').setting).toBe('HTTPS_PROXY');
  });

  test('§20.2 doctor: a proxy that is not there is named, and not the provider', async () => {
    const { failures, find } = await diagnose({
      OIDC_ISSUER: 'https://login.example',
      HTTPS_PROXY: `http://127.0.0.1:${await freePort()}`,
    });
    expect(failures).toEqual(['provider.reachable']);
    expect(find('provider.reachable')).toMatchObject({
      what: expect.stringContaining('The outbound proxy did not let a request to login.example'),
      setting: 'HTTPS_PROXY',
    });
  });

  test('§20.2 doctor: a realm that is not there', async () => {
    const { failures, find } = await diagnose({ OIDC_ISSUER: `${provider.issuer}/realms/none` });
    expect(failures).toEqual(['provider.discovery']);
    expect(find('provider.discovery').what).toContain('404');
  });

  test('§20.2 doctor: a BASE_URL with a path, and one that ends in /mcp', async () => {
    const path = await diagnose({ BASE_URL: 'http://localhost:9/gateway' });
    expect(path.find('settings.base-url-path')).toMatchObject({
      status: 'warning',
      why: expect.stringContaining('/.well-known/oauth-authorization-server/gateway'),
    });
    const endpoint = await diagnose({ BASE_URL: 'http://localhost:9/mcp' });
    expect([endpoint.code, endpoint.failures]).toEqual([1, ['settings']]);
    expect(endpoint.find('settings').setting).toBe('BASE_URL');
  });

  test('§20.2 doctor: settings that are missing are all named, each with its variable', async () => {
    const { code, findings } = await runDoctor(undefined, {
      env: { OAUTH_MODE: 'broker' },
    });
    expect(code).toBe(1);
    expect(findings.map(({ setting }) => setting)).toEqual(['OIDC_ISSUER', 'OAUTH_CLIENT_ID']);
  });
});

describe('doctor --token: planted mistakes', () => {
  const check = async (token: string, changed: Env = {}) =>
    runDoctor(undefined, { env: { ...issuerEnv(), ...changed }, args: ['--token', token] });

  test('§20.2 doctor --token: one that is right: whose it is, and for how long', async () => {
    const { failures, find } = await check(await issuer.sign({ scope: 'openid' }));
    expect(failures).toEqual([]);
    expect(find('token').what).toMatch(
      /sub "user-1", aud "http.*\/mcp", 60 min left, scope "openid", no groups/,
    );
    const piped = await runDoctor(undefined, {
      env: issuerEnv(),
      args: ['--token', '-'],
      input: `Bearer ${await issuer.sign({ scope: 'piped' })}\n`,
    });
    expect(piped.find('token').what).toContain('scope "piped"');
    const member = await check(await issuer.sign({ groups: ['ops', 'staff'] }));
    expect(member.find('token').what).toContain('groups ["ops","staff"]');
  });

  const WRONG: readonly [string, () => Promise<string>, string, string, Env?][] = [
    [
      'for another audience',
      () => issuer.sign({ aud: 'account' }),
      'token.audience',
      'OIDC_AUDIENCE',
    ],
    [
      'without an audience: the mapper is missing',
      () => issuer.sign({ aud: undefined }),
      'token.audience-missing',
      'OIDC_AUDIENCE',
    ],
    [
      'whose issuer has a slash',
      () => issuer.sign({ iss: `${issuer.url}/` }),
      'token.issuer',
      'OIDC_ISSUER',
    ],
    [
      'that is opaque',
      async () => 'mF_9.B5f-4.1JqM-not-a-jwt',
      'token.opaque',
      'OAUTH_MODE, OIDC_AUDIENCE',
    ],
    ['that has expired', () => issuer.sign({ exp: 1_700_000_000 }), 'token.expired', ''],
    [
      'of a key that is not in the key set',
      () => issuer.sign({}, { kid: 'elsewhere' }),
      'token.key',
      'OIDC_ISSUER, OIDC_JWKS_URL',
    ],
    ['without sub', () => issuer.sign({ sub: undefined }), 'token.sub', ''],
  ];
  test.each(WRONG)('§20.2 doctor --token: one %s', async (_name, sign, check_, setting) => {
    const { code, failures, find } = await check(await sign());
    expect([code, failures]).toEqual([1, [check_]]);
    expect(find(check_).setting ?? '').toBe(setting);
  });

  test.each([
    [300, 'Access tokens are valid for only 5 minutes.'],
    [59, 'Access tokens are valid for only 59 s.'],
  ])('§20.2 doctor --token: one that lives %i s is warned of', async (seconds, what) => {
    const iat = Math.floor(Date.now() / 1000);
    const { find, code } = await check(await issuer.sign({ iat, exp: iat + seconds }));
    expect(find('token.lifetime')).toMatchObject({ status: 'warning', what });
    expect([find('token').status, code]).toEqual(['ok', 0]);
  });

  test('§20.2 doctor --token: one that lives 10 minutes is not', async () => {
    const iat = Math.floor(Date.now() / 1000);
    const { findings } = await check(await issuer.sign({ iat, exp: iat + 600 }));
    expect(findings.map(({ check: name }) => name)).not.toContain('token.lifetime');
  });

  test('§20.2 doctor --token: what to click is said for the provider at hand', async () => {
    const realm = `${issuer.url}/realms/demo`;
    const { find } = await check(await issuer.sign({ iss: realm, aud: undefined }), {
      OIDC_PROVIDER: 'keycloak',
      OIDC_ISSUER: realm,
      OIDC_JWKS_URL: `${issuer.url}/jwks`,
    });
    expect(find('token.audience-missing').remedy).toContain('add an Audience mapper');
  });

  test('§20.2 doctor --token: nothing of the token is printed', async () => {
    const token = await issuer.sign({ aud: 'account' });
    const { findings } = await check(token);
    for (const part of token.split('.')) expect(JSON.stringify(findings)).not.toContain(part);
  });
});
