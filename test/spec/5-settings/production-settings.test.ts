// The settings that the README and the page about deployment ask for: one list, which the gateway accepts.
import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { expect, test } from 'vitest';
import { SHARED_ADDRESS_LIMITS } from '../../../src/cli/init/render-files.ts';
import { loadConfig } from '../../../src/config/load.ts';
import {
  codeBlocks,
  readPage,
  uncommentSettings,
} from '../../support/gateway/documentation-pages.ts';

const findBlock = (page: string) =>
  codeBlocks(page, 'sh').find((block) => block.startsWith('NODE_ENV=production\n'));

/** With those that are commented out. */
const findSettings = (page: string) => uncommentSettings(findBlock(page) ?? '');

const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');

test('§5 production: the README and the page about deployment have one list of settings', () => {
  expect(findSettings(readPage('deploy'))).toBe(findSettings(readme));
});

test('§5 production: the limits that postern init writes are those of the list, with room for an office', () => {
  expect(findSettings(readme)).toContain(SHARED_ADDRESS_LIMITS);
  // 300 people with 3 clients each, whose tokens expire within the same minute.
  const { OAUTH_REFRESH_RATE_LIMIT_MAX: refreshes } = parseEnv(SHARED_ADDRESS_LIMITS);
  expect(Number(refreshes)).toBeGreaterThanOrEqual(300 * 3);
});

test('§5 production: the list is one that the gateway starts with', () => {
  const environment = parseEnv(findSettings(readme));
  const secret = 'c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldC1zZWNyZXQ=';
  const config = loadConfig({
    ...environment,
    OAUTH_CLIENT_SECRET: secret,
    OAUTH_STATE_SECRET: secret,
  });
  expect(config.oauth.mode).toBe('broker');
  expect(config.limits).toMatchObject({ groups: { mcp: { max: { user: 300 } } } });
});

test('§5 production: six values, the mode and NODE_ENV are what a gateway needs', () => {
  expect(Object.keys(parseEnv(findBlock(readme) ?? '')).sort()).toEqual([
    'BASE_URL',
    'NODE_ENV',
    'OAUTH_CLIENT_ID',
    'OAUTH_CLIENT_SECRET',
    'OAUTH_MODE',
    'OAUTH_STATE_SECRET',
    'OIDC_ISSUER',
    'TRUST_PROXY',
  ]);
  expect(findBlock(readPage('deploy'))).toBe(findBlock(readme));
});
