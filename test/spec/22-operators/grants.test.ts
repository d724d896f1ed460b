// §22.2, §22.3 where the gateway issues tokens of its own: operators see logins, and end them.
import { expect, test } from 'vitest';
import { startOperators } from '../../support/gateway/operators.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import {
  ask,
  listGrants,
  logInBy,
  OLGA,
  PAGE,
  PLAYGROUND,
  startOperatedGateways,
  tryCall,
} from '../../support/oauth/operator-logins.ts';
import { BASE, MCP, type Tokens, toTokens } from '../../support/oauth/own-tokens.ts';

const MINUTE_MS = 60_000;
const ANN = { sub: 'u-1', name: 'Ann Example', email: 'Ann@Example.com', email_verified: true };
const BOB = { sub: 'u-2', name: 'Bob', email: 'bob@example.com' };

const own = useFresh(() => startOperatedGateways());

const show = async (query = '') => listGrants(own, (await logInBy(own, PAGE)).access, query);
const end = async (path: string) =>
  ask(own, (await logInBy(own, PAGE)).access, `/grants${path}`, 'DELETE');

const auditOf = (action: string) => own.audit.lines().filter((line) => line.action === action);

test('§22.2 operators: a login says who, by which client, since when and for what, and never a token', async () => {
  const tokens = await own.logIn(ANN);
  const [shown] = await show('?user=u-1');
  expect(shown).toEqual({
    id: expect.stringMatching(/^[\w-]{22}$/),
    user: 'u-1',
    name: 'Ann Example',
    email: 'Ann@Example.com',
    emailVerified: true,
    client: { id: tokens.client.id, name: 'Test', redirectHost: 'client.example' },
    scopes: ['openid', 'profile'],
    resources: [MCP],
    createdAt: '2027-01-15T08:00:00.000Z',
  });
  const text = JSON.stringify(shown);
  for (const secret of ['pst_', 'psr_', 'opaque-', 'refresh-']) expect(text).not.toContain(secret);
});

test('§22.2 operators: when a login was refreshed, and when the provider was asked, and that it cannot be', async () => {
  const first = await own.logIn(ANN);
  own.clock.advance(31 * MINUTE_MS);
  const second = toTokens(first.client, await own.refresh(first));
  expect(await show('?user=u-1')).toMatchObject([{ refreshedAt: '2027-01-15T08:31:00.000Z' }]);
  expect((await show('?user=u-1'))[0]).not.toHaveProperty('renewedAt');
  own.clock.advance(31 * MINUTE_MS);
  const third = toTokens(first.client, await own.refresh(second));
  expect(await show('?user=u-1')).toMatchObject([{ renewedAt: '2027-01-15T09:02:00.000Z' }]);
  own.clock.advance(61 * MINUTE_MS);
  own.provider.behave('down');
  expect((await own.refresh(third)).status).toBe(200);
  own.provider.behave('ok');
  expect(await show('?user=u-1')).toMatchObject([
    { renewedAt: '2027-01-15T09:02:00.000Z', renewalFailsSince: '2027-01-15T10:03:00.000Z' },
  ]);
});

test('§22.2 operators: the latest login comes first, in pages', async () => {
  for (const sub of ['u-1', 'u-2', 'u-3']) {
    await own.logIn({ sub });
    own.clock.advance(1000);
  }
  const { access } = await logInBy(own, PAGE);
  const users: string[] = [];
  let cursor: string | undefined = '';
  for (let page = 0; cursor !== undefined; page += 1) {
    expect(page).toBeLessThan(6);
    const { json } = await ask(own, access, `/grants?limit=1${cursor && `&cursor=${cursor}`}`);
    users.push(...json.grants.map(({ user }: { user: string }) => user));
    cursor = json.nextCursor;
  }
  expect(users).toEqual(['olga', 'u-3', 'u-2', 'u-1']);
});

test('§22.2 operators: logins of one user come in pages, too', async () => {
  for (let at = 0; at < 3; at += 1) await own.logIn(ANN);
  const { access } = await logInBy(own, PAGE);
  const first = (await ask(own, access, '/grants?user=u-1&limit=2')).json;
  const rest = (await ask(own, access, `/grants?user=u-1&limit=2&cursor=${first.nextCursor}`)).json;
  const ids = [...first.grants, ...rest.grants].map(({ id }) => id);
  expect([first.grants.length, new Set(ids).size, rest.nextCursor]).toEqual([2, 3, undefined]);
});

test.each([
  { query: '?user=u-1', found: ['u-1'] },
  { query: '?user=u-', found: [] },
  { query: '?person=ann%40example.com', found: ['u-1'] },
  { query: '?person=BOB', found: ['u-2'] },
  { query: '?person=u-2', found: ['u-2'] },
  { query: '?person=example.com', found: ['u-1', 'u-2'] },
  { query: '?person=carol%40example.com', found: [] },
])(
  '§22.2 operators: logins are found by user, e-mail or name: $query',
  async ({ query, found }) => {
    const ann = await own.logIn(ANN);
    await own.call(ann.access);
    await own.logIn(BOB);
    expect((await show(query)).map(({ user }) => user).sort()).toEqual(found);
    expect(auditOf('show').at(-1)?.target).toMatch(/^grants of /);
  },
);

test.each(['limit=0', 'limit=101', 'cursor=x'])(
  '§22.2 operators: %s is refused, and the answer says what is allowed',
  async (query) => {
    const { access } = await logInBy(own, PAGE);
    const { status, json } = await ask(own, access, `/grants?${query}`);
    expect(status).toBe(400);
    expect(json.error.data.details).toMatch(
      /limit must be a whole number from 1 to 100|nextCursor/,
    );
  },
);

test('§22.3 operators: one login ends, at the provider too, and no other of that user or of another', async () => {
  const ended = await own.logIn(ANN);
  const [grant] = await show('?user=u-1');
  const kept = [await own.logIn(ANN), await own.logIn(BOB)];
  const operator = await logInBy(own, PAGE);
  const path = `/grants/${grant?.id}`;
  expect((await ask(own, operator.access, path, 'DELETE')).status).toBe(204);
  expect(await tryCall(own, ended)).toBe('token_revoked');
  expect((await own.refresh(ended)).json.error).toBe('invalid_grant');
  for (const tokens of kept) expect(await tryCall(own, tokens)).toBe('let in');
  expect(own.provider.revoked).toHaveLength(1);
  const again = await ask(own, operator.access, path, 'DELETE');
  expect([again.status, again.json.error.data.reason]).toEqual([404, 'grant_not_found']);
  const by = { event: 'admin', user: 'olga', client: PAGE, target: grant?.id };
  expect(auditOf('end_grant')).toMatchObject([
    { ...by, outcome: 'success' },
    { ...by, outcome: 'failure', reason: 'grant_not_found' },
  ]);
});

test('§22.3 operators: all logins of a user end, of whatever client, and of nobody else', async () => {
  const ended = [await own.logIn(ANN), await own.logIn(ANN)];
  const kept = await own.logIn(BOB);
  const answer = await end('?user=u-1');
  expect([answer.status, answer.json]).toEqual([200, { ended: 2 }]);
  for (const tokens of ended) expect(await tryCall(own, tokens)).toBe('token_revoked');
  expect(await tryCall(own, kept)).toBe('let in');
  await expect.poll(() => own.provider.revoked).toHaveLength(2);
  expect(await show('?user=u-1')).toEqual([]);
  expect(auditOf('end_grants')).toMatchObject([{ outcome: 'success', target: 'user u-1' }]);
  expect(auditOf('end_grant')).toHaveLength(2);
});

test('§22.3 operators: all logins by a client end, of whatever user, and by no other', async () => {
  const ann = await own.logIn(ANN);
  const back = await own.logInTo(ann.client, BOB);
  const bob = toTokens(ann.client, await own.steps.redeem(ann.client, back));
  const kept = await own.logIn(ANN);
  expect((await end(`?client=${ann.client.id}`)).json).toEqual({ ended: 2 });
  expect(await tryCall(own, ann)).toBe('token_revoked');
  expect(await tryCall(own, bob)).toBe('token_revoked');
  expect(await tryCall(own, kept)).toBe('let in');
});

test('§22.3 operators: user and client together mean both', async () => {
  const ann = await own.logIn(ANN);
  const back = await own.logInTo(ann.client, BOB);
  const bob = toTokens(ann.client, await own.steps.redeem(ann.client, back));
  const kept = await own.logIn(ANN);
  expect((await end(`?user=u-1&client=${ann.client.id}`)).json).toEqual({ ended: 1 });
  expect(await tryCall(own, ann)).toBe('token_revoked');
  for (const tokens of [bob, kept]) expect(await tryCall(own, tokens)).toBe('let in');
});

test('§22.3 operators: among more logins than a page has, a client is found; then everybody is logged out, the operator too', async () => {
  const oldest = await own.logIn(ANN);
  own.clock.advance(2000);
  const { client } = await own.logIn(BOB);
  const logInAt = async (at: number) =>
    toTokens(
      client,
      await own.steps.redeem(client, await own.logInTo(client, { sub: `user-${at}` })),
    );
  const all: Tokens[] = [];
  // Eight at a time, as each waits for the disk; the gateway asks the provider for so many at once.
  while (all.length < 104) {
    const batch = Array.from({ length: 8 }, (_, at) => logInAt(all.length + at));
    all.push(...(await Promise.all(batch)));
  }
  const tryAll = async () => new Set(await Promise.all(all.map((tokens) => tryCall(own, tokens))));
  expect((await end(`?client=${oldest.client.id}`)).json).toEqual({ ended: 1 });
  expect(await tryCall(own, oldest)).toBe('token_revoked');
  expect(await tryAll()).toEqual(new Set(['let in']));
  const operator = await logInBy(own, PAGE);
  const { json } = await ask(own, operator.access, '/grants?all=true', 'DELETE');
  // Bob, 104 users, and the operator, who logged in twice.
  expect(json).toEqual({ ended: 107 });
  expect(await tryAll()).toEqual(new Set(['token_revoked']));
  expect((await ask(own, operator.access, '/grants')).json.error.data.reason).toBe('token_revoked');
  expect(await show()).toMatchObject([{ user: 'olga' }]);
});

test.each([
  '',
  '?',
  '?all',
  '?all=false',
  '?all=1',
  '?all=true&user=u-1',
  '?all=true&all=true',
  '?user=',
  '?user=&client=x',
  '?user=u-1&user=u-2',
  '?client=',
  '?usr=u-1',
  '?user=u-1&clinet=x',
  '?client%2Cuser=1',
])(
  '§22.3 operators: DELETE /admin/api/grants%s ends nothing, and says what is allowed',
  async (query) => {
    const tokens = await own.logIn(ANN);
    const { status, json } = await end(query);
    expect(status).toBe(400);
    expect(json.error.data.details).toMatch(/user=SUB, client=ID, or both.*all=true/);
    expect(await tryCall(own, tokens)).toBe('let in');
    expect(auditOf('end_grants')).toMatchObject([{ outcome: 'failure', reason: 'bad_request' }]);
  },
);

test('§22.3 operators: while the provider is down a login ends all the same', async () => {
  const tokens = await own.logIn(ANN);
  const other = await own.logIn(BOB);
  const operator = await logInBy(own, PAGE);
  const [grant] = await listGrants(own, operator.access, '?user=u-1');
  own.provider.behave('down');
  const answer = await ask(own, operator.access, `/grants/${grant?.id}`, 'DELETE');
  expect(answer.status).toBe(204);
  expect((await ask(own, operator.access, '/grants?user=u-2', 'DELETE')).json).toEqual({
    ended: 1,
  });
  for (const ended of [tokens, other]) expect(await tryCall(own, ended)).toBe('token_revoked');
});

const ENDPOINTS = [
  ['GET', '/grants'],
  ['GET', '/grants?user=u-1'],
  ['GET', '/grants?person=ann'],
  ['DELETE', '/grants?user=u-1'],
  ['DELETE', '/grants?all=true'],
  ['DELETE', '/grants'],
] as const;

test('§22.1 operators: whoever is none is refused at each, also with their own login, and ends nothing', async () => {
  const ann = await own.logIn(ANN);
  const [grant] = await show('?user=u-1');
  const mallory = await logInBy(own, PAGE, { sub: 'mallory', groups: ['staff'] });
  for (const [method, path] of [...ENDPOINTS, ['DELETE', `/grants/${grant?.id}`] as const]) {
    const { status, json } = await ask(own, mallory.access, path, method);
    expect([status, json.error.data.reason]).toEqual([403, 'operators_only']);
    expect(json.grants).toBeUndefined();
  }
  expect(await tryCall(own, ann)).toBe('let in');
  const denied = own.audit.lines().filter(({ outcome }) => outcome === 'denied');
  expect(denied).toHaveLength(7);
  const [mallorys] = await show('?user=mallory');
  for (const line of denied) {
    expect(line).toMatchObject({ user: 'mallory', client: PAGE, grant: mallorys?.id });
  }
});

test("§22.1 operators: an operator's MCP client, and the playground, read and end nothing", async () => {
  const ann = await own.logIn(ANN);
  for (const tokens of [await own.logIn(OLGA), await logInBy(own, PLAYGROUND)]) {
    for (const [method, path] of ENDPOINTS) {
      const { status, json } = await ask(own, tokens.access, path, method);
      expect([status, json.error.data.reason]).toEqual([403, 'operators_client_only']);
    }
  }
  expect(await tryCall(own, ann)).toBe('let in');
});

test("§22.1 operators: a token of the page is for the operators' API alone, and the playground's learns there who is one", async () => {
  const operator = await logInBy(own, PAGE);
  expect((await ask(own, operator.access, '/sessions')).status).toBe(200);
  const { status, json } = await own.call(operator.access);
  expect([status, json.error.data.reason]).toEqual([401, 'invalid_audience']);
  const playground = await logInBy(own, PLAYGROUND);
  const ann = await logInBy(own, PLAYGROUND, ANN);
  expect((await ask(own, operator.access, '/access')).json).toEqual({ isOperator: true });
  expect((await ask(own, playground.access, '/access')).json).toEqual({ isOperator: true });
  expect((await ask(own, ann.access, '/access')).json).toEqual({ isOperator: false });
});

test("§22.1 operators: a refreshed token of the page is the page's, and an operator who is none any more is refused", async () => {
  const first = await logInBy(own, PAGE);
  own.provider.idToken = { groups: ['staff'] };
  own.clock.advance(31 * MINUTE_MS);
  const second = toTokens(first.client, await own.refresh(first));
  expect((await ask(own, second.access, '/grants')).status).toBe(200);
  own.clock.advance(31 * MINUTE_MS);
  const third = toTokens(first.client, await own.refresh(second));
  expect((await ask(own, third.access, '/grants')).json.error.data.reason).toBe('operators_only');
});

test('§22.1 operators: the resource of the page is given to no other client', async () => {
  const client = await own.steps.register();
  const { status, headers } = await own.steps.authorize(client, { resource: `${BASE}/admin` });
  expect([status, headers.location]).not.toEqual([200, undefined]);
  expect((await own.steps.authorize(client)).status).toBe(200);
});

test('§22.1 operators: with OAUTH_ACCEPT_PROVIDER_TOKENS a client of ADMIN_CLIENTS ends logins by its token of the provider, and no other', async () => {
  const scripted = closeAfterTest(
    await startOperatedGateways({
      env: {
        OAUTH_ACCEPT_PROVIDER_TOKENS: 'true',
        OIDC_AUDIENCE: MCP,
        ADMIN_CLIENTS: 'ops-script',
      },
    }),
  );
  const { issuer } = scripted.provider;
  const sign = (azp: string) => issuer.sign({ ...OLGA, aud: MCP, azp });
  const ann = await scripted.logIn(ANN);
  const path = '/grants?user=u-1';
  const refused = await ask(scripted, await sign('another'), path, 'DELETE');
  expect(refused.json.error.data.reason).toBe('operators_client_only');
  expect(await tryCall(scripted, ann)).toBe('let in');
  const { json } = await ask(scripted, await sign('ops-script'), path, 'DELETE');
  expect(json).toEqual({ ended: 1 });
  expect(await tryCall(scripted, ann)).toBe('token_revoked');
  const line = scripted.audit.lines().at(-1);
  expect(line).toMatchObject({ action: 'end_grants', client: 'ops-script', user: 'olga' });
  expect(line).not.toHaveProperty('grant');
});

test('§22.2, §22.3 operators: in proxy mode there are no logins here, and none is ended in vain', async () => {
  const { show: showOld, act } = await startOperators({ OAUTH_MODE: 'proxy' });
  expect((await showOld('/grants')).json).toEqual({ tokens: 'provider', grants: [] });
  expect((await showOld('/grants?person=ann')).json).toEqual({ tokens: 'provider', grants: [] });
  const { status, json } = await act('/grants?all=true');
  expect([status, json.error.data.details]).toEqual([
    400,
    expect.stringContaining('In proxy mode'),
  ]);
  expect((await act(`/grants/${'A'.repeat(22)}`)).status).toBe(404);
});
