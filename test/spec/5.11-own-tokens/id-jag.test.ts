// Assertions of an identity provider in place of a login (ID-JAG): what they get, for whom, and when it ends.
import { expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import {
  assertUser,
  bringAssertion,
  type Change,
  ID_JAG_ENV,
  JWT_BEARER,
} from '../../support/oauth/id-jag.ts';
import { startIssuer } from '../../support/oauth/issuer.ts';
import { createLogoutTokens, sendLogout } from '../../support/oauth/logout-tokens.ts';
import {
  ASSERTION_TYPE,
  askForToken,
  assertionOf,
  basic,
  fileOf,
  type Members,
  newKey,
  SECRET,
  withSecret,
} from '../../support/oauth/machine-clients.ts';
import { ask, logInBy, PAGE } from '../../support/oauth/operator-logins.ts';
import { BASE, MCP, startOwnTokens } from '../../support/oauth/own-tokens.ts';

const KEY = newKey('ES256');
const CLIENTS = [
  withSecret('agent', { scopes: ['read', 'write', 'openid'], groups: ['robots'] }),
  withSecret('other', { scopes: ['read'] }),
  withSecret('narrow', { scopes: ['read'], resources: ['/mcp/wiki', '/admin'] }),
  { id: 'signs', jwks: { keys: [KEY.jwk] }, scopes: ['read'] },
];
const SERVERS = { mcpServers: { wiki: { url: 'http://127.0.0.1:9/mcp' } } };

const own = useFresh(async () => {
  const partner = await startIssuer();
  const setup = await startOwnTokens({
    isReplicated: true,
    env: { ...ID_JAG_ENV },
    deps: { file: await fileOf(CLIENTS, SERVERS) },
  });
  return {
    ...setup,
    partner,
    assert: (change?: Change) => assertUser(setup.provider.issuer, setup.clock.now(), change),
    async close() {
      await setup.close();
      await partner.close();
    },
  };
});

const readProfile = async (token: string) => {
  const opened = await own.call(token);
  const { json } = await own.gateway.rpc(
    { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'user://profile' } },
    { token, session: String(opened.headers['mcp-session-id']) },
  );
  return JSON.parse(json.result.contents[0].text);
};

test('§13.7 ID-JAG: an assertion gets a token for its user, without a refresh token, at once and on each replica', async () => {
  const answer = await bringAssertion(own.gateway, await own.assert());
  expect([answer.status, answer.headers['cache-control']]).toEqual([200, 'no-store']);
  const { access_token, ...rest } = answer.json;
  expect(access_token).toMatch(/^pst_/);
  expect(rest).toEqual({ token_type: 'Bearer', expires_in: 3600, scope: 'read write' });
  expect((await own.other.call(access_token)).status).toBe(200);
  expect(await readProfile(access_token)).toMatchObject({
    sub: 'user-1',
    name: 'Ada',
    email: 'ada@example.com',
  });
  own.clock.advance(3_600_000);
  expect((await own.call(access_token)).json.error.data.reason).toBe('expired_token');
});

test('§13.7 ID-JAG: the user is the one who logs in at the provider: sessions are the same', async () => {
  const { access } = await own.logIn({ sub: 'user-1' });
  const opened = await own.call(access);
  const session = String(opened.headers['mcp-session-id']);
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' } as const;
  const mine = (await bringAssertion(own.gateway, await own.assert())).json.access_token;
  expect((await own.gateway.rpc(list, { token: mine, session })).status).toBe(200);
  const theirs = await own.assert({ claims: { sub: 'user-2' } });
  const token = (await bringAssertion(own.gateway, theirs)).json.access_token;
  expect((await own.gateway.rpc(list, { token, session })).status).toBe(404);
});

test('RFC 7523 §3, §13.7 ID-JAG: an assertion is good once, on all replicas; what refused it before cost nothing', async () => {
  const assertion = await own.assert();
  const refused = [
    await bringAssertion(own.gateway, assertion, { authorization: basic('agent', 'wrong') }),
    await bringAssertion(own.gateway, assertion, { form: { resource: 'https://other.example' } }),
    await bringAssertion(own.gateway, assertion, { authorization: basic('other', SECRET) }),
  ];
  expect(refused.map(({ json }) => json.error)).toEqual([
    'invalid_client',
    'invalid_target',
    'invalid_grant',
  ]);
  const answers = await Promise.all(
    [own, own.other, own, own.other].map(({ gateway }) => bringAssertion(gateway, assertion)),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400]);
  for (const { status, json } of answers)
    if (status === 400) expect(json.error).toBe('invalid_grant');
  own.clock.advance(299_000);
  expect((await bringAssertion(own.other.gateway, assertion)).json.error).toBe('invalid_grant');
});

test('§13.7 ID-JAG: of two issuers, one jti is two, and one sub is two users', async () => {
  const { issuer } = own.provider;
  const both = await own.open({ ID_JAG_ISSUERS: `${issuer.url},${own.partner.url}` });
  const claims = { jti: 'the-same', groups: ['operators'] };
  const one = await assertUser(issuer, own.clock.now(), { claims });
  const two = await assertUser(own.partner, own.clock.now(), { claims });
  const [first, second] = [
    await bringAssertion(both.gateway, one),
    await bringAssertion(both.gateway, two),
  ];
  expect([first.status, second.status]).toEqual([200, 200]);
  // The same sub at another issuer is somebody else.
  const session = String((await both.call(first.json.access_token)).headers['mcp-session-id']);
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' } as const;
  const as = (token: string) => both.gateway.rpc(list, { token, session });
  expect((await as(first.json.access_token)).status).toBe(200);
  expect((await as(second.json.access_token)).status).toBe(404);
  // Where the partner is not named its users have no place.
  expect((await own.call(first.json.access_token)).status).toBe(200);
  expect((await own.call(second.json.access_token)).json.error.data.reason).toBe('token_revoked');
  expect((await bringAssertion(own.gateway, two)).json.error).toBe('invalid_grant');
});

test('§13.7, §22.1 ID-JAG: an operator’s token that a client got by an assertion serves /mcp and never /admin, whichever issuer says it', async () => {
  const { issuer } = own.provider;
  const both = await own.open({
    ID_JAG_ISSUERS: `${issuer.url},${own.partner.url}`,
    ADMIN_GROUPS: 'operators',
    ADMIN_CLIENTS: 'agent',
  });
  for (const by of [issuer, own.partner]) {
    const claims = { groups: ['operators'] };
    const assertion = await assertUser(by, own.clock.now(), { claims });
    const { access_token: token } = (await bringAssertion(both.gateway, assertion)).json;
    for (const path of ['/access', '/sessions']) {
      const { status, json } = await ask(both, token, path);
      expect([status, json.error.data.reason]).toEqual([401, 'invalid_audience']);
    }
    expect((await both.call(token)).status).toBe(200);
  }
  const { access } = await logInBy(both, PAGE);
  expect((await ask(both, access, '/sessions')).status).toBe(200);
});

test('§13.7 ID-JAG: one issuer that is down, or stalls, is 503 for its users and nothing for those of others', async () => {
  const { issuer } = own.provider;
  own.partner.behave('slow');
  const both = await own.open({ ID_JAG_ISSUERS: `${issuer.url},${own.partner.url}` });
  const two = await assertUser(own.partner, own.clock.now());
  const waiting = bringAssertion(both.gateway, two);
  expect((await bringAssertion(both.gateway, await own.assert())).status).toBe(200);
  own.partner.behave('ok');
  await own.clock.sleep(20_000);
  const { status, json, headers } = await waiting;
  expect([status, json.error, headers['retry-after']]).toEqual([
    503,
    'temporarily_unavailable',
    '2',
  ]);
  await expect
    .poll(async () => {
      await own.clock.sleep(5000);
      const next = await assertUser(own.partner, own.clock.now());
      return (await bringAssertion(both.gateway, next)).status;
    })
    .toBe(200);
});

test.each([
  { scope: 'read write', asked: undefined, granted: 'read write' },
  { scope: 'read write', asked: 'write', granted: 'write' },
  { scope: 'read', asked: 'read write', granted: 'read' },
  { scope: 'read admin', asked: 'read admin', granted: 'read' },
  { scope: 'read write', asked: 'openid profile email', granted: undefined },
  { scope: 'read openid', asked: 'openid profile email', granted: 'openid' },
  { scope: undefined, asked: 'read', granted: undefined },
  { scope: 'admin', asked: undefined, granted: undefined },
])('§13.7 ID-JAG: of $scope, asked for $asked, the client gets $granted', async (row) => {
  const assertion = await own.assert({ claims: { scope: row.scope } });
  const form: Record<string, string> = row.asked === undefined ? {} : { scope: row.asked };
  const { status, json } = await bringAssertion(own.gateway, assertion, { form });
  expect([status, json.scope]).toEqual([200, row.granted]);
});

const WIKI = `${MCP}/wiki`;

test.each([
  { of: MCP, asked: undefined, all: 200, wiki: true },
  { of: BASE, asked: MCP, all: 200, wiki: true },
  { of: `${BASE}/`, asked: WIKI, all: 401, wiki: true },
  { of: WIKI, asked: undefined, all: 401, wiki: true },
  { of: [WIKI], asked: WIKI, all: 401, wiki: true },
  { of: undefined, asked: undefined, all: 200, wiki: true },
  { of: undefined, asked: WIKI, all: 401, wiki: true },
  { of: MCP, client: 'narrow', asked: undefined, all: 401, wiki: true },
])('RFC 8707, §13.7 ID-JAG: an assertion for $of, asked for $asked, by $client', async (row) => {
  const { client = 'agent' } = row;
  const assertion = await own.assert({ claims: { resource: row.of, client_id: client } });
  const { status, json } = await bringAssertion(own.gateway, assertion, {
    form: row.asked === undefined ? {} : { resource: row.asked },
    authorization: basic(client, SECRET),
  });
  expect(status).toBe(200);
  expect((await own.call(json.access_token)).status).toBe(row.all);
  expect((await own.call(json.access_token, '/mcp/wiki')).status !== 401).toBe(row.wiki);
});

test.each([
  { of: WIKI, asked: MCP },
  { of: MCP, asked: 'https://elsewhere.example/mcp' },
  { of: MCP, asked: `${BASE}/admin` },
  { of: MCP, asked: MCP, client: 'narrow' },
])('RFC 8707, §13.7 ID-JAG: refused: for $of, asked for $asked, by $client', async (row) => {
  const { client = 'agent' } = row;
  const assertion = await own.assert({ claims: { resource: row.of, client_id: client } });
  const { status, json } = await bringAssertion(own.gateway, assertion, {
    form: { resource: row.asked },
    authorization: basic(client, SECRET),
  });
  expect([status, json.error]).toEqual([400, 'invalid_target']);
});

test('§13.7 ID-JAG: a client proves who it is by a signature, too, and each of both once', async () => {
  const bring = async (client_assertion: string, assertion: string) =>
    askForToken(own.gateway, {
      form: {
        grant_type: JWT_BEARER,
        assertion,
        client_assertion,
        client_assertion_type: ASSERTION_TYPE,
      },
    });
  const proof = assertionOf('signs', KEY, own.clock.now());
  const claims = { client_id: 'signs' };
  const first = await own.assert({ claims });
  expect((await bring(proof, first)).json.scope).toBe('read');
  const next = await own.assert({ claims });
  expect((await bring(proof, next)).json.error).toBe('invalid_client');
  const fresh = assertionOf('signs', KEY, own.clock.now());
  expect((await bring(fresh, next)).status).toBe(200);
});

test('§13.7 ID-JAG: clients that registered, or say nothing but an ID, cannot', async () => {
  const client = await own.steps.register();
  for (const clientId of [client.id, 'agent', 'postern-playground']) {
    const assertion = await own.assert({ claims: { client_id: clientId } });
    const { status, json } = await askForToken(own.gateway, {
      form: { grant_type: JWT_BEARER, assertion, client_id: clientId },
    });
    expect([status, json.error]).toEqual([401, 'invalid_client']);
  }
});

test('§13.7 ID-JAG: a client that is removed, or changed, is out with its users; one revokes its own tokens, and no other does', async () => {
  const get = async () => (await bringAssertion(own.gateway, await own.assert())).json.access_token;
  const token = await get();
  const revoke = (authorization: string) =>
    askForToken(own.gateway, { path: '/oauth/revoke', form: { token }, authorization });
  expect((await revoke(basic('other', SECRET))).json.error).toBe('invalid_grant');
  expect((await own.other.call(token)).status).toBe(200);
  expect((await revoke(basic('agent', SECRET))).status).toBe(200);
  expect((await own.other.call(token)).json.error.data.reason).toBe('token_revoked');

  const next = await get();
  expect((await own.call(next)).status).toBe(200);
  await own.gateway.gateway.reload({ file: await fileOf(CLIENTS.slice(1), SERVERS) });
  expect((await own.call(next)).json.error.data.reason).toBe('token_revoked');
});

test('§4.10, §13.7 ID-JAG: the metadata says so where it is on; where it is off there is no such grant', async () => {
  const read = async (gateway: typeof own.gateway) =>
    (await gateway.request({ path: '/.well-known/oauth-authorization-server' })).json;
  expect(await read(own.gateway)).toMatchObject({
    grant_types_supported: [
      'authorization_code',
      'refresh_token',
      'client_credentials',
      JWT_BEARER,
    ],
    authorization_grant_profiles_supported: ['urn:ietf:params:oauth:grant-profile:id-jag'],
  });
  const off = await own.open({ ID_JAG: 'false' });
  const document = await read(off.gateway);
  expect(document).not.toHaveProperty('authorization_grant_profiles_supported');
  expect(document.grant_types_supported).not.toContain(JWT_BEARER);
  const { access_token: token } = (await bringAssertion(own.gateway, await own.assert())).json;
  const refused = await bringAssertion(off.gateway, await own.assert());
  expect(refused.json.error).toBe('unsupported_grant_type');
  expect((await off.call(token)).json.error.data.reason).toBe('token_revoked');
});

test('§13.4, §13.7 ID-JAG: a logout at the provider ends what an assertion of that session got, and nothing else', async () => {
  const { provider, partner } = own;
  const both = await own.open({ ID_JAG_ISSUERS: `${provider.issuer.url},${partner.url}` });
  const give = async (claims: Members, issuer = provider.issuer): Promise<string> =>
    (await bringAssertion(both.gateway, await assertUser(issuer, own.clock.now(), { claims }))).json
      .access_token;
  const tokens = {
    mine: await give({ sid: 'sid-1' }),
    ofOtherSession: await give({ sid: 'sid-2' }),
    ofOtherUser: await give({ sub: 'user-2', sid: 'sid-2' }),
    ofOtherIssuer: await give({ sid: 'sid-1' }, partner),
  };
  const logoutToken = await createLogoutTokens(own).sign();
  expect((await sendLogout(own.other.gateway, logoutToken)).status).toBe(200);
  const reasons = Object.entries(tokens).map(async ([whose, token]) => {
    const { status, json } = await both.call(token);
    return [whose, status === 200 ? 'good' : json.error.data.reason];
  });
  expect(Object.fromEntries(await Promise.all(reasons))).toEqual({
    mine: 'token_revoked',
    ofOtherSession: 'good',
    ofOtherUser: 'good',
    ofOtherIssuer: 'good',
  });
});
