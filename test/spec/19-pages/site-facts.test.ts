// §19.1, §19.2: what the pages show of this gateway, and what strangers do not get to see.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { createGateway, type Deps } from '../../../src/gateway/gateway.ts';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import { specCatalog } from '../../support/catalogs/spec-catalog.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';

const SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-logo-'));
  await writeFile(join(folder, 'logo.svg'), SVG);
  await writeFile(join(folder, 'large.png'), Buffer.alloc(1_048_577));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

type Env = Readonly<Record<string, string>>;

const start = async (env: Env, deps: Partial<Deps> = {}) =>
  closeAfterTest(await startGateway({ env, deps }));

const factsOf = async (env: Env) => (await (await start(env)).request({ path: '/site.json' })).json;

const BROKER = {
  OAUTH_MODE: 'broker',
  OAUTH_CLIENT_ID: 'provider-client',
};

const TWO_TOOLS = createLocalCatalog({
  tools: ['ping', 'stop'].map((name) =>
    defineTool({
      name,
      description: '',
      inputSchema: { type: 'object' },
      run: () => ({ content: [] }),
    }),
  ),
});

describe('what everybody may know', () => {
  test('§19.2 name, address, version, and who one logs in with', async () => {
    const gateway = await start({ ...BROKER, SERVICE_DISPLAY_NAME: 'Acme’s <tools>' });
    const { status, headers, json } = await gateway.request({ path: '/site.json' });
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/json');
    expect(json).toEqual({
      name: 'Acme’s <tools>',
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      baseUrl: gateway.baseUrl,
      mcpUrl: `${gateway.baseUrl}/mcp`,
      login: {
        provider: new URL(gateway.issuer.url).host,
        mode: 'broker',
        isOffered: true,
        clientId: 'postern-playground',
        redirectUri: `${gateway.baseUrl}/playground/callback`,
      },
    });
  });

  test('§19.2 in proxy mode the login is the provider’s, where all is set that it needs', async () => {
    const env = { OAUTH_AUTHORIZATION_URL: 'https://login.example/authorize' };
    const { login } = await factsOf(env);
    expect(login).toMatchObject({ provider: 'login.example', mode: 'proxy', isOffered: false });
    const whole = { ...env, OAUTH_TOKEN_URL: 'https://login.example/t', OAUTH_CLIENT_ID: 'c' };
    expect((await factsOf(whole)).login).toMatchObject({ isOffered: true });
  });

  test('§19.2 without authentication there is no login', async () => {
    expect(await factsOf({ AUTH_REQUIRED: 'false' })).not.toHaveProperty('login');
  });

  test('§19.2 nothing of the provider’s client is told', async () => {
    const gateway = await start({ ...BROKER, OAUTH_CLIENT_SECRET: 'a-secret-of-ours' });
    const { text } = await gateway.request({ path: '/site.json' });
    expect(text).not.toMatch(/a-secret-of-ours|provider-client/);
  });
});

describe('tools', () => {
  test('§19.2 strangers get no inventory', async () => {
    expect(await factsOf({})).not.toHaveProperty('tools');
  });

  test('§19.2 with SITE_SHOWS_TOOLS=true there are names and descriptions, and no schemas', async () => {
    const { tools } = await factsOf({ SITE_SHOWS_TOOLS: 'true' });
    expect(tools).toContainEqual({ name: 'service_ping', description: expect.any(String) });
    for (const tool of tools) expect(tool).not.toHaveProperty('inputSchema');
  });

  test('§19.2 what rules allow some users only is not among them', async () => {
    const gateway = await startForTest({
      file: {
        mcpServers: {},
        rules: [
          { who: { groups: ['staff'] }, may: ['*'] },
          { who: 'everyone', may: ['ping'] },
        ],
      },
      builtIn: TWO_TOOLS,
      env: { SITE_SHOWS_TOOLS: 'true' },
    });
    const { json } = await gateway.request({ path: '/site.json' });
    expect(json.tools.map(({ name }: { name: string }) => name)).toEqual(['ping']);
  });

  test('§19.2 a list that fails is left out, asked for once a minute, and logged', async () => {
    const clock = manualClock(1_800_000_000_000);
    let asked = 0;
    const catalog = {
      ...specCatalog,
      listTools() {
        asked += 1;
        return Promise.reject(new Error('away'));
      },
    };
    const gateway = await start({ SITE_SHOWS_TOOLS: 'true' }, { catalog, clock });
    for (let turn = 0; turn < 3; turn += 1) {
      expect((await gateway.request({ path: '/site.json' })).json).not.toHaveProperty('tools');
    }
    expect(asked).toBe(1);
    expect(gateway.log.filter(({ msg }) => msg.includes('SITE_SHOWS_TOOLS'))).toHaveLength(1);
    clock.advance(60_000);
    await gateway.request({ path: '/site.json' });
    expect(asked).toBe(2);
  });
});

describe('the logo', () => {
  test('§19.1 a file is served by the gateway, and can run nothing', async () => {
    const gateway = await start({ SERVICE_LOGO_FILE: join(folder, 'logo.svg') });
    expect((await gateway.request({ path: '/site.json' })).json.logo).toBe(
      `${gateway.baseUrl}/logo`,
    );
    const { status, headers, text } = await gateway.request({ path: '/logo' });
    expect({ status, text }).toEqual({ status: 200, text: SVG });
    expect(headers).toMatchObject({
      'content-type': 'image/svg+xml',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    });
  });

  test('§19.1 an address is told as it is, and nothing is served', async () => {
    const gateway = await start({ SERVICE_LOGO_URL: 'https://cdn.example/logo.png' });
    expect((await gateway.request({ path: '/site.json' })).json.logo).toBe(
      'https://cdn.example/logo.png',
    );
    expect((await gateway.request({ path: '/logo' })).status).toBe(404);
  });

  test.each([
    ['nowhere.svg', 'cannot be read (ENOENT)'],
    ['large.png', 'has more than 1048576 bytes'],
  ])('§19.1 the file %s: the start ends with what is wrong', async (name, problem) => {
    const config = loadConfig({ AUTH_REQUIRED: 'false', SERVICE_LOGO_FILE: join(folder, name) });
    await expect(createGateway(config)).rejects.toMatchObject({
      name: 'ConfigError',
      message: expect.stringContaining(problem),
    });
  });

  test.each([
    [{ SERVICE_LOGO_FILE: 'logo.txt' }, 'SERVICE_LOGO_FILE: "logo.txt" is not valid.'],
    [{ SERVICE_LOGO_URL: 'logo.png' }, 'SERVICE_LOGO_URL: "logo.png" is not valid.'],
    [{ SERVICE_LOGO_URL: 'https://a;b.example/' }, 'SERVICE_LOGO_URL: '],
    [
      { SERVICE_LOGO_URL: 'https://a.example/l.png', SERVICE_LOGO_FILE: 'logo.png' },
      'SERVICE_LOGO_URL and SERVICE_LOGO_FILE are both set.',
    ],
  ])('§19.1 %j is refused at start', (env, problem) => {
    expect(() => loadConfig({ AUTH_REQUIRED: 'false', ...env })).toThrow(problem);
  });
});
