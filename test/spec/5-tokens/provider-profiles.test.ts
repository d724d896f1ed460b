import { describe, expect, test } from 'vitest';
import { brokerSettings } from '../../../src/config/groups/own-tokens.ts';
import { providerClientSettings, providerSettings } from '../../../src/config/groups/provider.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import { PROVIDERS, type Provider } from '../../../src/config/provider-profiles.ts';
import { createReader } from '../../../src/config/setting.ts';
import { buildProviderScope, buildRefreshParameters } from '../../../src/logins/broker/login.ts';
import { INITIALIZE_REQUEST, startGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startIssuer } from '../../support/oauth/issuer.ts';

type Env = Readonly<Record<string, string>>;

const BASE_URL = 'https://gw.example';
const OWN = [`${BASE_URL}/mcp`, BASE_URL, `${BASE_URL}/`];
const TENANT = '8eaef023-2b34-4da1-9baa-8bc8c9d6a490';
const API_SCOPE = 'api://client-1/access';

const ISSUERS: Readonly<Record<Provider, string>> = {
  generic: 'https://id.example.com',
  entra: `https://login.microsoftonline.com/${TENANT}/v2.0`,
  okta: 'https://org.okta.com/oauth2/default',
  auth0: 'https://tenant.eu.auth0.com/',
  keycloak: 'https://id.example.com/realms/main',
  google: 'https://accounts.google.com',
  cognito: 'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbC123',
  authentik: 'https://id.example.com/application/o/postern/',
  dex: 'https://dex.example.com/dex',
  github: 'https://github.com',
  gitlab: 'https://gitlab.com',
  slack: 'https://slack.com',
};

/** None of the provider's tokens is accepted there. */
const OWN_TOKENS_ONLY: readonly Provider[] = ['github', 'gitlab', 'slack'];

const minimal = (provider: Provider, env: Env = {}): Env => ({
  BASE_URL,
  OIDC_PROVIDER: provider,
  OIDC_ISSUER: ISSUERS[provider],
  OAUTH_CLIENT_ID: 'client-1',
  // The others work in both modes.
  ...(provider === 'google' && {
    OAUTH_MODE: 'broker',
    OAUTH_ACCEPT_PROVIDER_TOKENS: 'true',
    OIDC_AUDIENCE: 'client-1',
  }),
  ...(OWN_TOKENS_ONLY.includes(provider) && { OAUTH_MODE: 'broker', OAUTH_CLIENT_SECRET: 'x' }),
  ...env,
});

/** The settings that a profile has a default for, as they are read. */
function readValues(env: Env) {
  const read = createReader(env);
  return {
    provider: read(providerSettings.provider),
    addedScopes: read(brokerSettings.addedScopes),
    addedParameters: read(brokerSettings.addedParameters),
    clientAuth: read(providerClientSettings.authMethod),
    audienceClaim: read(providerSettings.audienceClaim),
    audience: read(providerSettings.audience),
  };
}

function problemsOf(env: Env): readonly string[] {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('the defaults of each provider', () => {
  const usual = {
    addedScopes: [],
    addedParameters: [],
    clientAuth: 'post',
    audienceClaim: 'aud',
    audience: OWN,
  };
  const rows: { readonly provider: Provider; readonly differs: object }[] = [
    { provider: 'generic', differs: {} },
    {
      provider: 'entra',
      differs: {
        addedScopes: ['offline_access'],
        audience: ['client-1'],
      },
    },
    {
      provider: 'okta',
      differs: {
        addedScopes: ['offline_access'],
        clientAuth: 'basic',
      },
    },
    {
      provider: 'auth0',
      differs: { addedScopes: ['offline_access'] },
    },
    { provider: 'keycloak', differs: {} },
    {
      provider: 'google',
      differs: {
        addedParameters: [
          ['access_type', 'offline'],
          ['prompt', 'consent'],
        ],
        audience: ['client-1'],
      },
    },
    {
      provider: 'cognito',
      differs: {
        audienceClaim: 'client_id',
        audience: ['client-1'],
      },
    },
    {
      provider: 'authentik',
      differs: {
        addedScopes: ['offline_access'],
        audience: ['client-1'],
      },
    },
    {
      provider: 'dex',
      differs: {
        addedScopes: ['offline_access', 'groups'],
        audience: ['client-1'],
      },
    },
    {
      provider: 'github',
      differs: {
        addedScopes: ['read:user', 'user:email', 'read:org'],
      },
    },
    { provider: 'gitlab', differs: {} },
    {
      provider: 'slack',
      differs: { addedScopes: ['openid', 'profile', 'email'] },
    },
  ];

  test.each(rows)('§5 providers: $provider has the defaults of its profile', (row) => {
    expect(readValues(minimal(row.provider, { OIDC_AUDIENCE: '' }))).toEqual({
      provider: row.provider,
      ...usual,
      ...row.differs,
    });
  });

  test('§5 providers: every provider has a row here', () => {
    expect(rows.map(({ provider }) => provider)).toEqual(PROVIDERS);
  });

  test('§5 providers: unset is generic, with everything as it was', () => {
    const values = readValues({ BASE_URL, OIDC_ISSUER: ISSUERS.generic });
    expect(values).toEqual({ provider: 'generic', ...usual });
  });

  test.each(PROVIDERS)('§5 providers: every variable overrules the profile of %s', (provider) => {
    const values = readValues(
      minimal(provider, {
        OAUTH_ADDED_SCOPES: `openid, groups ${API_SCOPE}`,
        OAUTH_ADDED_PARAMETERS: 'hd=example.com&prompt=select_account',
        OAUTH_CLIENT_AUTH: 'basic',
        OIDC_AUDIENCE: 'api://gateway',
        OIDC_AUDIENCE_CLAIM: 'aud',
      }),
    );
    expect(values).toMatchObject({
      addedScopes: ['openid', 'groups', API_SCOPE],
      addedParameters: [
        ['hd', 'example.com'],
        ['prompt', 'select_account'],
      ],
      clientAuth: 'basic',
      audience: ['api://gateway'],
      audienceClaim: 'aud',
    });
  });

  test.each(PROVIDERS)('§5 providers: none empties the lists of %s', (provider) => {
    const values = readValues(
      minimal(provider, { OAUTH_ADDED_SCOPES: 'none', OAUTH_ADDED_PARAMETERS: 'none' }),
    );
    expect(values).toMatchObject({ addedScopes: [], addedParameters: [] });
  });

  test('§5 providers: with OIDC_AUDIENCE_CLAIM=client_id the audience is the client', () => {
    const env = { OIDC_AUDIENCE_CLAIM: 'client_id' };
    expect(readValues(minimal('generic', env)).audience).toEqual(['client-1']);
  });
});

describe('start-up errors by provider', () => {
  test.each([
    { variable: 'OIDC_PROVIDER', wrong: ['azure', 'Entra', 'none'] },
    { variable: 'OAUTH_ADDED_SCOPES', wrong: [',', 'a"b', 'a\\b', 'é'] },
    {
      variable: 'OAUTH_ADDED_PARAMETERS',
      wrong: [
        '&',
        'prompt',
        'prompt=',
        '=consent',
        'a b=c',
        'prompt=consent&prompt=login',
        'client_id=x',
        'client_secret=x',
        'client_assertion=x',
        'redirect_uri=https://evil.example',
        'response_type=token',
        'response_mode=fragment',
        'state=x',
        'nonce=x',
        'scope=x',
        'resource=x',
        'code_challenge=x',
        'code_challenge_method=plain',
        'request=x',
        'request_uri=x',
        'registration=x',
        'prompt=consent&state=x',
      ],
    },
    { variable: 'OIDC_AUDIENCE_CLAIM', wrong: ['azp', 'sub'] },
  ])('§5 providers: a wrong $variable is named', ({ variable, wrong }) => {
    for (const given of wrong) {
      expect(problemsOf(minimal('generic', { [variable]: given })), given).toEqual([
        expect.stringContaining(`${variable}: ${JSON.stringify(given)} is not valid`),
      ]);
    }
  });

  const forms: Readonly<
    Record<
      Exclude<Provider, 'generic' | 'dex' | 'github'>,
      { readonly right: readonly string[]; readonly wrong: readonly string[]; readonly why: string }
    >
  > = {
    gitlab: {
      right: ['https://gitlab.example.com', 'https://example.com/gitlab'],
      wrong: ['https://gitlab.com/'],
      why: 'without a slash at the end',
    },
    slack: {
      right: [],
      wrong: ['https://slack.com/', 'https://acme.slack.com', 'http://slack.com'],
      why: 'it must be https://slack.com',
    },
    entra: {
      right: [
        `https://login.microsoftonline.us/${TENANT}/v2.0`,
        `https://login.partner.microsoftonline.cn/${TENANT}/v2.0`,
        `https://${TENANT}.ciamlogin.com/${TENANT}/v2.0`,
      ],
      wrong: [
        'https://login.microsoftonline.com/common/v2.0',
        'https://login.microsoftonline.com/organizations/v2.0',
        'https://login.microsoftonline.com/consumers/v2.0',
        'https://login.microsoftonline.com/contoso.onmicrosoft.com/v2.0',
        `https://login.microsoftonline.com/${TENANT}`,
        `https://login.microsoftonline.com/${TENANT}/v2.0/`,
        `https://sts.windows.net/${TENANT}/`,
        `https://login.microsoftonline.com.evil.example/${TENANT}/v2.0`,
      ],
      why: 'no token names common, organizations or a domain',
    },
    okta: {
      right: ['https://id.example.com/oauth2/aus9o8wzkhckw9TLa0h7z'],
      wrong: [
        'https://org.okta.com',
        'https://org.okta.com/',
        'https://org.okta.com/oauth2',
        'https://org.okta.com/oauth2/v1',
        'https://org.okta.com/oauth2/default/',
        'http://org.okta.com/oauth2/default',
      ],
      why: 'only Okta can verify tokens of the org authorization server',
    },
    auth0: {
      right: ['https://login.example.com/'],
      wrong: ['https://tenant.auth0.com', 'https://tenant.auth0.com/api/', 'http://t.auth0.com/'],
      why: 'end with a slash',
    },
    keycloak: {
      right: ['http://localhost:8080/realms/main', 'https://id.example.com/auth/realms/main'],
      wrong: [
        'https://id.example.com',
        'https://id.example.com/realms/main/',
        'https://id.example.com/realms/',
      ],
      why: 'https://<host>/realms/<realm>',
    },
    google: {
      right: [],
      wrong: [
        'https://accounts.google.com/',
        'http://accounts.google.com',
        'https://oauth2.googleapis.com',
      ],
      why: 'https://accounts.google.com, without a slash',
    },
    cognito: {
      right: [
        'https://issuer-cognito-idp.us-east-1.amazonaws.com/us-east-1_x',
        'https://cognito-idp.cn-north-1.amazonaws.com.cn/cn-north-1_x',
      ],
      wrong: [
        'https://my.auth.eu-central-1.amazoncognito.com',
        'https://cognito-idp.eu-central-1.amazonaws.com/',
        'https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_x/',
        'https://cognito-idp.eu-central-1.amazonaws.com.evil.example/eu-central-1_x',
      ],
      why: 'https://cognito-idp.<region>.amazonaws.com/<pool id>',
    },
    authentik: {
      right: ['http://localhost:9000/application/o/postern/'],
      wrong: [
        'https://id.example.com/',
        'https://id.example.com/application/o/postern',
        'https://id.example.com/application/o/',
      ],
      why: 'https://<host>/application/o/<slug>/',
    },
  };
  const named = Object.entries(forms) as [keyof typeof forms, (typeof forms)['okta']][];

  test.each(named)('§5 providers: the issuer of %s has one form', (provider, form) => {
    for (const issuer of [ISSUERS[provider], ...form.right]) {
      expect(problemsOf(minimal(provider, { OIDC_ISSUER: issuer })), issuer).toEqual([]);
    }
    for (const issuer of form.wrong) {
      const problems = problemsOf(minimal(provider, { OIDC_ISSUER: issuer }));
      expect(problems, issuer).toHaveLength(1);
      expect(problems[0]).toContain(
        `OIDC_ISSUER: ${JSON.stringify(issuer)} cannot work with OIDC_PROVIDER=${provider}: `,
      );
      expect(problems[0]).toContain(form.why);
    }
  });

  test.each(named)('§5 providers: an issuer on this machine stands in for %s', (provider) => {
    const there = ['http://127.0.0.1:4401', 'http://localhost:4401/any', 'http://[::1]:4401/'];
    for (const issuer of there) {
      expect(problemsOf(minimal(provider, { OIDC_ISSUER: issuer })), issuer).toEqual([]);
    }
  });

  test.each([
    'https://127.0.0.1:4401',
    'http://google.localhost:4401',
    'http://127.0.0.1.example.com',
    'http://localhost@evil.example',
  ])('§5 providers: %s stands in for nobody', (issuer) => {
    expect(problemsOf(minimal('google', { OIDC_ISSUER: issuer }))).toHaveLength(1);
  });

  test('§5 providers: the generic profile takes every issuer', () => {
    for (const issuer of Object.values(ISSUERS)) {
      expect(problemsOf(minimal('generic', { OIDC_ISSUER: issuer }))).toEqual([]);
    }
  });

  const CANNOT_ACCEPT = { OAUTH_ACCEPT_PROVIDER_TOKENS: '', OIDC_AUDIENCE: '' };
  const CLIENT =
    'Set OAUTH_CLIENT_ID to that client, or OIDC_AUDIENCE to the audience of the tokens, for example OAUTH_CLIENT_ID=postern';
  test.each<{ what: string; env: Env; says: string }>([
    {
      what: 'the claim client_id without a client',
      env: minimal('generic', { OIDC_AUDIENCE_CLAIM: 'client_id', OAUTH_CLIENT_ID: '' }),
      says: `OIDC_AUDIENCE is missing: OIDC_AUDIENCE_CLAIM=client_id compares it with the client that the token was issued to. ${CLIENT}`,
    },
    {
      what: 'a provider that names the client, without one',
      env: minimal('entra', { OAUTH_CLIENT_ID: '' }),
      says: `OIDC_AUDIENCE is missing: tokens of OIDC_PROVIDER=entra name the client. ${CLIENT}`,
    },
    {
      what: 'Google in literal mode',
      env: minimal('google', { ...CANNOT_ACCEPT, OAUTH_MODE: 'proxy' }),
      says: 'OAUTH_MODE=proxy cannot work with OIDC_PROVIDER=google',
    },
    {
      what: 'Google in literal mode, with a token URL',
      env: minimal('google', {
        ...CANNOT_ACCEPT,
        OAUTH_MODE: '',
        OAUTH_TOKEN_URL: 'https://oauth2.googleapis.com/token',
      }),
      says: "Set OAUTH_MODE=broker, where clients get the gateway's own tokens.",
    },
  ])('§5 providers: $what is refused', ({ env, says }) => {
    expect(problemsOf(env)).toEqual([expect.stringContaining(says)]);
  });

  test('§5 providers: what is refused can be put right', () => {
    expect(problemsOf(minimal('google', CANNOT_ACCEPT))).toEqual([]);
    expect(
      problemsOf(minimal('authentik', { OAUTH_CLIENT_ID: '', OIDC_AUDIENCE: 'client-2' })),
    ).toEqual([]);
    const open = { AUTH_REQUIRED: 'false', BASE_URL: '' };
    expect(
      problemsOf(minimal('google', { ...open, ...CANNOT_ACCEPT, OAUTH_MODE: 'proxy' })),
    ).toEqual([]);
  });

  test('§5 providers: all problems are told at once, and none without authentication', () => {
    const env = { OIDC_PROVIDER: 'okta', OIDC_ISSUER: 'https://org.okta.com' };
    const wrong = { OIDC_AUDIENCE_CLAIM: 'client_id' };
    expect(problemsOf({ ...env, ...wrong, PORT: 'x' }).map((one) => one.split(/[:= ]/)[0])).toEqual(
      ['PORT', 'OIDC_ISSUER', 'OIDC_AUDIENCE'],
    );
    expect(problemsOf({ AUTH_REQUIRED: 'false', OIDC_PROVIDER: 'cognito' })).toEqual([]);
  });
});

describe('the tokens of each provider', () => {
  /** A gateway whose provider answers under its public name. */
  async function startWith(name: Provider, env: Env = {}) {
    const issuer = ISSUERS[name];
    const real = closeAfterTest(await startIssuer());
    real.document = { issuer };
    const place = issuer.replace(/\/$/, '');
    const gateway = closeAfterTest(
      await startGateway({
        env: { ...minimal(name), BASE_URL: 'http://localhost:3000', ...env },
        deps: { fetch: (url, init) => fetch(String(url).replace(place, real.url), init) },
      }),
    );
    return {
      async ask(claims: Readonly<Record<string, unknown>>) {
        const token = await real.sign({ iss: issuer, aud: undefined, ...claims });
        const { status, json } = await gateway.rpc(INITIALIZE_REQUEST, { token });
        return { status, reason: json.error?.data?.reason };
      },
    };
  }

  const ACCEPTED = { status: 200, reason: undefined };
  const refused = (reason: string) => ({ status: 401, reason });
  const COGNITO = { client_id: 'client-1', token_use: 'access', scope: 'openid' };

  test.each<{ provider: Provider; claims: Readonly<Record<string, unknown>> }>([
    { provider: 'generic', claims: { aud: 'http://localhost:3000/mcp' } },
    { provider: 'entra', claims: { aud: 'client-1', ver: '2.0', tid: TENANT } },
    { provider: 'okta', claims: { aud: 'http://localhost:3000', cid: 'client-1' } },
    {
      provider: 'auth0',
      claims: { aud: ['http://localhost:3000/mcp', `${ISSUERS.auth0}userinfo`] },
    },
    { provider: 'keycloak', claims: { aud: ['http://localhost:3000', 'account'] } },
    { provider: 'google', claims: { aud: 'client-1', azp: 'client-1', email: 'a@example.com' } },
    { provider: 'cognito', claims: COGNITO },
    { provider: 'authentik', claims: { aud: 'client-1', azp: 'client-1' } },
    { provider: 'dex', claims: { aud: 'client-1', at_hash: 'dGhlIGhhc2g' } },
  ])('§5 providers: a token of $provider is accepted, one for others is not', async (row) => {
    const { ask } = await startWith(row.provider);
    expect(await ask(row.claims)).toEqual(ACCEPTED);
    const foreign = row.provider === 'cognito' ? { client_id: 'other' } : { aud: 'other' };
    expect(await ask({ ...row.claims, ...foreign })).toEqual(refused('invalid_audience'));
    expect(await ask({ ...row.claims, iss: 'https://evil.example' })).toEqual(
      refused('invalid_issuer'),
    );
  });

  test.each([
    { what: 'an access token', claims: COGNITO, answer: ACCEPTED },
    {
      what: 'an ID token',
      claims: { aud: 'client-1', token_use: 'id' },
      answer: refused('invalid_audience'),
    },
    {
      what: 'an ID token that names a client',
      claims: { aud: 'client-1', client_id: 'client-1', token_use: 'id' },
      answer: refused('invalid_token'),
    },
    {
      what: 'a token that does not say what it is for',
      claims: { client_id: 'client-1' },
      answer: refused('invalid_token'),
    },
    {
      what: 'a token of another client',
      claims: { ...COGNITO, client_id: 'client-2' },
      answer: refused('invalid_audience'),
    },
    {
      what: 'a token bound to another resource',
      claims: { ...COGNITO, aud: 'https://other.example' },
      answer: refused('invalid_audience'),
    },
    {
      what: 'a token that has ended',
      claims: { ...COGNITO, exp: 1 },
      answer: refused('expired_token'),
    },
    {
      what: 'a token without a user',
      claims: { ...COGNITO, sub: undefined },
      answer: refused('missing_claim'),
    },
  ])('§5 providers: client_id as audience: $what', async ({ claims, answer }) => {
    const { ask } = await startWith('cognito');
    expect(await ask(claims)).toEqual(answer);
  });

  test('§5 providers: a token bound to this resource names both, where both are set', async () => {
    const { ask } = await startWith('cognito', {
      OIDC_AUDIENCE: 'client-1,http://localhost:3000/mcp',
    });
    expect(await ask({ ...COGNITO, aud: 'http://localhost:3000/mcp' })).toEqual(ACCEPTED);
  });
});

describe('what each provider is asked', () => {
  const settings = (provider: Provider, env: Env = {}) => {
    const { oauth } = loadConfig(
      minimal(provider, { OAUTH_MODE: 'broker', OAUTH_ALLOWED_SCOPES: '*', ...env }),
    );
    if (oauth.mode === 'proxy') throw new Error('OAUTH_MODE was set');
    return oauth;
  };

  test.each(PROVIDERS.filter((name) => !OWN_TOKENS_ONLY.includes(name)))(
    '§5 providers: what %s gets with an authorization request',
    (provider) => {
      const config = settings(provider);
      expect(buildProviderScope(config, 'openid x')).toBe(
        ['openid', 'x', 'profile', 'email', ...config.addedScopes].join(' '),
      );
      expect(config.addedParameters).toEqual(
        provider === 'google'
          ? [
              ['access_type', 'offline'],
              ['prompt', 'consent'],
            ]
          : [],
      );
    },
  );

  test('§5 providers: scopes keep their order and stand once, and who logs in is always asked for', () => {
    const okta = settings('okta');
    const scopeFor = (scope: string | undefined) => buildProviderScope(okta, scope);
    for (const nothing of [undefined, '', '  '])
      expect(scopeFor(nothing)).toBe('openid profile email offline_access');
    expect(scopeFor('offline_access openid offline_access')).toBe(
      'offline_access openid profile email',
    );
    expect(scopeFor('b  a')).toBe('b a openid profile email offline_access');
  });

  test('§5 providers: a refresh names scopes where the provider does not remember them', () => {
    const entra = settings('entra', { OAUTH_ADDED_SCOPES: `offline_access ${API_SCOPE}` });
    expect(buildRefreshParameters(entra)).toEqual([
      ['scope', `openid profile email offline_access ${API_SCOPE}`],
    ]);
    expect(buildRefreshParameters(settings('okta'))).toEqual([]);
  });
});
