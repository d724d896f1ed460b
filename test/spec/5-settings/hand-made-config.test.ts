// A Config that loadConfig did not make, perhaps without types: what is missing lets nobody in.
import { afterEach, describe, expect, test } from 'vitest';
import { checkConfig } from '../../../src/config/check-config.ts';
import type { Config } from '../../../src/config/config.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { createProviderAccess } from '../../../src/logins/auth/auth.ts';
import { createAuthorizationEndpoints } from '../../../src/logins/oauth.ts';
import { createSeal } from '../../../src/store/seal/seal.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { openTestRuntime } from '../../support/gateway/runtime.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

const ISSUER = 'https://idp.example';
const BROKER = {
  OIDC_ISSUER: ISSUER,
  OAUTH_MODE: 'broker',
  OAUTH_CLIENT_ID: 'client-1',
};
const CONSENT = { OIDC_ISSUER: ISSUER, OAUTH_CONSENT: 'page' };

type Env = Readonly<Record<string, string>>;

/** As a program without types would write it: `path` is taken away, or has another value. */
function breakConfig(env: Env, path: string, value?: unknown): Config {
  const broken = JSON.parse(JSON.stringify(loadConfig(env)));
  const names = path.split('.');
  const last = names.pop() ?? '';
  let group = broken;
  for (const name of names) group = group[name];
  group[last] = value;
  return broken;
}

async function problemsOf(config: Config): Promise<readonly string[]> {
  try {
    await (await createGateway(config, { log: collectLog().log })).close();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('a configuration made by hand', () => {
  test.each<{ env: Env; path: string; value?: unknown; says?: string }>([
    { env: { OIDC_ISSUER: ISSUER }, path: 'auth.provider.issuer' },
    { env: { OIDC_ISSUER: ISSUER }, path: 'auth.provider.issuer', value: '' },
    { env: { OIDC_ISSUER: ISSUER }, path: 'auth.provider.audience' },
    { env: { OIDC_ISSUER: ISSUER }, path: 'auth.provider' },
    { env: { OIDC_ISSUER: ISSUER }, path: 'auth.required' },
    { env: { OIDC_ISSUER: ISSUER }, path: 'auth.required', value: 'yes' },
    { env: { OIDC_ISSUER: ISSUER }, path: 'auth.required', value: 0 },
    { env: { OIDC_ISSUER: ISSUER }, path: 'auth' },
    { env: { OIDC_ISSUER: ISSUER }, path: 'auth', value: null },
    { env: BROKER, path: 'oauth.provider' },
    { env: BROKER, path: 'oauth.providerClient.id' },
    { env: BROKER, path: 'oauth.providerClient.id', value: '' },
    { env: BROKER, path: 'oauth.mode' },
    { env: BROKER, path: 'oauth.mode', value: 'Broker' },
    { env: BROKER, path: 'oauth.stateSecret' },
    { env: BROKER, path: 'oauth.stateSecret', value: { kind: 'given', secrets: [] } },
    { env: BROKER, path: 'oauth.stateSecret', value: { kind: 'kept' } },
    { env: BROKER, path: 'oauth.allowedScopes' },
    { env: CONSENT, path: 'oauth.stateSecret' },
    { env: CONSENT, path: 'oauth.consent' },
    { env: CONSENT, path: 'oauth.consent.kind', value: true },
    { env: CONSENT, path: 'oauth.consent.kind', value: 'Page' },
    { env: CONSENT, path: 'oauth' },
    { env: BROKER, path: 'limits' },
    { env: BROKER, path: 'limits.enabled' },
    { env: BROKER, path: 'limits.groups.token' },
    { env: BROKER, path: 'limits.groups.mcp.max.ip', value: '100' },
    { env: BROKER, path: 'http.maxBodyBytes' },
    { env: BROKER, path: 'http.maxTokenBytes', value: null },
    { env: BROKER, path: 'http.maxBodyBytes', value: Number.NaN },
    { env: BROKER, path: 'limits.groups.mcp.max.ip', value: Number.NaN },
    { env: BROKER, path: 'limits.groups.mcp.max.users', value: 5, says: 'users is unknown' },
    { env: BROKER, path: 'auth.clockToleranceSeconds', value: Number.NaN },
    { env: BROKER, path: 'auth.provider.audience', value: [undefined] },
    { env: BROKER, path: 'auth.provider.audience', value: [''] },
    {
      env: BROKER,
      path: 'oauth.registration.accesToken',
      value: 'a',
      says: 'accesToken is unknown',
    },
    { env: BROKER, path: 'http.trustProxy', value: { kind: 'hops' } },
    { env: BROKER, path: 'http.trustProxy', value: { kind: 'one' } },
    { env: BROKER, path: 'oauth.stateSecret', value: { kind: 'given', secrets: ['short'] } },
    {
      env: BROKER,
      path: 'oauth.provider.issuer',
      value: 'https://other.example',
      says: 'the same provider',
    },
  ])(
    '§10 $path=$value is an error and starts nothing',
    async ({ env, path, value, says = path }) => {
      const problems = await problemsOf(breakConfig(env, path, value));
      expect(problems.join('\n')).toContain(says);
    },
  );

  test.each<Env>([
    { OIDC_ISSUER: ISSUER },
    { AUTH_REQUIRED: 'false', RATE_LIMIT_ENABLED: 'false', TRUST_PROXY: 'none' },
    { ...BROKER, OAUTH_STATE_SECRET: 's'.repeat(32), OAUTH_CONSENT: 'off', TRUST_PROXY: '1' },
    CONSENT,
    { ...CONSENT, REDIS_URL: 'redis://127.0.0.1:1', OAUTH_STATE_SECRET: 's'.repeat(32) },
  ])('§10 what loadConfig makes of %o is complete', (env) => {
    expect(() => checkConfig(loadConfig(env))).not.toThrow();
  });

  test('§10 the members of an older Config are an error that names loadConfig', async () => {
    const old: Config = JSON.parse('{ "authRequired": true, "oidcIssuer": "https://idp.example" }');
    expect(await problemsOf(old)).toEqual(
      expect.arrayContaining([
        'config.auth must be an object.',
        'loadConfig() returns a complete Config.',
      ]),
    );
  });
});

describe('OAuth endpoints without what they need', () => {
  let end = async () => {};
  afterEach(() => end());

  async function open(env: Env, missing: 'seal' | 'providerEndpoints' | 'broker') {
    const config = loadConfig(env);
    const { store, remove } = await wrapStore(() => ({}));
    end = async () => {
      await store.close();
      await remove();
    };
    const metadata = { issuer: ISSUER, get: () => Promise.reject(new Error('not needed')) };
    const runtime = openTestRuntime({
      config,
      store,
      loginSeal: missing === 'seal' ? undefined : createSeal(['s'.repeat(32)]),
    });
    const provider = createProviderAccess(runtime, () => false, { isServerAudience: () => false });
    const needs = {
      ...provider,
      metadata: missing === 'providerEndpoints' ? undefined : metadata,
      broker: undefined,
      servedFile: { has: () => false, getTitle: () => undefined },
      getPublicTools: undefined,
    };
    return () => createAuthorizationEndpoints(runtime, needs);
  }

  test('§13 broker mode without a seal does not become proxy mode', async () => {
    expect(await open(BROKER, 'seal')).toThrow('Broker mode needs a seal');
  });

  test('§13 broker mode without the endpoints of the provider does not become proxy mode', async () => {
    expect(await open(BROKER, 'providerEndpoints')).toThrow('Broker mode needs the endpoints');
  });

  test('§13 broker mode without grants does not become proxy mode', async () => {
    expect(await open(BROKER, 'broker')).toThrow('Broker mode needs its grants');
  });

  test('§13 the consent page without a seal is not left out', async () => {
    expect(await open(CONSENT, 'seal')).toThrow('The consent page needs a seal');
  });
});
