// §5.11: settings of the other kind of tokens would seem to work. Each stops the start: of what the provider is
// asked for also the default value. The error names it and says what to remove.
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';

const BROKER = {
  BASE_URL: 'https://mcp.example.com',
  OIDC_ISSUER: 'https://login.example.com',
  OAUTH_MODE: 'broker',
  OAUTH_CLIENT_ID: 'gateway',
  OAUTH_CLIENT_SECRET: 'secret-of-the-gateway',
  OAUTH_STATE_SECRET: 'a secret of more than thirty-two characters',
};
const PROVIDER_TOKENS = {
  ...BROKER,
  OAUTH_TOKENS: 'provider',
  OIDC_AUDIENCE: 'https://mcp.example.com/mcp',
};

test.each([
  { OIDC_AUDIENCE: 'https://mcp.example.com/mcp' },
  { OAUTH_RESOURCE_PARAMETER: 'resource' },
  { OAUTH_RESOURCE_PARAMETER: 'none' },
  { OAUTH_ACCESS_TOKEN: 'access_token' },
  { OAUTH_ACCESS_TOKEN: 'id_token' },
])('§5.11 settings: with tokens of the gateway’s own, %o stops the start', (setting) => {
  const [name] = Object.keys(setting);
  expect(() => loadConfig({ ...BROKER, ...setting })).toThrow(
    new RegExp(`${name} has no use: the gateway issues tokens of its own.*Remove it`),
  );
});

test.each([
  { OAUTH_ACCESS_TTL_SECONDS: '1800' },
  { OAUTH_GRANT_MAX_SECONDS: '86400' },
  { OAUTH_ACCEPT_PROVIDER_TOKENS: 'true' },
])('§5.11 settings: with tokens of the provider, %o stops the start', (setting) => {
  const [name] = Object.keys(setting);
  expect(() => loadConfig({ ...PROVIDER_TOKENS, ...setting })).toThrow(
    new RegExp(`${name} is for tokens of the gateway's own.*Remove it`),
  );
});

test('§5.11 settings: with neither, both kinds start', () => {
  expect(loadConfig(BROKER).oauth).toMatchObject({ tokens: { kind: 'gateway' } });
  expect(loadConfig(PROVIDER_TOKENS).oauth).toMatchObject({ tokens: { kind: 'provider' } });
});
