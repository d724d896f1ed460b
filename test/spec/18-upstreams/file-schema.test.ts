// postern.schema.json, as an editor uses it: what the gateway takes is valid, what it refuses is not.
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { createGatewayFileSchema } from '../../../src/gateway/configuration/gateway-file.ts';
import { findProblems } from '../../support/upstreams/gateway-file.ts';

const shipped: unknown = JSON.parse(
  readFileSync(new URL('../../../postern.schema.json', import.meta.url), 'utf8'),
);
const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, strictTypes: false });
const isValid = ajv.compile(createGatewayFileSchema());

const URL_ONLY = { url: 'https://it.example/mcp' } as const;
const server = (it: unknown) => ({ mcpServers: { it } });

const EVERYTHING = {
  $schema: './postern.schema.json',
  builtIn: false,
  separator: '--',
  maxNameLength: 48,
  names: 'strict',
  inputs: [],
  mcpServers: {
    GitHub: {
      type: 'sse',
      url: 'https://github.example/mcp',
      headers: { Authorization: 'Bearer ${TOKEN:-x}' },
      prefix: 'gh',
      timeout: 1000,
      era: 'session',
      required: true,
      tools: { include: ['*'], exclude: ['delete_*'], describe: { search: 'Searches.' } },
      autoApprove: ['search'],
    },
    wiki: { ...URL_ONLY, auth: { type: 'token-exchange', audience: 'wiki', scope: 'read write' } },
    'My crm_2': { serverUrl: 'https://crm.example', auth: { type: 'identity' } },
    drive: {
      ...URL_ONLY,
      auth: {
        type: 'oauth',
        clientId: 'c',
        clientSecret: '${SECRET:-s}',
        authorizationServer: {
          authorizationUrl: 'https://it.example/a',
          tokenUrl: 'https://it.example/t',
        },
        scopes: ['read'],
        resource: false,
        parameters: { access_type: 'offline' },
        tokenParameters: { audience: 'drive' },
        clientAuth: 'basic',
        pkce: false,
        owner: 'shared',
        list: 'shared',
        accounts: 1,
        allowPrivate: true,
      },
    },
    linear: {
      ...URL_ONLY,
      auth: {
        type: 'oauth',
        authorizationServer: 'https://it.example',
        resource: 'https://it.example',
      },
    },
    hr: { httpUrl: '${HR_URL:-https://hr.example}', auth: { type: 'forward', audience: 'hr' } },
  },
  servers: {
    files: {
      type: 'stdio',
      command: 'npx',
      args: ['-y', 'server'],
      env: { TOKEN: 'x' },
      cwd: '/srv',
      isolation: 'user',
      maxProcesses: 5,
      idleSeconds: 60,
      roots: true,
      disabled: '${OFF:-false}',
      timeout: '${MS:-5000}',
      prefix: '',
    },
  },
  rules: [
    { who: 'everyone', may: ['*'] },
    {
      who: {
        groups: ['a'],
        scopes: ['b'],
        clients: ['c*'],
        claims: { d: 1, e: ['f', true], g: { h: ['i'] } },
      },
      may: ['prompt:*'],
    },
    { when: 'true', may: ['resource:config://*'] },
  ],
} as const;

test('§18.1 schema: the shipped one is generated from what parses the file', () => {
  expect(shipped).toEqual(createGatewayFileSchema());
});

test('§18.1 schema: a file with every member is valid, and the gateway takes it', async () => {
  expect(isValid(EVERYTHING), JSON.stringify(isValid.errors)).toBe(true);
  expect(await findProblems(EVERYTHING)).toEqual([]);
});

test.each(['everyone', 'nobody', []])(
  '§18.5 schema: of rules, %j is what the gateway takes it for',
  async (rules) => {
    expect(isValid({ rules })).toBe((await findProblems({ rules })).length === 0);
    expect(isValid({ rules })).toBe(rules === 'everyone');
  },
);

test('§18.1 schema: the file of an example that lacks everything optional is valid', async () => {
  for (const content of [{}, server(URL_ONLY), server({ command: 'npx' })]) {
    expect(isValid(content), JSON.stringify(isValid.errors)).toBe(true);
    expect(await findProblems(content)).toEqual([]);
  }
});

test.each([
  { content: [] },
  { content: { mcpServer: {} } },
  { content: { mcpServers: [] } },
  { content: { mcpServers: { '…': URL_ONLY } } },
  { content: { separator: 'x' } },
  { content: { builtIn: 'no' } },
  { content: server({}) },
  { content: server({ ...URL_ONLY, command: 'npx' }) },
  { content: server({ ...URL_ONLY, httpUrl: URL_ONLY.url }) },
  { content: server({ ...URL_ONLY, args: [] }) },
  { content: server({ command: 'npx', headers: {} }) },
  { content: server({ ...URL_ONLY, hedaers: {} }) },
  { content: server({ ...URL_ONLY, disabledTools: [] }) },
  { content: server({ url: 'ftp://x.example' }) },
  { content: server({ ...URL_ONLY, type: 'websocket' }) },
  { content: server({ ...URL_ONLY, headers: { 'a b': 'x' } }) },
  { content: server({ ...URL_ONLY, headers: { a: 1 } }) },
  { content: server({ ...URL_ONLY, timeout: 60 }) },
  { content: server({ ...URL_ONLY, timeout: '60000' }) },
  { content: server({ ...URL_ONLY, prefix: '-' }) },
  { content: server({ ...URL_ONLY, tools: { include: '*' } }) },
  { content: server({ ...URL_ONLY, tools: { include: [''] } }) },
  { content: server({ ...URL_ONLY, auth: { type: 'basic' } }) },
  { content: server({ ...URL_ONLY, auth: { type: 'forward' } }) },
  { content: server({ ...URL_ONLY, auth: { type: 'identity', audience: 'x' } }) },
  { content: server({ ...URL_ONLY, auth: { audience: 'x' } }) },
  { content: server({ ...URL_ONLY, auth: { type: 'oauth', audience: 'x' } }) },
  { content: server({ ...URL_ONLY, auth: { type: 'oauth', clientSecret: 'x' } }) },
  { content: server({ ...URL_ONLY, auth: { type: 'oauth', accounts: 2 } }) },
  { content: server({ ...URL_ONLY, auth: { type: 'oauth', resource: true } }) },
  { content: server({ ...URL_ONLY, auth: { type: 'oauth', scopes: 'read write' } }) },
  { content: server({ ...URL_ONLY, auth: { type: 'oauth', parameters: { state: 'x' } } }) },
  { content: server({ ...URL_ONLY, auth: { type: 'oauth', authorizationServer: {} } }) },
  { content: server({ command: 'npx', isolation: 'none' }) },
  { content: server({ command: 'npx', maxProcesses: 0 }) },
  { content: server({ command: 'npx', env: { A: 1 } }) },
  { content: { rules: [{ may: ['*'] }] } },
  { content: { rules: [{ who: 'everyone' }] } },
  { content: { rules: [{ who: 'everyone', may: [] }] } },
  { content: { rules: [{ who: {}, may: ['*'] }] } },
  { content: { rules: [{ who: 'all', may: ['*'] }] } },
  { content: { rules: [{ who: { group: ['x'] }, may: ['*'] }] } },
])('§18.1 schema: $content is not valid, and the gateway refuses it', async ({ content }) => {
  expect(isValid(content)).toBe(false);
  expect(await findProblems(content)).not.toEqual([]);
});
