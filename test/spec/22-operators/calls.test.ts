// §22.8: the calls of the last day, for operators.
import { expect, test } from 'vitest';
import { createCallList, type ListedCall } from '../../../src/http/endpoint/admin-calls.ts';
import { callTool } from '../../support/clients/stateless.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { type Operators, startOperators } from '../../support/gateway/operators.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { MCP, startBroker } from '../../support/oauth/broker.ts';

const ANN = { sub: 'u-1', name: 'Ann Example', email: 'ann@example.com', azp: 'agent' };
const BOB = { sub: 'u-2', email: 'bob@example.com', azp: 'agent' };
const ALL = { from: undefined, limit: 100 };
const LIST = 'admin:calls';
const anyCall = () => true;

async function ping({ broker }: Operators, claims: object, message = 'hello'): Promise<void> {
  const token = await broker.sign({ aud: MCP, ...claims });
  const answer = await callTool(broker.gateway, 'service_ping', { message }, { token });
  expect(answer.status).toBe(200);
  broker.clock.advance(1000);
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
async function callsOf({ show }: Operators, query = ''): Promise<any> {
  const { status, json } = await show(`/calls${query}`);
  expect(status).toBe(200);
  return json;
}

test('§22.8 operators: each call with its user, client, tool, outcome, duration and size, the last one first', async () => {
  const operators = await startOperators();
  const { broker } = operators;
  await ping(operators, ANN);
  const token = await broker.sign({ aud: MCP, ...BOB });
  const session = await broker.gateway.open({ token });
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'nothing' } };
  const refused = await broker.gateway.rpc(message, { session, token });
  broker.clock.advance(1000);
  await expect.poll(async () => (await callsOf(operators)).calls).toHaveLength(2);
  const { calls } = await callsOf(operators);
  expect(calls).toMatchObject([
    {
      kind: 'tool',
      item: 'nothing',
      outcome: 'failure',
      reason: 'invalid_params',
      user: 'u-2',
      email: 'bob@example.com',
      client: { id: 'agent' },
      bytes: Buffer.byteLength(refused.text),
    },
    { item: 'service_ping', outcome: 'success', user: 'u-1', name: 'Ann Example', ms: 0 },
  ]);
  expect(Date.parse(calls[1].at)).toBe(broker.clock.now() - 2000);
});

test('§22.8 operators: no argument, result, name or e-mail is stored with a call', async () => {
  const operators = await startOperators();
  await ping(operators, ANN, 'planted-secret');
  const { store } = operators.broker;
  await expect.poll(async () => (await store.readListed(LIST, ALL)).items).toHaveLength(1);
  const { items } = await store.readListed(LIST, ALL);
  expect(items[0]?.value).toContain('service_ping');
  expect(items[0]?.value).not.toMatch(/planted|example/i);
});

test.each([
  ['?user=u-2', ['u-2']],
  ['?person=ann%40EXAMPLE', ['u-1', 'u-1']],
  ['?name=service_ping&outcome=success', ['u-2', 'u-1', 'u-1']],
  ['?outcome=failure', []],
  ['?server=files', []],
])('§22.8 operators: %s finds the calls of %j', async (query, users) => {
  const operators = await startOperators();
  for (const who of [ANN, ANN, BOB]) await ping(operators, who);
  await expect.poll(async () => (await callsOf(operators)).calls).toHaveLength(3);
  const found = (await callsOf(operators, query)).calls.map(({ user }: ListedCall) => user);
  expect(found).toEqual(users);
});

test('§22.8 operators: pages follow one another', async () => {
  const operators = await startOperators();
  for (const who of [ANN, BOB, ANN]) await ping(operators, who);
  await expect.poll(async () => (await callsOf(operators)).calls).toHaveLength(3);
  const first = await callsOf(operators, '?limit=2');
  const second = await callsOf(operators, `?limit=2&cursor=${first.nextCursor}`);
  const users = [first, second].map(({ calls }) => calls.map(({ user }: ListedCall) => user));
  expect(users).toEqual([['u-1', 'u-2'], ['u-1']]);
  expect(second.nextCursor).toBeUndefined();
});

test('§22.8 operators: who follows the list has one audit line a minute for each query', async () => {
  const operators = await startOperators();
  for (const query of ['', '', '?user=u-1', '']) await callsOf(operators, query);
  operators.broker.clock.advance(60_000);
  await callsOf(operators);
  const lines = operators.audit.lines();
  const shown = lines.filter(({ action }) => action === 'show').map(({ target }) => target);
  expect(shown).toEqual(['calls', 'calls of u-1', 'calls']);
});

test('§22.8 operators: with ADMIN_CALLS=false nothing is kept or shown', async () => {
  const operators = await startOperators({ ADMIN_CALLS: 'false' });
  await ping(operators, ANN);
  expect((await operators.show('/calls')).status).toBe(404);
  expect((await operators.broker.store.readListed(LIST, ALL)).items).toEqual([]);
});

const toCall = (at: number, user = 'u-1'): ListedCall => ({
  at,
  user,
  issuer: undefined,
  client: undefined,
  server: undefined,
  kind: 'tool',
  name: 'tea',
  outcome: 'success',
  reason: undefined,
  ms: 1,
  bytes: 2,
});

async function openLists() {
  const { clock, store } = closeAfterTest(await startBroker());
  const { log, lines } = collectLog();
  const open = () => createCallList({ store, clock, log });
  return { clock, store, lines, open };
}

test('§22.8 operators: the calls of two replicas are one list, page by page', async () => {
  const { clock, open } = await openLists();
  const replicas = [open(), open()] as const;
  const start = clock.now();
  for (let at = 1; at <= 240; at += 1) {
    replicas[at % 5 === 0 ? 0 : 1].add(toCall(start + at));
    if (at % 30 === 0) for (const one of replicas) await one.close();
  }
  clock.advance(1000);
  const seen: number[] = [];
  let from: { time: number; skip: number } | undefined;
  do {
    const page = await replicas[0].list({ from, limit: 70 }, anyCall);
    seen.push(...page.items.map(({ at }) => at - start));
    from = page.next;
  } while (from !== undefined);
  expect(seen).toEqual(Array.from({ length: 240 }, (_, index) => 240 - index));
});

test('§22.8 operators: the last 10,000 calls are kept, and for a day', async () => {
  const { clock, store, open } = await openLists();
  const list = open();
  for (let at = 1; at <= 11_000; at += 1) {
    list.add(toCall(clock.now(), `u-${at}`));
    if (at % 1000 === 0) {
      clock.advance(1);
      await list.close();
    }
  }
  expect(await store.countListed(LIST)).toBe(200);
  const { items } = await list.list({ from: undefined, limit: 20_000 }, anyCall);
  expect(items).toHaveLength(10_000);
  clock.sleep(86_400_000);
  expect((await list.list(ALL, anyCall)).items).toEqual([]);
});

test('§22.8 operators: a store that fails loses calls, says so once, and takes the next ones', async () => {
  const { clock, store, lines } = await openLists();
  const { log } = collectLog();
  let isDown = true;
  const failing = {
    ...store,
    setListed: (...args: Parameters<typeof store.setListed>) =>
      isDown ? Promise.reject(new Error('down')) : store.setListed(...args),
  };
  const told: string[] = [];
  const list = createCallList({
    store: failing,
    clock,
    log: { ...log, warn: (message: string) => void told.push(message) },
  });
  for (let at = 0; at < 3; at += 1) {
    list.add(toCall(clock.now()));
    await list.close();
  }
  expect(told).toEqual([expect.stringContaining('Some calls are missing')]);
  isDown = false;
  list.add(toCall(clock.now(), 'u-9'));
  await list.close();
  expect((await list.list(ALL, anyCall)).items).toMatchObject([{ user: 'u-9' }]);
  expect(lines).toEqual([]);
});
