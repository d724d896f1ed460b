// Every kind of server that is known: it is connected with the lines that its documentation has, called, renewed, and ended.
import { expect, test } from 'vitest';
import { connect } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import {
  ENTRA,
  GITHUB,
  KEEPS_TO_MCP,
  SERVERS,
  type ServerHabits,
  SLACK,
} from '../../support/connections/habits.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const DAY_MS = 86_400_000;

async function start(habits: ServerHabits, auth: Readonly<Record<string, unknown>> = {}) {
  const clock = manualClock(1_800_000_000_000);
  const server = closeAfterTest(await startProtectedServer({ habits, clock }));
  const gateway = closeAfterTest(
    await startConnectingGateway({
      clock,
      servers: { it: server.configure(auth) },
    }),
  );
  const browser = gateway.createBrowser({ person: 'ada', account: 'ada@work' });
  return { clock, server, gateway, browser };
}

test.for(SERVERS.map((habits) => [habits.title, habits] as const))(
  '§24 %s: is connected, called, called again after its tokens have expired, and disconnected',
  async ([, habits]) => {
    const { clock, server, gateway, browser } = await start(habits);
    const page = await connect(gateway, browser, 'it');
    expect([page.status, page.text]).toEqual([200, expect.stringMatching(/\bConnected\b/)]);
    const user = await gateway.logIn('ada');
    expect(await user.call('it__whoami')).toEqual({ isError: false, text: 'ada@work' });

    clock.sleep(DAY_MS);
    const later = await gateway.logIn('ada');
    expect(await later.call('it__whoami')).toEqual({ isError: false, text: 'ada@work' });
    const isRenewed = habits.hasRefreshTokens && habits.expiresIn !== undefined;
    expect(server.seen('token')).toHaveLength(isRenewed ? 2 : 1);
    expect(server.seen('register')).toHaveLength(habits.registration === 'open' ? 1 : 0);

    const list = await browser.open(`${gateway.baseUrl}/connections`);
    await browser.press(list, /^Disconnect it$/);
    // Where the endpoints are written out, nobody says where one revokes.
    const isRevoked = habits !== SLACK;
    expect(server.seen('revoke').length > 0).toBe(isRevoked);
    expect(server.countActiveLogins()).toBe(isRevoked ? 0 : 1);
    const count = server.calls().length;
    expect((await later.call('it__whoami')).isError).toBe(true);
    expect(server.calls()).toHaveLength(count);
  },
);

test.for(SERVERS.map((habits) => [habits.title, habits] as const))(
  '§24.4 %s: a login that was ended there leads to the doors again, and the server is not down for others',
  async ([, habits]) => {
    const { server, gateway, browser } = await start(habits);
    const bob = gateway.createBrowser({ person: 'bob', account: 'bob@work' });
    await connect(gateway, browser, 'it');
    await connect(gateway, bob, 'it');
    server.endLoginsOf('ada@work');
    const [ada, other] = [await gateway.logIn('ada'), await gateway.logIn('bob')];
    const refused = await ada.call('it__whoami');
    expect(refused.isError).toBe(true);
    expect(refused.text).toContain(`${gateway.baseUrl}/connections/it`);
    expect(await other.call('it__whoami')).toEqual({ isError: false, text: 'bob@work' });
    const page = await browser.open(`${gateway.baseUrl}/connections`);
    expect(page.text).toContain('Login needed');

    await connect(gateway, browser, 'it');
    expect(await ada.call('it__whoami')).toEqual({ isError: false, text: 'ada@work' });
  },
);

const OFFERED_NOTHING: readonly (readonly [string, Partial<ServerHabits>])[] = [
  ['no registration', { registration: 'none' }],
  ['registration by an allow-list', { registration: 'allow-list' }],
];

test.for(OFFERED_NOTHING)(
  '§24.2 %s and no clientId: the person is told that the operator has to create a client, with the redirect URI',
  async ([, habits]) => {
    const { gateway, browser, server } = await start({ ...KEEPS_TO_MCP, ...habits });
    const page = await browser.press(
      await browser.open(`${gateway.baseUrl}/connections/it`),
      /^Continue$/,
    );
    expect(page.status).toBe(502);
    expect(page.text).toContain(`${gateway.baseUrl}/connections/callback/it`);
    expect(page.text).toContain('clientId');
    expect(server.seen('authorize')).toEqual([]);
  },
);

test.for([GITHUB, SLACK, ENTRA].map((habits) => [habits.title, habits] as const))(
  '§24.3 %s, with a wrong secret: the page names the lines to check, and says that trying again does not help',
  async ([, habits]) => {
    const { gateway, browser } = await start(habits, { clientSecret: 'wrong' });
    const page = await browser.press(
      await browser.open(`${gateway.baseUrl}/connections/it`),
      /^Continue$/,
    );
    expect(page.status).toBe(502);
    expect(page.text).toContain('Check "clientId", "clientSecret" and "clientAuth" of it.');
    expect(page.text).toContain('Trying again does not help.');
    expect(page.text).not.toContain('..');
  },
);

test('§24.3 an authorization server that refuses the parameter resource: the page names the line to write', async () => {
  const { gateway, browser } = await start(ENTRA, { resource: undefined });
  const page = await browser.press(
    await browser.open(`${gateway.baseUrl}/connections/it`),
    /^Continue$/,
  );
  expect(page.status).toBe(502);
  expect(page.text).toContain('invalid_target');
  expect(page.text).toContain('set "resource": false');
  expect(page.text).toContain('Trying again does not help.');
});

test('§24.2 the authorization server names scopes that are too many: what came back is shown', async () => {
  const { gateway, browser } = await start({
    ...KEEPS_TO_MCP,
    resourceScopes: ['mcp:read', 'mcp:delete'],
    grantsOnly: ['mcp:read'],
  });
  await connect(gateway, browser, 'it');
  const page = await browser.open(`${gateway.baseUrl}/connections`);
  expect(page.text).toContain('mcp:read');
  expect(page.text).not.toContain('mcp:delete');
});

const PLACES: readonly (readonly [string, Partial<ServerHabits>])[] = [
  ['RFC 8414', { metadataPlace: 'oauth' }],
  ['RFC 8414, for an issuer with a path', { metadataPlace: 'oauth', issuerPath: '/tenant' }],
  ['OpenID discovery, inserted', { metadataPlace: 'openid inserted', issuerPath: '/tenant' }],
  ['OpenID discovery, appended', { metadataPlace: 'openid appended', issuerPath: '/tenant' }],
  ['the address in the challenge alone', { resourceMetadata: 'elsewhere' }],
  ['the well-known address alone', { namesMetadata: false }],
];

test.for(PLACES)('§24.2 metadata by %s is found', async ([, habits]) => {
  const { gateway, browser } = await start({ ...KEEPS_TO_MCP, ...habits });
  expect((await connect(gateway, browser, 'it')).text).toMatch(/\bConnected\b/);
});

const BAD_METADATA: readonly (readonly [string, Partial<ServerHabits>])[] = [
  ['another issuer', { document: { issuer: 'https://other.example' } }],
  ['no issuer', { document: { issuer: undefined } }],
  [
    'an authorization endpoint without TLS',
    { document: { authorization_endpoint: 'http://id.example/authorize' } },
  ],
  [
    'an authorization endpoint that is a script',
    { document: { authorization_endpoint: 'javascript:alert(1)' } },
  ],
  ['a token endpoint without TLS', { document: { token_endpoint: 'http://id.example/token' } }],
  ['no token endpoint', { document: { token_endpoint: undefined } }],
  ['no PKCE by S256', { document: { code_challenge_methods_supported: ['plain'] } }],
  ['metadata of another resource', { resourceMetadata: 'of another resource' }],
  ['metadata that is too long', { resourceMetadata: 'too long' }],
  ['metadata that is a page', { resourceMetadata: 'a page' }],
  ['no authorization server', { resourceDocument: { authorization_servers: [] } }],
  [
    'an authorization server that is no URL',
    { resourceDocument: { authorization_servers: ['id'] } },
  ],
  ['an authorization server without metadata', { metadataPlace: 'nowhere' }],
];

test.for(BAD_METADATA)(
  '§24.2 %s: the person is told so, nobody is sent anywhere, and no token is asked for',
  async ([, habits]) => {
    const { gateway, browser, server } = await start({ ...KEEPS_TO_MCP, ...habits });
    const page = await browser.press(
      await browser.open(`${gateway.baseUrl}/connections/it`),
      /^Continue$/,
    );
    expect([page.status, new URL(gateway.baseUrl).host]).toEqual([502, page.url.host]);
    expect(page.text).toMatch(/\bit\b/);
    expect([server.seen('authorize'), server.seen('token')]).toEqual([[], []]);
  },
);
