// §24.2, §24.4: what two replicas do with the connections in one store, over each kind of store: one of them at a time, none lost.

import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { createPlaces } from '../../src/connections/connection-record.ts';
import type { ConnectionServer } from '../../src/mcp/upstream/connections.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { buildConnectionLockKey } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open.ts';
import { type Store, StoreUnavailable } from '../../src/store/store.ts';
import { KEEPS_TO_MCP, type ServerHabits } from '../support/connections/habits.ts';
import {
  ADA,
  BOB,
  beginLogin,
  connectOwner,
  finishLogin,
  type Keeper,
  openKeeper,
  PROVIDER,
  toConnectionServer,
} from '../support/connections/keeper.ts';
import { startProtectedServer } from '../support/connections/protected-server.ts';
import { type ManualClock, manualClock } from '../support/gateway/clock.ts';
import { collectLog } from '../support/gateway/log.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { startRedis } from '../support/stores/redis.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { chooseCount, LONG_MS } from '../support/tools/long-run.ts';

const TWO_HOURS_MS = 7_200_000;

/** Each refresh brings another token, and two at once are refused; the one before is good until then, as workers-oauth-provider has it. */
const FORGIVING: ServerHabits = {
  ...KEEPS_TO_MCP,
  usedRefreshToken: 'stays good',
  forbidsParallelRefresh: true,
};
const STRICT: ServerHabits = { ...FORGIVING, usedRefreshToken: 'ends the login' };

describe.each(['embedded', 'redis'])('connections over %s', (kind) => {
  async function openStores(): Promise<readonly [Store, Store]> {
    const isRedis = kind === 'redis';
    const env: Readonly<Record<string, string>> = isRedis
      ? { REDIS_URL: closeAfterTest(await startRedis()).url }
      : { DATA_DIR: closeAfterTest(await createTemporaryFolder()).path };
    const config = loadConfig({ AUTH_REQUIRED: 'false', ...env });
    const open = async () =>
      closeAfterTest(await openStore(config, { clock: systemClock, log: collectLog().log }));
    const one = await open();
    return [one, isRedis ? await open() : one];
  }

  async function start(habits: ServerHabits) {
    const clock = manualClock(systemClock.now());
    const server = closeAfterTest(await startProtectedServer({ habits, clock }));
    const wiki = toConnectionServer(server);
    const stores = await openStores();
    const open = (store: Store) => closeAfterTest(openKeeper(store, { servers: [wiki], clock }));
    const [one, other] = [open(stores[0]), open(stores[1])];
    return { clock, server, wiki, stores, open, one, other };
  }

  test('§24.2 registration: of replicas that need it at the same moment one registers, and all are known by it', async () => {
    const { server, wiki, one, other } = await start(KEEPS_TO_MCP);
    const keepers = [one, other, one, other];
    const queries = await Promise.all(
      keepers.map((keeper) => beginLogin(keeper, wiki, { owner: ADA })),
    );
    expect(server.seen('register')).toHaveLength(1);
    // A login that one replica began is finished by another.
    const [query = new Map()] = queries;
    await finishLogin(other, query, { owner: ADA });
    expect(await one.connections.getAccess(ADA, wiki)).toMatchObject({ kind: 'active' });
  });

  test('§24.2 registration: one that was forgotten is made anew once, and at most once in ten minutes', async () => {
    const { clock, server, wiki, one, other } = await start(KEEPS_TO_MCP);
    await connectOwner(one, wiki, { owner: ADA });
    await connectOwner(one, wiki, { owner: BOB });
    clock.advance(TWO_HOURS_MS);
    server.forgetClients();
    const answers = await Promise.all([
      one.connections.getAccess(ADA, wiki),
      other.connections.getAccess(BOB, wiki),
    ]);
    for (const answer of answers) {
      expect(answer).toMatchObject({
        kind: 'unavailable',
        reason: expect.stringMatching(
          /wiki’s token endpoint \S+ answered 40\d invalid_client: the registration is gone; the gateway has registered again/,
        ),
      });
    }
    expect(server.seen('register')).toHaveLength(2);
    server.forgetClients();
    const query = await beginLogin(one, wiki, { owner: ADA }).catch(() => undefined);
    expect(query).toBeUndefined();
    clock.advance(300_000);
    await one.connections.getAccess(ADA, wiki);
    expect(server.seen('register')).toHaveLength(2);
    // Nothing is deleted.
    expect(await one.connections.describe(ADA, wiki)).toMatchObject({ state: 'active' });
  });

  test('§24.4 renewal: round after round, of two replicas one asks, and no refresh token is used twice', {
    timeout: LONG_MS,
  }, async () => {
    const { clock, server, wiki, one, other } = await start(STRICT);
    await connectOwner(one, wiki, { owner: ADA });
    const rounds = chooseCount(4, 40);
    for (let round = 0; round < rounds; round += 1) {
      clock.advance(TWO_HOURS_MS);
      const accesses = await Promise.all(
        [one, other, one].map((keeper) => keeper.connections.getAccess(ADA, wiki)),
      );
      expect(new Set(accesses.map((access) => JSON.stringify(access))).size).toBe(1);
      expect(accesses[0]).toMatchObject({ kind: 'active' });
    }
    const used = server.seen('token').flatMap(({ form }) => form.getAll('refresh_token'));
    expect(used).toHaveLength(rounds);
    expect(new Set(used).size).toBe(rounds);
  });

  test('§24.4 renewal: a replica dies in the middle, round after round: no connection is lost', {
    timeout: LONG_MS,
  }, async () => {
    const { clock, server, wiki, stores, open, one, other } = await start(FORGIVING);
    await connectOwner(one, wiki, { owner: ADA });
    const rounds = chooseCount(4, 40);
    let lost = 0;
    for (let round = 0; round < rounds; round += 1) {
      clock.advance(TWO_HOURS_MS);
      await dieInTheMiddle(open, stores[0], wiki, server, round);
      const accesses = await withTime(
        clock,
        Promise.all([one, other].map((keeper) => keeper.connections.getAccess(ADA, wiki))),
      );
      if (accesses.some(({ kind: is }) => is !== 'active')) lost += 1;
    }
    expect(lost).toBe(0);
  });

  test('§24.4 renewal: where a lost answer cannot be had again, the user needs a login, and only this user', async () => {
    const { clock, server, wiki, stores, open, other } = await start(STRICT);
    await connectOwner(other, wiki, { owner: ADA, account: 'ada@work' });
    await connectOwner(other, wiki, { owner: BOB, account: 'bob@work' });
    clock.advance(TWO_HOURS_MS);
    await dieInTheMiddle(open, stores[0], wiki, server, 0);
    expect(
      await withTime(clock, Promise.resolve(other.connections.getAccess(ADA, wiki))),
    ).toMatchObject({
      kind: 'login needed',
      reason: expect.stringContaining('was lost'),
    });
    expect(await other.connections.getAccess(BOB, wiki)).toMatchObject({ kind: 'active' });
    expect(await other.connections.count('wiki')).toEqual({ active: 1, 'login needed': 1 });
  });

  test('§24.4 renewal: an answer that the store does not take is not used before it does', async () => {
    const { clock, server, wiki, stores, open, other } = await start(STRICT);
    await connectOwner(other, wiki, { owner: ADA });
    clock.advance(TWO_HOURS_MS);
    let isDown = false;
    const flaky = open({
      ...stores[0],
      compareAndSet: (...args) =>
        isDown ? Promise.reject(new StoreUnavailable('down')) : stores[0].compareAndSet(...args),
    });
    server.onRefresh = () => {
      isDown = true;
    };
    const refused = await withTime(clock, Promise.resolve(flaky.connections.getAccess(ADA, wiki)));
    expect(refused).toMatchObject({ kind: 'unavailable' });
    isDown = false;
    clock.advance(10_000);
    const access = await flaky.connections.getAccess(ADA, wiki);
    expect(access).toMatchObject({ kind: 'active' });
    // It is the answer of then: the refresh token was used once.
    expect(server.seen('token')).toHaveLength(2);
    expect(await other.connections.getAccess(ADA, wiki)).toEqual(access);
  });

  test('§24.4 what one replica ends, the other sends nothing by any more', async () => {
    const { wiki, server, one, other } = await start(KEEPS_TO_MCP);
    const changes: string[] = [];
    other.connections.onChange((_owner, name, state) => changes.push(`${name} ${state}`));
    await connectOwner(one, wiki, { owner: ADA });
    await expect.poll(() => changes).toEqual(['wiki active']);
    await other.connections.getAccess(ADA, wiki);
    expect(other.connections.getAccess(ADA, wiki)).toMatchObject({ kind: 'active' });
    expect(await one.connections.end(ADA, wiki, 'user')).toEqual({
      ended: true,
      problem: undefined,
    });
    await expect.poll(() => changes).toEqual(['wiki active', 'wiki missing']);
    expect(await other.connections.getAccess(ADA, wiki)).toMatchObject({ kind: 'missing' });
    expect(server.seen('revoke')).toHaveLength(1);
    expect(server.countActiveLogins()).toBe(0);
  });

  test('§24.3 who waits at one replica hears what the other has connected, or that it was declined', async () => {
    const { wiki, one, other } = await start(KEEPS_TO_MCP);
    const request = { owner: ADA, server: 'wiki', scopes: undefined };
    const { signal } = new AbortController();
    const link = await one.requests.create(request);
    const waiting = other.requests.wait(link.id, request, signal);
    await connectOwner(one, wiki, { owner: ADA, requestId: link.id });
    expect(await waiting).toBe('connected');
    expect(await one.requests.find(link.id)).toBeUndefined();

    const wider = { ...request, scopes: ['mcp:write'] };
    const second = await one.requests.create(wider);
    const declined = other.requests.wait(second.id, wider, signal);
    await one.requests.decline(second.id);
    expect(await declined).toBe('declined');
  });
});

/** A replica of its own: it gets an answer, or not even that, and is cut off from the store. Its lock ends with time. */
async function dieInTheMiddle(
  open: (store: Store) => Keeper,
  store: Store,
  wiki: ConnectionServer,
  server: Awaited<ReturnType<typeof startProtectedServer>>,
  round: number,
): Promise<void> {
  let isDead = false;
  const victim = open(
    new Proxy(store, {
      get(target, name) {
        const value = Reflect.get(target, name);
        if (typeof value !== 'function' || name === 'close') return value;
        return (...args: unknown[]) => (isDead ? new Promise(() => {}) : value.apply(target, args));
      },
    }),
  );
  const before = server.seen('token').length;
  const isAnswered = new Promise<void>((resolve) => {
    server.onRefresh = () => {
      isDead = true;
      resolve();
    };
  });
  // Nobody hears what comes of it.
  void victim.connections.getAccess(ADA, wiki);
  await isAnswered;
  expect(server.seen('token')).toHaveLength(before + 1);
  // In every other round somebody waits for it already.
  if (round % 2 === 0)
    await store.delete(buildConnectionLockKey(createPlaces(PROVIDER)(ADA, 'wiki').hash));
  else
    setImmediate(
      () => void store.delete(buildConnectionLockKey(createPlaces(PROVIDER)(ADA, 'wiki').hash)),
    );
}

/** Time goes on while something waits for it. */
async function withTime<Value>(clock: ManualClock, pending: Promise<Value>): Promise<Value> {
  let isDone = false;
  const settled = pending.finally(() => {
    isDone = true;
  });
  while (!isDone) {
    await new Promise((resolve) => setTimeout(resolve, 2));
    if (!isDone) clock.advance(100);
  }
  return settled;
}
