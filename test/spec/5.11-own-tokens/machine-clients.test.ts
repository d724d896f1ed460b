// Clients that log in as themselves: what they get, what it is good for, and when it ends.
import { expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import {
  ASSERTION_TYPE,
  askForToken,
  assertionOf,
  basic,
  fileOf,
  getToken,
  newKey,
  SECRET,
  withSecret,
} from '../../support/oauth/machine-clients.ts';
import { BASE, MCP, startOwnTokens } from '../../support/oauth/own-tokens.ts';

const EDDSA = newKey('EdDSA');
const CLIENTS = [
  withSecret('ci', { scopes: ['read', 'write'], groups: ['robots'] }),
  withSecret('other'),
  withSecret('narrow', { resources: ['/mcp/wiki', `${BASE}/admin`] }),
  { id: 'signs', jwks: { keys: [EDDSA.jwk] }, groups: ['robots'] },
];
const SERVERS = { mcpServers: { wiki: { url: 'http://127.0.0.1:9/mcp' } } };

const own = useFresh(async () =>
  startOwnTokens({ isReplicated: true, deps: { file: await fileOf(CLIENTS, SERVERS) } }),
);

const load = async (gateway: typeof own, clients: readonly object[]) =>
  gateway.gateway.gateway.reload({ file: await fileOf(clients, SERVERS) });

test('§5.11 machine clients: a secret in the header, or in the body, gets a token for the client itself', async () => {
  const byHeader = await askForToken(own.gateway, { authorization: basic('ci', SECRET) });
  expect([byHeader.status, byHeader.headers['cache-control']]).toEqual([200, 'no-store']);
  const { access_token, ...rest } = byHeader.json;
  expect(access_token).toMatch(/^pst_/);
  expect(rest).toEqual({ token_type: 'Bearer', expires_in: 3600, scope: 'read write' });
  const form = { client_id: 'ci', client_secret: SECRET };
  const byBody = await askForToken(own.gateway, { form });
  expect(byBody.json.access_token).toBe(access_token);
  const json = { grant_type: 'client_credentials', ...form };
  expect((await askForToken(own.gateway, { body: json })).json.access_token).toBe(access_token);
  const opened = await own.other.call(access_token);
  expect(opened.status).toBe(200);
  const profile = await own.other.gateway.rpc(
    { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'user://profile' } },
    { token: access_token, session: String(opened.headers['mcp-session-id']) },
  );
  expect(JSON.parse(profile.json.result.contents[0].text)).toEqual({
    sub: 'client:ci',
    groups: ['robots'],
  });
});

test.each(['RS256', 'PS256', 'ES256', 'EdDSA'])(
  '§5.11 machine clients: an assertion that %s signed gets a token once, on all replicas',
  async (alg) => {
    const key = newKey(alg);
    const clients = [{ id: 'signs', jwks: { keys: [newKey(alg).jwk, key.jwk] } }];
    await load(own, clients);
    await own.other.gateway.gateway.reload({ file: await fileOf(clients, SERVERS) });
    const assertion = assertionOf('signs', key, own.clock.now());
    const form = { client_assertion: assertion, client_assertion_type: ASSERTION_TYPE };
    const answers = await Promise.all(
      [own, own.other, own, own.other].map(({ gateway }) => askForToken(gateway, { form })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401]);
    const good = answers.find(({ status }) => status === 200);
    expect((await own.call(good?.json.access_token)).status).toBe(200);
    own.clock.advance(59_000);
    expect((await askForToken(own.gateway, { form })).status).toBe(401);
    const unnamed = assertionOf('signs', key, own.clock.now(), { header: { kid: undefined } });
    const again = { ...form, client_assertion: unnamed, client_id: 'signs' };
    expect((await askForToken(own.gateway, { form: again })).status).toBe(200);
  },
);

test.each([
  { asked: {}, scope: 'read write' },
  { asked: { scope: 'write' }, scope: 'write' },
  // What official clients add by themselves, since the metadata offers it.
  { asked: { scope: 'openid profile email' }, scope: 'read write' },
  { asked: { scope: 'openid read' }, scope: 'read' },
  { asked: { scope: 'admin' }, error: 'invalid_scope' },
  { asked: { scope: 'read admin' }, error: 'invalid_scope' },
  { asked: { resource: 'https://elsewhere.example' }, error: 'invalid_target' },
  { asked: { resource: `${MCP}/nothing` }, error: 'invalid_target' },
])('§5.11 machine clients: asks for $asked', async ({ asked, scope, error }) => {
  const authorization = basic('ci', SECRET);
  const { status, json } = await askForToken(own.gateway, { form: { ...asked }, authorization });
  expect([status, json.error, json.scope]).toEqual(
    error === undefined ? [200, undefined, scope] : [400, error, undefined],
  );
});

test('RFC 8707, §5.11 machine clients: a token is for what the client may have, and for no other path', async () => {
  const all = await getToken(own.gateway, 'narrow');
  const statuses = async (token: string) => [
    (await own.call(token)).status,
    (await own.call(token, '/mcp/wiki')).status,
  ];
  const [everywhere, wiki] = await statuses(all);
  expect(everywhere).toBe(401);
  expect(wiki).not.toBe(401);
  for (const resource of [MCP, BASE]) {
    const authorization = basic('narrow', SECRET);
    const { json } = await askForToken(own.gateway, { form: { resource }, authorization });
    expect(json.error).toBe('invalid_target');
  }
  const free = await getToken(own.gateway, 'ci', { resource: `${MCP}/wiki` });
  expect((await own.call(free)).status).toBe(401);
  expect((await own.call(await getToken(own.gateway, 'ci', { resource: BASE }))).status).toBe(200);
});

test('§5.11 machine clients: a token is given again while over half of its life is left, to the same client alone', async () => {
  const first = await getToken(own.gateway, 'ci');
  own.clock.advance(20 * 60_000);
  const again = await askForToken(own.other.gateway, { authorization: basic('ci', SECRET) });
  expect([again.json.access_token, again.json.expires_in]).toEqual([first, 2400]);
  expect(await getToken(own.gateway, 'ci', { scope: 'read' })).not.toBe(first);
  expect(await getToken(own.gateway, 'other')).not.toBe(first);
  own.clock.advance(11 * 60_000);
  const next = await getToken(own.gateway, 'ci');
  expect(next).not.toBe(first);
  expect((await own.call(first)).status).toBe(200);
  own.clock.advance(30 * 60_000);
  expect((await own.call(first)).json.error.data.reason).toBe('expired_token');
  expect((await own.call(next)).status).toBe(200);
});

test('§5.11 machine clients: one that is removed, or whose secret changes, is out at the next call of each replica that knows, and nobody else is', async () => {
  const token = await getToken(own.gateway, 'ci');
  const bystander = await getToken(own.gateway, 'other');
  const person = await own.logIn();
  for (const { call } of [own, own.other]) expect((await call(token)).status).toBe(200);

  const changed = [
    withSecret('ci', { scopes: ['read', 'write'] }, 'another-secret-that-is-as-long'),
    ...CLIENTS.slice(1),
  ];
  await load(own, changed);
  const { status, json, headers } = await own.call(token);
  expect([status, json.error.data.reason]).toEqual([401, 'token_revoked']);
  expect(headers['www-authenticate']).toContain('error="invalid_token"');
  expect((await askForToken(own.gateway, { authorization: basic('ci', SECRET) })).status).toBe(401);
  // The other has not read the file yet: it goes on by what it knows.
  const late = await getToken(own.other.gateway, 'ci');
  expect((await own.other.call(late)).status).toBe(200);
  expect((await own.call(late)).status).toBe(401);
  const next = await getToken(own.gateway, 'ci', {}, 'another-secret-that-is-as-long');
  expect((await own.call(next)).status).toBe(200);

  await own.other.gateway.gateway.reload({ file: await fileOf(CLIENTS.slice(1), SERVERS) });
  for (const one of [token, late, next]) expect((await own.other.call(one)).status).toBe(401);
  await load(own, CLIENTS.slice(1));
  for (const one of [token, late, next]) expect((await own.call(one)).status).toBe(401);
  for (const { call } of [own, own.other]) {
    expect((await call(bystander)).status).toBe(200);
    expect((await call(person.access)).status).toBe(200);
  }
});

test('§5.11 machine clients: groups are those of the file that is served now', async () => {
  const token = await getToken(own.gateway, 'ci');
  const readGroups = async () => {
    const opened = await own.call(token);
    const { json } = await own.gateway.rpc(
      { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'user://profile' } },
      { token, session: String(opened.headers['mcp-session-id']) },
    );
    return JSON.parse(json.result.contents[0].text).groups;
  };
  expect(await readGroups()).toEqual(['robots']);
  const { id, ...first } = withSecret('ci', { scopes: ['read', 'write'], groups: ['humans'] });
  await load(own, [{ id, ...first }]);
  expect(await readGroups()).toEqual(['humans']);
});

test('RFC 7009, §5.11 machine clients: a client revokes its own token, and no other, by its credentials alone', async () => {
  const token = await getToken(own.gateway, 'ci');
  const revoke = (form: Readonly<Record<string, string>>, authorization?: string) =>
    askForToken(own.gateway, {
      path: '/oauth/revoke',
      form: { token, ...form },
      ...(authorization !== undefined && { authorization }),
    });
  expect((await revoke({ client_id: 'ci' })).status).toBe(401);
  expect((await revoke({}, basic('ci', 'a-wrong-secret'))).status).toBe(401);
  expect((await revoke({}, basic('other', SECRET))).json.error).toBe('invalid_grant');
  expect((await own.other.call(token)).status).toBe(200);
  expect((await revoke({}, basic('ci', SECRET))).status).toBe(200);
  expect((await own.other.call(token)).status).toBe(401);
  const next = await getToken(own.gateway, 'ci');
  expect(next).not.toBe(token);
  expect((await own.other.call(next)).status).toBe(200);
});

test('§4.10, §5.11 machine clients: the metadata names grant type and methods while the file has clients, and not without', async () => {
  const read = async () =>
    (await own.gateway.request({ path: '/.well-known/oauth-authorization-server' })).json;
  expect(await read()).toMatchObject({
    grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
    token_endpoint_auth_methods_supported: [
      'none',
      'client_secret_basic',
      'client_secret_post',
      'private_key_jwt',
    ],
    token_endpoint_auth_signing_alg_values_supported: expect.arrayContaining(['RS256', 'EdDSA']),
  });
  await load(own, []);
  const without = await read();
  expect(without).toMatchObject({
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['none'],
  });
  expect(without).not.toHaveProperty('token_endpoint_auth_signing_alg_values_supported');
  const { json } = await askForToken(own.gateway, { authorization: basic('ci', SECRET) });
  expect(json.error).toBe('unsupported_grant_type');
});

test('§13.1, §5.11 machine clients: no user of the provider can be called as one', async () => {
  const client = await own.steps.register();
  const back = await own.logInTo(client, { sub: 'client:ci' });
  expect(back.searchParams.get('error')).toBe('server_error');
  expect(back.searchParams.get('code')).toBeNull();
});
