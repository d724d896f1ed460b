// §5.11: settings of the other mode would seem to work, and so would those that were removed. Each stops the start: the error names it, and
// says the way on.
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { ConfigError } from '../../../src/config/problem.ts';

const PROXY = {
  BASE_URL: 'https://mcp.example.com',
  OIDC_ISSUER: 'https://login.example.com',
};
const BROKER = {
  ...PROXY,
  OAUTH_MODE: 'broker',
  OAUTH_CLIENT_ID: 'gateway',
  OAUTH_CLIENT_SECRET: 'secret-of-the-gateway',
  OAUTH_STATE_SECRET: 'a secret of more than thirty-two characters',
};

function findProblems(env: Readonly<Record<string, string>>): readonly string[] {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

const AUDIENCE = { OIDC_AUDIENCE: 'https://mcp.example.com/mcp' };

test.each([AUDIENCE, { OIDC_AUDIENCE_CLAIM: 'client_id' }])(
  '§5.11 settings: in broker mode, %o stops the start',
  (setting) => {
    const [name] = Object.keys(setting);
    expect(() => loadConfig({ ...BROKER, ...setting })).toThrow(
      new RegExp(
        `^${name} has no effect: the gateway issues its own tokens.*Remove it\\..*OAUTH_ACCEPT_PROVIDER_TOKENS=true`,
      ),
    );
  },
);

test('§5.11 settings: beside the gateway’s own tokens those of the provider are accepted for an audience', () => {
  const accepting = { ...BROKER, OAUTH_ACCEPT_PROVIDER_TOKENS: 'true' };
  expect(() => loadConfig(accepting)).toThrow(/^OIDC_AUDIENCE is missing/);
  expect(loadConfig({ ...accepting, ...AUDIENCE }).oauth).toMatchObject({
    tokens: { acceptsProviderTokens: true },
  });
});

test.each([
  { OAUTH_ACCESS_TTL_SECONDS: '1800' },
  { OAUTH_GRANT_MAX_SECONDS: '86400' },
  { OAUTH_ACCEPT_PROVIDER_TOKENS: 'true' },
])('§5.11 settings: in proxy mode, %o stops the start', (setting) => {
  const [name] = Object.keys(setting);
  expect(() => loadConfig({ ...PROXY, ...setting })).toThrow(
    new RegExp(`^${name} is for the gateway's own tokens.*Remove it, or set OAUTH_MODE=broker`),
  );
});

test.each([
  { base: BROKER, useless: { ...AUDIENCE, OIDC_AUDIENCE_CLAIM: 'client_id' } },
  {
    base: PROXY,
    useless: {
      OIDC_GROUPS_CLAIM: 'teams',
      ID_JAG: 'true',
      OAUTH_ACCESS_TTL_SECONDS: '1800',
      OAUTH_GRANT_MAX_SECONDS: '86400',
    },
  },
  {
    base: { ...BROKER, OIDC_PROVIDER: 'github', OIDC_ISSUER: '' },
    useless: {
      OIDC_JWKS_URL: 'https://github.com/keys',
      OAUTH_REVOCATION_URL: 'https://github.com/revoke',
      OIDC_GROUPS_CLAIM: 'teams',
    },
  },
])('§10, §5.11 settings: of $useless without an effect, each is named in one error', (row) => {
  const { base, useless } = row;
  expect(
    findProblems({ ...base, ...useless })
      .map((problem) => problem.split(' ')[0])
      .sort(),
  ).toEqual(Object.keys(useless).sort());
});

test.each([
  { base: BROKER, harmless: { OIDC_AUDIENCE_CLAIM: 'aud' } },
  { base: PROXY, harmless: { OIDC_GROUPS_CLAIM: 'groups', OAUTH_ACCESS_TTL_SECONDS: '3600' } },
])('§10 settings: $harmless has no effect and its default value, so the start goes on', (row) => {
  expect(findProblems({ ...row.base, ...row.harmless })).toEqual([]);
});

test.each([
  ['OAUTH_TOKENS', 'provider', /Remove it\..*OAUTH_ACCEPT_PROVIDER_TOKENS=true/],
  ['OAUTH_TOKENS', 'gateway', /Remove it\./],
  ['OAUTH_ACCESS_TOKEN', 'id_token', /Remove it\..*OAUTH_MODE=broker/],
  ['OAUTH_RESOURCE_PARAMETER', 'audience', /Remove it\./],
])(
  '§5.11 settings: %s=%s, which was removed, stops the start in both modes',
  (name, value, way) => {
    for (const env of [PROXY, BROKER]) {
      expect(() => loadConfig({ ...env, [name]: '' })).not.toThrow();
      const load = () => loadConfig({ ...env, [name]: value });
      expect(load).toThrow(new RegExp(`^${name}: this setting no longer exists`));
      expect(load).toThrow(way);
      // It is no misspelled one as well.
      expect(load).not.toThrow('Did you mean');
    }
  },
);
