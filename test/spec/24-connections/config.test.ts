// `"auth": {"type": "oauth"}`: its members, what they default to, and what is refused of them.
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { formatProblem } from '../../../src/config/problem.ts';
import { findAuthProblems } from '../../../src/servers/transport/transports.ts';
import {
  findServerProblems,
  parseFile,
  readFile,
  readServer,
} from '../../support/upstreams/gateway-file.ts';

const URL_ONLY = { url: 'https://it.example/mcp' } as const;
const DEFAULTS = { type: 'oauth', pkce: true, owner: 'user', allowPrivate: false } as const;
const ENDPOINTS = { authorizationUrl: 'https://as.example/a', tokenUrl: 'https://as.example/t' };

test.each([
  {},
  { clientId: 'c' },
  { clientId: 'c', clientSecret: 's', clientAuth: 'post' },
  { clientId: 'c', clientSecret: 's', clientAuth: 'basic', pkce: false },
  { clientId: 'c', clientAuth: 'none' },
  { clientAuth: 'private_key_jwt' },
  { clientAuth: 'private_key_jwt', assertionAudience: 'endpoint' },
  { clientId: 'c', redirectUri: 'common' },
  { redirectUri: 'server' },
  { clientAuth: 'post' },
  { clientId: 'c', authorizationServer: ENDPOINTS },
  { scopes: ['read', 'https://it.example/write'] },
  { scopes: [] },
  { resource: 'https://it.example' },
  { resource: 'urn:it:mcp' },
  { resource: false },
  { parameters: { access_type: 'offline', prompt: 'consent' }, tokenParameters: { audience: 'a' } },
  { owner: 'shared', list: 'shared' },
  { list: 'anonymous' },
  { allowPrivate: true },
])('§24.1 connections: auth can have %j', async (given) => {
  expect(await readServer({ ...URL_ONLY, auth: { type: 'oauth', ...given } })).toMatchObject({
    auth: { ...DEFAULTS, ...given },
  });
});

test.each(['https://as.example', 'https://as.example/tenant/', 'http://127.0.0.1:9/as'])(
  '§24.1 connections: the authorization server can be the issuer %s',
  async (issuer) => {
    const auth = { type: 'oauth', authorizationServer: issuer };
    expect(await readServer({ ...URL_ONLY, auth })).toMatchObject({
      auth: { authorizationServer: { issuer } },
    });
  },
);

test('§24.1 connections: accounts can be 1, which is what it is without it', async () => {
  const auth = { type: 'oauth', accounts: 1 };
  expect(await readServer({ ...URL_ONLY, auth })).toEqual(
    await readServer({ ...URL_ONLY, auth: { type: 'oauth' } }),
  );
});

test.each([
  {
    given: { clientSecret: 's' },
    says: ['auth.clientSecret: A secret belongs to a client: add its "clientId".'],
  },
  { given: { pkce: false }, says: ['auth.pkce: false needs a "clientSecret"'] },
  { given: { clientId: 'c', pkce: false }, says: ['auth.pkce: false needs a "clientSecret"'] },
  {
    given: { clientId: 'c', clientSecret: 's', clientAuth: 'none' },
    says: ['auth.clientAuth: "none" sends no secret'],
  },
  {
    given: { clientId: 'c', clientSecret: 's', clientAuth: 'private_key_jwt' },
    says: ['auth.clientAuth: "private_key_jwt" sends no secret'],
  },
  {
    given: { clientId: 'c', clientAuth: 'basic' },
    says: ['auth.clientAuth: "basic" sends a secret: add "clientSecret".'],
  },
  {
    given: { clientAuth: 'tls' },
    says: ['auth.clientAuth: "tls" is not valid. It must be none, post, basic or private_key_jwt.'],
  },
  {
    given: { redirectUri: 'common' },
    says: ['auth.redirectUri: "common" is for a client that was made by hand: add its "clientId"'],
  },
  {
    given: { clientId: 'c', authorizationServer: ENDPOINTS, redirectUri: 'common' },
    says: ['auth.redirectUri: "common" needs an authorization server whose metadata says'],
  },
  {
    given: { assertionAudience: 'https://as.example' },
    says: [
      'auth.assertionAudience: "https://as.example" is not valid. It must be issuer or endpoint',
    ],
  },
  { given: { clientId: ' ' }, says: ['auth.clientId: " " is not valid.'] },
  {
    given: { clientId: 'c', clientSecret: ' ' },
    says: ['auth.clientSecret: The value given (not shown) is not valid.'],
  },
  {
    given: { authorizationServer: 'http://as.example' },
    says: ['auth.authorizationServer: "http://as.example" is not valid. It must be an https URL'],
  },
  {
    given: { authorizationServer: 'https://as.example/.well-known/openid-configuration' },
    says: ['auth.authorizationServer: This is the address of its metadata. Write the issuer'],
  },
  {
    given: { authorizationServer: ENDPOINTS },
    says: [
      'auth.authorizationServer: If the endpoints are configured, the gateway cannot register',
    ],
  },
  { given: { authorizationServer: [] }, says: ['auth.authorizationServer: A list is not valid.'] },
  {
    given: { authorizationServer: {} },
    says: ['"authorizationUrl" is missing', '"tokenUrl" is missing'],
  },
  {
    given: { authorizationServer: { ...ENDPOINTS, tokenUrl: 'http://as.example/t' } },
    says: ['auth.authorizationServer.tokenUrl: "http://as.example/t" is not valid.'],
  },
  {
    given: { scopes: 'read write' },
    says: ['auth.scopes: This value is not valid. It must be a list of scopes'],
  },
  {
    given: { scopes: ['read write'] },
    says: ['auth.scopes[0]: "read write" is not valid. It must be one scope'],
  },
  {
    given: { resource: true },
    says: ['auth.resource: true is not valid. It must be an absolute URI without a fragment'],
  },
  {
    given: { resource: 'it' },
    says: ['auth.resource: "it" is not valid. It must be an absolute URI'],
  },
  {
    given: { resource: 'https://it.example/#a' },
    says: ['auth.resource: "https://it.example/#a" is not valid.'],
  },
  {
    given: { owner: 'operator' },
    says: ['auth.owner: "operator" is not valid. It must be user or shared.'],
  },
  { given: { list: 'everybody' }, says: ['auth.list: "everybody" is not valid.'] },
  { given: { list: 'shared' }, says: ['auth.list: "shared" needs "owner": "shared"'] },
  {
    given: { accounts: 2 },
    says: ['auth.accounts: 2 is not valid. It must be 1: a user has one account'],
  },
  { given: { audience: 'a' }, says: ['auth.audience: "type": "oauth" has no such member'] },
  { given: { parameters: { 'a b': 'c' } }, says: ['A parameter’s name consists of'] },
])('§24.1 connections: auth with $given is refused: $says', async ({ given, says }) => {
  const problems = await findServerProblems({ ...URL_ONLY, auth: { type: 'oauth', ...given } });
  expect(problems).toEqual(says.map((text) => expect.stringContaining(text)));
});

test.each([
  { name: 'state', says: 'Postern sets it itself' },
  { name: 'redirect_uri', says: 'Postern sets it itself' },
  { name: 'response_type', says: 'Postern sets it itself' },
  { name: 'grant_type', says: 'Postern sets it itself' },
  { name: 'code', says: 'Postern sets it itself' },
  { name: 'refresh_token', says: 'Postern sets it itself' },
  { name: 'request_uri', says: 'Postern sets it itself' },
  { name: 'client_id', says: 'use "clientId"' },
  { name: 'client_secret', says: 'use "clientSecret"' },
  { name: 'code_challenge', says: 'use "pkce"' },
  { name: 'scope', says: 'use "scopes"' },
  { name: 'resource', says: 'use "resource"' },
])('§24.1 connections: no parameter can be called $name', async ({ name, says }) => {
  for (const member of ['parameters', 'tokenParameters']) {
    const auth = { type: 'oauth', [member]: { [name]: 'x' } };
    expect(await findServerProblems({ ...URL_ONLY, auth })).toEqual([
      expect.stringContaining(says),
    ]);
  }
});

test('§24.1 connections: a token goes by https only, or on this machine', async () => {
  const auth = { type: 'oauth' };
  expect(await findServerProblems({ url: 'http://it.example/mcp', auth })).toEqual([
    expect.stringContaining('the URL must be https'),
  ]);
  expect(await findServerProblems({ url: 'http://127.0.0.1:9/mcp', auth })).toEqual([]);
});

test('§24.1 connections: a header Authorization beside it is refused', async () => {
  const given = { ...URL_ONLY, headers: { Authorization: 'x' }, auth: { type: 'oauth' } };
  expect(await findServerProblems(given)).toEqual([
    expect.stringContaining('auth sends the header Authorization itself'),
  ]);
});

test('§24.1 connections: a secret can be a variable; in the clear it is named, and not shown', async () => {
  const auth = { type: 'oauth', clientId: 'c', clientSecret: '${SECRET}' };
  const env = { SECRET: 'from-env' };
  const { servers } = await readFile({ mcpServers: { it: { ...URL_ONLY, auth } } }, { env });
  expect(servers[0]).toMatchObject({ auth: { clientSecret: 'from-env' } });

  const plain = { ...auth, clientSecret: 'in-the-clear', tokenParameters: { app_secret: 'too' } };
  const read = async (given: object) => {
    const parsed = await parseFile({ mcpServers: { it: { ...URL_ONLY, auth: given } } }, { env });
    return parsed.kind === 'parsed' ? parsed.warnings : parsed.problems;
  };
  expect(await read(auth)).toEqual([]);
  expect(await read(plain)).toEqual([
    expect.stringContaining(
      'these look like secrets, and anyone who can read this file has them: mcpServers.it.auth.clientSecret, mcpServers.it.auth.tokenParameters.app_secret.',
    ),
  ]);
  expect(JSON.stringify(await read(plain))).not.toContain('in-the-clear');
});

const BROKER = {
  BASE_URL: 'http://localhost:1',
  OIDC_ISSUER: 'https://idp.example',
  OAUTH_CLIENT_ID: 'gateway',
  OAUTH_CLIENT_SECRET: 'gateway-secret',
  OAUTH_MODE: 'broker',
} as const;

const KNOWS_WHO =
  'only with its own tokens can the gateway identify a user without contacting the provider.';
const OPERATORS =
  'Server it: auth oauth with "owner": "shared" needs ADMIN_GROUPS: only operators connect it, and without those groups there are none.';

test.each([
  { env: BROKER, says: [] },
  {
    env: { ...BROKER, OIDC_AUDIENCE: 'a', OAUTH_MODE: 'proxy' },
    says: [`Server it: auth oauth needs OAUTH_MODE=broker: ${KNOWS_WHO}`],
  },
  {
    env: { AUTH_REQUIRED: 'false' },
    says: [
      'Server it: auth oauth needs to know who calls, and with AUTH_REQUIRED=false nobody logs in.',
    ],
  },
])('§24.1 connections: at start, $env comes to $says', async ({ env, says }) => {
  expect(await findStartProblems({}, env)).toEqual(says);
  expect(await findStartProblems({ owner: 'shared' }, env)).toEqual([...says, OPERATORS]);
});

test('§24.1 connections: with operators, a connection can be shared', async () => {
  const env = { ...BROKER, ADMIN_GROUPS: 'ops' };
  expect(await findStartProblems({ owner: 'shared' }, env)).toEqual([]);
});

async function findStartProblems(auth: object, env: Readonly<Record<string, string>>) {
  const server = await readServer({ ...URL_ONLY, auth: { type: 'oauth', ...auth } });
  const problems = findAuthProblems(server === undefined ? [] : [server], loadConfig(env));
  return problems.map(formatProblem);
}
