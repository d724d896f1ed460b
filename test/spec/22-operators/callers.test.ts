// §22.2: users of the last day, for operators.
import { expect, test } from 'vitest';
import { createPeople, createRecentCallers } from '../../../src/http/endpoint/admin-people.ts';
import { createSeal } from '../../../src/store/seal/seal.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { type Operators, startOperators } from '../../support/gateway/operators.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { MCP, startBroker } from '../../support/oauth/broker.ts';

const ANN = { sub: 'u-1', name: 'Ann Example', email: 'ann@example.com' };
const BOB = { sub: 'u-2', email: 'bob@example.com' };
const ALL = { from: undefined, limit: 100 };
const LIST = 'admin:callers';

async function call({ broker }: Pick<Operators, 'broker'>, claims: object): Promise<void> {
  const token = await broker.sign({ aud: MCP, ...claims });
  expect((await stateless(broker.gateway, 'tools/list', {}, { token })).status).toBe(200);
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
const callersOf = async ({ show }: Operators, query = ''): Promise<any[]> =>
  (await show(`/callers${query}`)).json.callers;

test('§22.2 operators: who called, last seen first, within a day', async () => {
  const operators = await startOperators();
  const { clock, store } = operators.broker;
  await call(operators, ANN);
  await expect.poll(() => callersOf(operators)).toHaveLength(1);
  clock.advance(1000);
  await call(operators, BOB);
  await expect
    .poll(() => callersOf(operators))
    .toMatchObject([
      { user: 'u-2', email: 'bob@example.com', lastSeenAt: new Date(clock.now()).toISOString() },
      { user: 'u-1', name: 'Ann Example', email: 'ann@example.com' },
    ]);
  expect(await callersOf(operators, '?person=ann%40EXAMPLE')).toMatchObject([{ user: 'u-1' }]);
  const { items } = await store.readListed(LIST, ALL);
  expect(JSON.stringify(items)).not.toMatch(/example/i);

  clock.sleep(86_400_000);
  expect(await callersOf(operators)).toEqual([]);
});

test('§22.2 operators: of one user something is written once in five minutes', async () => {
  const operators = await startOperators();
  const { clock } = operators.broker;
  const startedAt = clock.now();
  await call(operators, ANN);
  await expect.poll(() => callersOf(operators)).toHaveLength(1);
  clock.advance(299_000);
  await call(operators, ANN);
  await call(operators, BOB);
  // Bob's is written later than Ann's would have been.
  await expect
    .poll(() => callersOf(operators))
    .toMatchObject([
      { user: 'u-2' },
      { user: 'u-1', lastSeenAt: new Date(startedAt).toISOString() },
    ]);
  clock.advance(1000);
  await call(operators, ANN);
  await expect
    .poll(() => callersOf(operators))
    .toMatchObject([
      { user: 'u-1', lastSeenAt: new Date(clock.now()).toISOString() },
      { user: 'u-2' },
    ]);
});

test('§22.2 operators: where there are too many, those who were seen first go', async () => {
  const { clock, store } = closeAfterTest(await startBroker());
  const { log } = collectLog();
  const people = createPeople({ getSeal: async () => createSeal(['a secret']) });
  const callers = createRecentCallers({ store, clock, log }, people, 3);
  for (let at = 0; at < 6; at += 1) {
    callers.note({ sub: `u-${at}`, claims: {}, token: '' });
    await expect.poll(async () => (await callers.list(ALL)).items[0]?.user.sub).toBe(`u-${at}`);
    clock.advance(60_000);
  }
  await expect
    .poll(async () => (await callers.list(ALL)).items.map(({ user }) => user.sub))
    .toEqual(['u-5', 'u-4', 'u-3']);
});

test('§22.2 operators: who opened a session is listed, too, and without ADMIN_GROUPS nobody is noted', async () => {
  const operators = await startOperators();
  await operators.open('u-3');
  await expect.poll(() => callersOf(operators)).toMatchObject([{ user: 'u-3' }]);

  const broker = closeAfterTest(await startBroker());
  await call({ broker }, ANN);
  expect((await broker.store.readListed(LIST, ALL)).items).toEqual([]);
});
