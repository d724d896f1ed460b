// §22.2: whose sessions operators see, by name and e-mail.
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { type Operators, startOperators } from '../../support/gateway/operators.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { MCP, startBroker } from '../../support/oauth/broker.ts';

const ANN = { sub: 'u-1', name: 'Ann Example', email: 'Ann@Example.com', email_verified: true };
const BOB = { sub: 'u-2', email: 'bob@example.com' };

const open = async ({ broker }: Pick<Operators, 'broker'>, claims: object) =>
  broker.gateway.open({ token: await broker.sign({ aud: MCP, ...claims }) });

const LIST_ALL = { from: undefined, limit: 10 };

test('§22.2 operators: sessions say who it is, in the store sealed', async () => {
  const operators = await startOperators();
  await open(operators, ANN);
  const { json } = await operators.show('/sessions');
  expect(json.sessions).toMatchObject([
    { user: 'u-1', name: 'Ann Example', email: 'Ann@Example.com', emailVerified: true },
  ]);
  const { items } = await operators.broker.store.listSessions(LIST_ALL);
  expect(items[0]?.record.person).toMatch(/./);
  expect(JSON.stringify(items)).not.toMatch(/ann/i);
});

test.each([
  { person: 'ann@example.com', found: ['u-1'] },
  { person: 'BOB@', found: ['u-2'] },
  { person: 'ann exam', found: ['u-1'] },
  { person: 'u-2', found: ['u-2'] },
  { person: 'u-', found: [] },
  { person: 'example', found: ['u-1', 'u-2'] },
  { person: 'carol@example.com', found: [] },
])('§22.2 operators: sessions are found by user ID, e-mail or name: $person', async (row) => {
  const operators = await startOperators();
  await open(operators, ANN);
  await open(operators, BOB);
  const { json } = await operators.show(`/sessions?person=${encodeURIComponent(row.person)}`);
  expect(json.sessions.map(({ user }: { user: string }) => user).sort()).toEqual(row.found);
  expect(json.nextCursor).toBeUndefined();
  expect(operators.audit.text()).toContain(`sessions of ${row.person}`);
});

test('§22.2 operators: nobody is looked at behind the name of another', async () => {
  const operators = await startOperators();
  await open(operators, ANN);
  await operators.show('/sessions?user=decoy&person=ann');
  expect(operators.audit.text()).toContain('sessions of decoy, ann');
});

test('§22.2 operators: many sessions are looked through, in as many requests as it takes', async () => {
  const operators = await startOperators({ MCP_USER_SESSIONS_MAX: '0' });
  await open(operators, ANN);
  for (let at = 0; at < 60; at += 1) {
    operators.broker.clock.advance(1000);
    await open(operators, BOB);
  }
  expect((await operators.show('/sessions?person=ann')).json.sessions).toHaveLength(1);
  const first = (await operators.show('/sessions?person=bob')).json;
  const rest = (await operators.show(`/sessions?person=bob&cursor=${first.nextCursor}`)).json;
  expect([...first.sessions, ...rest.sessions]).toHaveLength(60);
});

test('§22.2 operators: a whole e-mail address is found at once, among more sessions than one request looks through', async () => {
  const operators = await startOperators({ MCP_USER_SESSIONS_MAX: '10000' });
  await open(operators, ANN);
  const token = await operators.broker.sign({ aud: MCP, ...BOB });
  const { gateway, clock } = operators.broker;
  for (let round = 0; round < 42; round += 1) {
    clock.advance(1000);
    await Promise.all(Array.from({ length: 50 }, () => gateway.open({ token })));
  }
  const find = async (person: string) =>
    (await operators.show(`/sessions?person=${encodeURIComponent(person)}`)).json;
  expect((await find('ann exam')).sessions).toEqual([]);
  const found = await find('ANN@example.com');
  expect(found.sessions).toMatchObject([{ user: 'u-1', email: 'Ann@Example.com' }]);
  expect(found.nextCursor).toBeUndefined();
});

test('§22.2 operators: others who claim the same address hide nobody, and whom the provider vouches for comes first', async () => {
  const operators = await startOperators();
  const { clock } = operators.broker;
  await open(operators, ANN);
  await open(operators, { sub: 'u-3', email: ANN.email });
  for (let at = 0; at < 45; at += 1) {
    clock.advance(1000);
    await open(operators, { sub: `claimant-${at}`, email: ANN.email, email_verified: false });
  }
  const path = `/sessions?person=${encodeURIComponent(ANN.email)}`;
  const found: string[] = [];
  let [cursor, requests] = ['', 0];
  do {
    const { json } = await operators.show(`${path}${cursor}`);
    found.push(...json.sessions.map(({ user }: { user: string }) => user));
    cursor = json.nextCursor && `&cursor=${json.nextCursor}`;
    requests += 1;
  } while (cursor);
  expect(found[0]).toBe('u-1');
  expect(found).toContain('u-3');
  expect(new Set(found).size).toBe(47);
  expect(requests).toBe(3);
});

test('§22.2 operators: the store has no e-mail address, nor a hash of one that can be guessed', async () => {
  const operators = await startOperators();
  await open(operators, ANN);
  const hash = createHash('sha256').update('ann@example.com').digest();
  const { items } = await operators.broker.store.readListed(
    `admin:person:${hash.toString('base64url')}`,
    LIST_ALL,
  );
  expect(items).toEqual([]);
});

test('§22.2 operators: a session that ended leaves nothing of its person', async () => {
  const operators = await startOperators();
  const id = await open(operators, ANN);
  expect((await operators.act(`/sessions/${id}`)).status).toBe(204);
  expect((await operators.broker.store.listSessions(LIST_ALL)).items).toEqual([]);
});

test('§22.2 operators: without ADMIN_GROUPS nothing of a person is kept', async () => {
  const broker = closeAfterTest(await startBroker());
  await open({ broker }, ANN);
  const { items } = await broker.store.listSessions(LIST_ALL);
  expect(items).toHaveLength(1);
  expect(items[0]?.record.person).toBeUndefined();
});
