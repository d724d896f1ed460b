// One client's trouble is no other's: wrong secrets, slow keys, floods; and what operators and servers see of a client.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { closeAfterTest } from '../../support/lifetimes.ts';
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
import { ask, listGrants, startOperatedGateways } from '../../support/oauth/operator-logins.ts';
import { BASE, type OwnTokenOptions, startOwnTokens } from '../../support/oauth/own-tokens.ts';

const start = async (
  clients: readonly object[],
  { env = {}, ...options }: OwnTokenOptions & { readonly file?: object } = {},
) =>
  closeAfterTest(
    await startOwnTokens({
      env,
      isReplicated: options.isReplicated === true,
      deps: { file: await fileOf(clients, options.file) },
    }),
  );

/** Of a client; each test says how it answers. */
async function startKeyHost(answer: (respond: (body: unknown) => void) => void) {
  let asked = 0;
  const server = createServer((_req, res) => {
    asked += 1;
    answer((body) => {
      res.writeHead(200, { 'Content-Type': 'application/json' });
      res.end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return closeAfterTest({
    url: `http://127.0.0.1:${port}/jwks`,
    countAsked: () => asked,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

const byKey = (assertion: string) => ({
  form: { client_assertion: assertion, client_assertion_type: ASSERTION_TYPE },
});

test('§8, §5.11 machine clients: who guesses is stopped by address, and locks out no client, not even at that address', async () => {
  const own = await start([withSecret('ci'), withSecret('other')], {
    env: { OAUTH_CLIENT_CREDENTIALS_RATE_LIMIT_MAX: '5' },
  });
  const guess = (remoteAddress: string) =>
    askForToken(own.gateway, { authorization: basic('ci', 'a-guess'), remoteAddress });
  const statuses: number[] = [];
  for (let at = 0; at < 60; at += 1) statuses.push((await guess('192.0.2.1')).status);
  expect(statuses.slice(0, 5)).toEqual([401, 401, 401, 401, 401]);
  expect(new Set(statuses.slice(5))).toEqual(new Set([429]));
  for (const remoteAddress of ['192.0.2.1', '192.0.2.2']) {
    for (const id of ['ci', 'other']) {
      const authorization = basic(id, SECRET);
      const { status } = await askForToken(own.gateway, { authorization, remoteAddress });
      expect(status).toBe(200);
    }
  }
  expect((await guess('192.0.2.2')).status).toBe(401);
});

test('§8, §5.11 machine clients: one that asks for tokens without end is stopped alone', async () => {
  const own = await start([withSecret('ci'), withSecret('other')], {
    env: { OAUTH_CLIENT_CREDENTIALS_GRANT_RATE_LIMIT_MAX: '4' },
  });
  const askAs = (id: string) => askForToken(own.gateway, { authorization: basic(id, SECRET) });
  const statuses: number[] = [];
  for (let at = 0; at < 6; at += 1) statuses.push((await askAs('ci')).status);
  expect(statuses).toEqual([200, 200, 200, 200, 429, 429]);
  expect((await askAs('other')).status).toBe(200);
  own.clock.advance(61_000);
  expect((await askAs('ci')).status).toBe(200);
});

test('§8, §5.11 machine clients: "rateLimit" bounds the calls of its client, whatever users may', async () => {
  const own = await start([withSecret('ci', { rateLimit: 2 }), withSecret('other')]);
  const [ci, other] = [await getToken(own.gateway, 'ci'), await getToken(own.gateway, 'other')];
  const statuses: number[] = [];
  for (let at = 0; at < 4; at += 1) statuses.push((await own.call(ci)).status);
  expect(statuses).toEqual([200, 200, 429, 429]);
  for (let at = 0; at < 4; at += 1) expect((await own.call(other)).status).toBe(200);
  // By client, not by token.
  const narrow = await getToken(own.gateway, 'ci', { resource: `${BASE}/admin` });
  const { status, json } = await own.call(narrow);
  expect([status, json.error.data.reason]).toEqual([401, 'invalid_audience']);
  const refused = await own.call(await getToken(own.gateway, 'ci'));
  expect(refused.json.error.data).toMatchObject({
    reason: 'user_rate_limit_exceeded',
    details: expect.stringContaining('"rateLimit" of the client in the configuration file'),
  });
});

test('RFC 7517, §5.11 machine clients: keys at an address are fetched once, and again for a key that is new', async () => {
  const [first, second] = [newKey('ES256'), newKey('ES256')];
  let keys = [first.jwk];
  const host = await startKeyHost((respond) => respond({ keys }));
  const own = await start([{ id: 'signs', jwksUri: host.url }]);
  const askBy = (key: typeof first) =>
    askForToken(own.gateway, byKey(assertionOf('signs', key, own.clock.now())));
  for (let at = 0; at < 3; at += 1) expect((await askBy(first)).status).toBe(200);
  expect(host.countAsked()).toBe(1);
  keys = [first.jwk, second.jwk];
  const waiting = askBy(second);
  await expect
    .poll(async () => {
      own.clock.advance(1000);
      return host.countAsked();
    })
    .toBeGreaterThan(1);
  expect((await waiting).status).toBe(200);
  const wrong = await askBy(newKey('ES256', first.kid));
  expect([wrong.status, wrong.json.error]).toEqual([401, 'invalid_client']);
});

test('§5.11 machine clients: keys that do not come hold up their own client alone, which is not told that it is wrong', async () => {
  const key = newKey('ES256');
  let isOpen = true;
  const held: (() => void)[] = [];
  const slow = await startKeyHost((respond) => {
    if (isOpen) held.push(() => respond({}));
    else respond({});
  });
  const good = await startKeyHost((respond) => respond({ keys: [key.jwk] }));
  const own = await start([
    { id: 'slow', jwksUri: slow.url },
    { id: 'quick', jwksUri: good.url },
    withSecret('ci'),
  ]);
  const askAs = (id: string) =>
    askForToken(own.gateway, byKey(assertionOf(id, key, own.clock.now())));
  const waiting = askAs('slow');
  await expect.poll(() => held.length).toBe(1);
  expect((await askAs('quick')).status).toBe(200);
  expect((await askForToken(own.gateway, { authorization: basic('ci', SECRET) })).status).toBe(200);
  isOpen = false;
  for (const release of held) release();
  const { status, json, headers } = await waiting;
  expect([status, json.error, headers['retry-after']]).toEqual([
    503,
    'temporarily_unavailable',
    '2',
  ]);
});

test('§18.5, §5.11 machine clients: rules see the client and the groups of the file', async () => {
  const own = await start([withSecret('ci', { groups: ['robots'] }), withSecret('other')], {
    file: {
      rules: [
        { who: { clients: ['ci'] }, may: ['service_ping'] },
        { who: { groups: ['robots'] }, may: ['resource:user://profile'] },
      ],
    },
  });
  async function list(id: string, method: 'tools/list' | 'resources/list') {
    const token = await getToken(own.gateway, id);
    const opened = await own.call(token);
    const session = String(opened.headers['mcp-session-id']);
    const message = { jsonrpc: '2.0', id: 1, method, params: {} };
    const { result } = (await own.gateway.rpc(message, { token, session })).json;
    return (result.tools ?? result.resources).map(({ name }: { name: string }) => name);
  }
  expect(await list('ci', 'tools/list')).toEqual(['service_ping']);
  expect(await list('ci', 'resources/list')).toEqual(['User Profile']);
  expect(await list('other', 'tools/list')).toEqual([]);
});

test('§22.1, §22.3, §5.11 machine clients: ADMIN_CLIENTS lets a client act as an operator; its logins are listed, and end', async () => {
  const file = await fileOf([
    withSecret('ops', { groups: ['operators'] }),
    withSecret('stranger', { groups: ['operators'] }),
    withSecret('nobody'),
    withSecret('ci'),
  ]);
  const own = closeAfterTest(
    await startOperatedGateways({
      isReplicated: true,
      env: { ADMIN_CLIENTS: 'ops,nobody' },
      deps: { file },
    }),
  );
  const admin = { resource: `${BASE}/admin` };
  const operator = await getToken(own.gateway, 'ops', admin);
  expect((await ask(own, operator, '/grants')).status).toBe(200);
  expect((await own.call(operator)).status).toBe(401);
  for (const id of ['stranger', 'nobody', 'ci']) {
    const token = await getToken(own.gateway, id, admin);
    expect((await ask(own, token, '/grants')).status).toBe(403);
  }
  const token = await getToken(own.gateway, 'ci');
  expect((await own.other.call(token)).status).toBe(200);
  const listed = await listGrants(own, operator, '?user=client%3Aci');
  expect(listed).toMatchObject([
    { client: { id: 'ci' }, user: 'client:ci' },
    { client: { id: 'ci' }, user: 'client:ci' },
  ]);
  const [one] = listed.filter((grant) => JSON.stringify(grant).includes('/mcp'));
  expect((await ask(own, operator, `/grants/${one?.id}`, 'DELETE')).status).toBe(204);
  expect((await own.other.call(token)).json.error.data.reason).toBe('token_revoked');
  const next = await getToken(own.gateway, 'ci');
  expect((await own.other.call(next)).status).toBe(200);
  const ended = await ask(own, operator, '/grants?user=client%3Aci', 'DELETE');
  expect(ended.json).toEqual({ ended: 2 });
  expect((await own.other.call(next)).status).toBe(401);
  expect((await own.call(await getToken(own.gateway, 'ci'))).status).toBe(200);
  expect(own.audit.lines()).toContainEqual(
    expect.objectContaining({
      event: 'login',
      client: 'ci',
      user: 'client:ci',
      outcome: 'success',
    }),
  );
});

test('§5.11 machine clients: the log says what was found and what was expected, and no secret', async () => {
  const own = await start([withSecret('ci'), { id: 'signs', jwks: { keys: [newKey().jwk] } }]);
  await askForToken(own.gateway, { authorization: basic('ci', 'the-wrong-secret-of-somebody') });
  const late = assertionOf('signs', newKey(), own.clock.now() - 3_600_000);
  await askForToken(own.gateway, byKey(late));
  const lines = own.gateway.log.map((line) => JSON.stringify(line));
  expect(lines.filter((line) => line.includes('its secret') && line.includes('"ci"'))).not.toEqual(
    [],
  );
  expect(lines.filter((line) => line.includes('exp 17999'))).not.toEqual([]);
  expect(lines.join()).not.toContain('the-wrong-secret');
});
