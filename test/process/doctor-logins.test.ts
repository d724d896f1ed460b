// postern doctor at servers that want a login of each user: what is missing there, and which line to write.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { ENTRA, GITHUB, KEEPS_TO_MCP, type ServerHabits } from '../support/connections/habits.ts';
import { startHostileServer } from '../support/connections/hostile-server.ts';
import { startProtectedServer } from '../support/connections/protected-server.ts';
import { runDoctor } from '../support/gateway/doctor.ts';
import { freePort } from '../support/gateway/ports.ts';
import { endPosterns, makeFolder } from '../support/gateway/process.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { startEmulator } from '../support/providers/emulator.ts';
import { OPENID_HABITS } from '../support/providers/openid-habits.ts';

afterEach(endPosterns);

const provider = useShared(() => startEmulator(OPENID_HABITS));
const BASE_URL = 'https://mcp.example.com';

async function diagnose(servers: Readonly<Record<string, object>>, env = {}) {
  const cwd = await makeFolder();
  const file = join(cwd, 'mcp.json');
  await writeFile(file, JSON.stringify({ mcpServers: servers }));
  const { find, findings } = await runDoctor(undefined, {
    cwd,
    env: { ...provider.env, BASE_URL, POSTERN_CONFIG: file, DATA_DIR: cwd, ...env },
  });
  return { find, logins: findings.filter(({ check }) => check === 'server.login') };
}

async function diagnoseLogin(habits: ServerHabits, auth = {}) {
  const server = closeAfterTest(await startProtectedServer({ habits }));
  const { logins } = await diagnose({ it: server.configure(auth) });
  return { server, logins };
}

test('§24.6 doctor: a server that keeps to MCP lets the gateway register, and nothing is registered', async () => {
  const { server, logins } = await diagnoseLogin(KEEPS_TO_MCP);
  expect(logins).toMatchObject([
    {
      status: 'ok',
      what: `Users of it log in at ${server.issuer}. The gateway registers itself there when the first user connects.`,
    },
  ]);
  expect(server.seen('register')).toEqual([]);
});

test('§24.6 doctor: where nobody can register, it says to create a client, and with which redirect URI', async () => {
  const { server, logins } = await diagnoseLogin(ENTRA, {
    clientId: undefined,
    clientSecret: undefined,
  });
  expect(logins).toMatchObject([
    {
      status: 'failure',
      what: `Users cannot connect to it: ${server.issuer} lets no client register itself.`,
      setting: 'POSTERN_CONFIG',
      remedy: `create a client there with the redirect URI ${BASE_URL}/connections/callback/it, and set its "clientId" (and "clientSecret") in the "auth" of it.`,
    },
  ]);
});

test('§24.6 doctor: a client of the configuration file is named, without its secret', async () => {
  const { logins } = await diagnoseLogin(GITHUB);
  expect(logins).toMatchObject([
    {
      status: 'ok',
      what: expect.stringMatching(/The gateway is the client of "clientId" there\.$/),
    },
    {
      status: 'unknown',
      what: expect.stringMatching(
        /^whether .* knows the client .* Its redirect URI there must be https:\/\/mcp\.example\.com\/connections\/callback\/it\.$/,
      ),
    },
  ]);
  expect(JSON.stringify(logins)).not.toContain('secret-made-at-the-server');
});

test('§24.6 doctor: where client documents are taken, a gateway of a public address is known by its own', async () => {
  const { logins } = await diagnoseLogin({ ...KEEPS_TO_MCP, takesClientDocuments: true });
  expect(logins).toMatchObject([
    {
      status: 'ok',
      what: expect.stringContaining('The gateway is known there by its client document.'),
    },
  ]);
});

test('§24.6 doctor: where none of them sends iss, a document that is the same at all would mix authorization servers up: the gateway registers', async () => {
  const { logins } = await diagnoseLogin({
    ...KEEPS_TO_MCP,
    takesClientDocuments: true,
    iss: 'none',
  });
  expect(logins).toMatchObject([
    { status: 'ok', what: expect.stringContaining('The gateway registers itself there') },
  ]);
});

test('§24.6 doctor: a client with the redirect URI of all servers needs an authorization server that sends iss', async () => {
  const { logins } = await diagnoseLogin(GITHUB, { redirectUri: 'common' });
  expect(logins).toMatchObject([
    {
      status: 'failure',
      what: expect.stringContaining('does not promise to say in its responses who it is'),
      remedy: `add the redirect URI ${BASE_URL}/connections/callback/it to the client there, and remove "redirectUri" from the "auth" of it.`,
    },
  ]);
});

test('§24.6 doctor: a server whose metadata names the endpoints of another’s authorization server, or of the provider: nobody can connect it', async () => {
  const wiki = closeAfterTest(await startProtectedServer());
  const bait = closeAfterTest(await startHostileServer());
  for (const issuer of [wiki.issuer, provider.env.OIDC_ISSUER ?? '']) {
    bait.document = { token_endpoint: `${issuer}/token` };
    for (const auth of [{}, { clientId: 'c', authorizationServer: wiki.issuer }]) {
      const { logins } = await diagnose({
        wiki: wiki.configure(auth),
        bait: { url: bait.url, auth: { type: 'oauth' } },
      });
      const sure = logins.filter(({ status }) => status !== 'unknown');
      expect(sure.map(({ status }) => status)).toEqual(['ok', 'failure']);
      expect(sure[1]?.what).toContain(`which are those of ${issuer}, another`);
    }
  }
  // The issuer that is configured has its endpoints at another host.
  const issuer = closeAfterTest(await startHostileServer());
  issuer.document = { token_endpoint: `${wiki.issuer}/token` };
  bait.document = issuer.document;
  const elsewhere = await diagnose({
    wiki: wiki.configure({ clientId: 'c', authorizationServer: issuer.issuer }),
    bait: { url: bait.url, auth: { type: 'oauth' } },
  });
  expect(elsewhere.logins.at(-1)?.what).toContain(`which are those of ${issuer.issuer}, another`);
  const auth = { type: 'oauth', authorizationServer: bait.issuer };
  const { logins } = await diagnose({ wiki: wiki.configure(), bait: { url: bait.url, auth } });
  expect(logins.map(({ status }) => status)).toEqual(['ok', 'ok']);
});

test.each<{ name: string; habits: Partial<ServerHabits>; says: RegExp }>([
  {
    name: 'does not support PKCE with S256',
    habits: { document: { code_challenge_methods_supported: ['plain'] } },
    says: /does not support PKCE with S256/,
  },
  {
    name: 'metadata of another issuer',
    habits: { document: { issuer: 'https://other.example' } },
    says: /is from a different issuer: "https:\/\/other\.example"/,
  },
  {
    name: 'metadata that is nowhere',
    habits: { metadataPlace: 'nowhere' },
    says: /is at none of the standard places/,
  },
  {
    name: 'resource metadata of another server',
    habits: { resourceMetadata: 'of another resource' },
    says: /which is not this server/,
  },
  {
    name: 'an endpoint without TLS elsewhere',
    habits: { document: { token_endpoint: 'http://as.example/token' } },
    says: /token_endpoint that is "http:\/\/as\.example\/token", which is not https/,
  },
])('§24.6 doctor: $name is a failure that says what is wrong', async ({ habits, says }) => {
  const { logins } = await diagnoseLogin({ ...KEEPS_TO_MCP, ...habits });
  const failures = logins.filter(({ status }) => status === 'failure');
  expect(failures).toHaveLength(1);
  expect(failures[0]?.what).toMatch(says);
  expect(failures[0]?.remedy).toBeTruthy();
});

test('§24.6 doctor: an authorization server that does not say whether it takes PKCE is a warning', async () => {
  const { logins } = await diagnoseLogin({
    ...KEEPS_TO_MCP,
    document: { code_challenge_methods_supported: undefined },
  });
  expect(logins.map(({ status }) => status)).toEqual(['ok', 'warning']);
});

test('§24.6 doctor: an address that is not public, which the server names, needs "allowPrivate"', async () => {
  const resourceDocument = { authorization_servers: ['https://10.1.2.3'] };
  const { logins } = await diagnoseLogin({ ...KEEPS_TO_MCP, resourceDocument });
  expect(logins).toMatchObject([
    {
      status: 'failure',
      what: expect.stringContaining('https://10.1.2.3 could not be fetched'),
      remedy: 'if the login of it is inside your network, add "allowPrivate": true to its "auth".',
    },
  ]);
});

test('§24.6 doctor: a server that is not there is a failure, with the reason', async () => {
  const { logins } = await diagnose({
    down: { url: `http://127.0.0.1:${await freePort()}/mcp`, auth: { type: 'oauth' } },
  });
  expect(logins).toMatchObject([
    {
      status: 'failure',
      what: expect.stringMatching(/^Users cannot connect to down: .* could not be fetched/),
      why: expect.stringContaining('ECONNREFUSED'),
      remedy: expect.stringMatching(/^check that it is up, .* down has the right "url"/),
    },
  ]);
});

test('§24.6 doctor: without tokens of the gateway it says which setting is needed', async () => {
  const { find } = await diagnose(
    { it: { url: 'http://127.0.0.1:1/mcp', auth: { type: 'oauth' } } },
    { OAUTH_MODE: 'proxy' },
  );
  expect(find('settings').what).toMatch(/it: auth oauth needs OAUTH_MODE=broker/);
});
