// §24.4, §24.5: what lies in the store belongs to one owner at one server, and opens nowhere else.

import { describe, expect, test } from 'vitest';
import { createPlaces } from '../../../src/connections/connection-record.ts';
import type { ConnectionOwner } from '../../../src/mcp/upstream/connections.ts';
import { buildConnectionKey } from '../../../src/store/keys.ts';
import type { Store } from '../../../src/store/store.ts';
import {
  ADA,
  BOB,
  beginLogin,
  connectOwner,
  finishLogin,
  openKeeper,
  PROVIDER,
  toConnectionServer,
} from '../../support/connections/keeper.ts';
import { openKeeperStore } from '../../support/connections/keeper-store.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { closeAfterTest, useFresh, useShared } from '../../support/lifetimes.ts';

const server = useShared(() => startProtectedServer());
const shared = useFresh(openKeeperStore);

function open() {
  const wiki = toConnectionServer(server);
  const other = toConnectionServer(server, 'other');
  const keeper = closeAfterTest(openKeeper(shared.store, { servers: [wiki, other] }));
  return { wiki, other, keeper };
}

const placeOf = (owner: ConnectionOwner, name: string) =>
  buildConnectionKey(createPlaces(PROVIDER)(owner, name).hash);

async function move(from: string, to: string): Promise<void> {
  const text = await shared.store.get(from);
  if (text === undefined) throw new Error(`Nothing lies under ${from}.`);
  await shared.store.set(to, text, 3600);
}

test('§24.4 records: nothing that was issued can be read in the store', async () => {
  const { wiki, keeper } = open();
  await connectOwner(keeper, wiki, { owner: ADA });
  const text = (await shared.store.get(placeOf(ADA, 'wiki'))) ?? '';
  expect(text.length).toBeGreaterThan(100);
  for (const secret of [...server.issued, 'ada']) expect(text).not.toContain(secret);
});

test.for([
  ['another user', () => placeOf(BOB, 'wiki'), BOB, 'wiki'],
  ['the shared connection', () => placeOf('shared', 'wiki'), 'shared', 'wiki'],
  [
    'a user whose sub is its name',
    () => placeOf({ sub: 'shared' }, 'wiki'),
    { sub: 'shared' },
    'wiki',
  ],
  [
    'a user of the same sub at another issuer',
    () => placeOf({ ...ADA, issuer: 'https://other.example' }, 'wiki'),
    { ...ADA, issuer: 'https://other.example' },
    'wiki',
  ],
  ['another server', () => placeOf(ADA, 'other'), ADA, 'other'],
] as const)(
  '§24.4 records: one that was moved to %s does not open there',
  async ([, target, owner, name]) => {
    const { wiki, keeper } = open();
    await connectOwner(keeper, wiki, { owner: ADA });
    await move(placeOf(ADA, 'wiki'), target());
    const found = keeper.servers.find((one) => one.name === name) ?? wiki;
    // One without what was read before.
    const fresh = closeAfterTest(openKeeper(shared.store, { servers: keeper.servers }));
    expect(await fresh.connections.getAccess(owner, found)).toMatchObject({ kind: 'missing' });
    expect(await fresh.connections.getAccess(ADA, wiki)).toMatchObject({ kind: 'active' });
  },
);

test('§24.4 records: one whose authorization server was changed does not open', async () => {
  const { wiki, keeper } = open();
  await connectOwner(keeper, wiki, { owner: ADA });
  const key = placeOf(ADA, 'wiki');
  const text = (await shared.store.get(key)) ?? '';
  expect(text).toContain(server.issuer);
  await shared.store.set(key, text.replace(server.issuer, 'https://evil.example'), 3600);
  const fresh = closeAfterTest(openKeeper(shared.store, { servers: [wiki] }));
  expect(await fresh.connections.getAccess(ADA, wiki)).toMatchObject({ kind: 'missing' });
});

test('§24.1 a user of the provider is the same with its issuer and without', async () => {
  const { wiki, keeper } = open();
  await connectOwner(keeper, wiki, { owner: ADA });
  expect(await keeper.connections.getAccess({ sub: 'ada' }, wiki)).toMatchObject({
    kind: 'active',
  });
});

describe('two owners', () => {
  test('§24.5 each function sees and ends what is the owner’s alone', async () => {
    const { wiki, other, keeper } = open();
    const { connections } = keeper;
    await connectOwner(keeper, wiki, { owner: ADA, account: 'ada@work' });
    expect(await connections.getAccess(BOB, wiki)).toMatchObject({ kind: 'missing' });
    expect(await connections.describe(BOB, wiki)).toMatchObject({ state: 'missing' });
    expect(await connections.end(BOB, wiki, 'user')).toEqual({ ended: false, problem: undefined });
    expect(await connections.endOfUser(BOB, 'user')).toEqual({ ended: 0, failed: 0 });

    await connectOwner(keeper, wiki, { owner: BOB, account: 'bob@work' });
    await connectOwner(keeper, other, { owner: BOB, account: 'bob@work' });
    const [ada, bob] = [
      await connections.getAccess(ADA, wiki),
      await connections.getAccess(BOB, wiki),
    ];
    if (ada.kind !== 'active' || bob.kind !== 'active') throw new Error('Both are connected.');
    expect(ada.token).not.toBe(bob.token);
    expect(ada.connectionId).not.toBe(bob.connectionId);
    expect(await connections.count('wiki')).toEqual({ active: 2, 'login needed': 0 });

    // What bob knows of ada's token ends nothing of hers.
    await connections.replaceRefusedToken(BOB, wiki, ada, {
      status: 401,
      challenge: undefined,
      isRefusedItself: async () => true,
    });
    expect(await connections.getAccess(ADA, wiki)).toEqual(ada);

    expect(await connections.endOfUser(BOB, 'operator')).toEqual({ ended: 2, failed: 0 });
    expect(await connections.getAccess(BOB, wiki)).toMatchObject({ kind: 'missing' });
    expect(await connections.getAccess(ADA, wiki)).toEqual(ada);
    expect(await connections.count('wiki')).toEqual({ active: 1, 'login needed': 0 });
    expect(await connections.endAtServer('wiki', 'operator')).toEqual({ ended: 1, failed: 0 });
    expect(await connections.getAccess(ADA, wiki)).toMatchObject({ kind: 'missing' });
  });

  test('§24.3 a login that ada began is finished by nobody else, nor in another browser, nor twice', async () => {
    const { wiki, keeper } = open();
    for (const back of [
      { owner: BOB },
      { owner: undefined },
      { owner: ADA, browserHash: 'another' },
      { owner: ADA, browserHash: undefined },
    ]) {
      const query = await beginLogin(keeper, wiki, { owner: ADA });
      const asked = server.seen('token').length;
      await expect(finishLogin(keeper, query, back)).rejects.toThrow(/wiki/);
      // It is used up, and its code was sent nowhere.
      await expect(finishLogin(keeper, query, { owner: ADA })).rejects.toThrow(/once/);
      expect(server.seen('token')).toHaveLength(asked);
    }
    expect(await keeper.connections.describe(ADA, wiki)).toMatchObject({ state: 'missing' });
    expect(await keeper.connections.describe(BOB, wiki)).toMatchObject({ state: 'missing' });
  });

  test('§24.5 a shared connection is finished by operators alone', async () => {
    const { wiki, keeper } = open();
    const query = await beginLogin(keeper, wiki, { owner: 'shared' });
    await expect(finishLogin(keeper, query, { owner: ADA })).rejects.toThrow(/operators/);
    await connectOwner(keeper, wiki, { owner: 'shared' });
    expect(await keeper.connections.getAccess('shared', wiki)).toMatchObject({ kind: 'active' });
    expect(await keeper.connections.getAccess(ADA, wiki)).toMatchObject({ kind: 'missing' });
  });

  test('§24.3 a link is the same again for its owner, server and scopes, and another for anybody else', async () => {
    const { keeper } = open();
    const create = (owner: ConnectionOwner, scopes?: readonly string[]) =>
      keeper.requests.create({ owner, server: 'wiki', scopes });
    const first = await create(ADA);
    expect(await create(ADA)).toEqual(first);
    const others = [await create(BOB), await create(ADA, ['write']), await create('shared')];
    expect(new Set([first, ...others].map(({ id }) => id)).size).toBe(4);
    expect(await keeper.requests.find(first.id)).toMatchObject({ owner: { sub: 'ada' } });
    await keeper.requests.decline(first.id);
    expect(await keeper.requests.find(first.id)).toBeUndefined();
    expect((await create(ADA)).id).not.toBe(first.id);
  });
});

/** Messages to other replicas go their own way, and are none. */
const listSteps = (store: Store, steps: string[]): Store => {
  const wrap = (name: string, step: unknown) =>
    typeof step === 'function'
      ? (...args: unknown[]) => {
          if (name !== 'publish') steps.push(name);
          return step(...args);
        }
      : step;
  const wrapped = Object.entries(store).map(([name, step]) => [name, wrap(name, step)] as const);
  return { ...store, ...Object.fromEntries(wrapped) };
};

test('§24.6 counts: they are right after logins, their loss and their end, and however many there are, the store is asked the same two questions', async () => {
  const steps: string[] = [];
  const own = closeAfterTest(await startProtectedServer());
  const wiki = toConnectionServer(own);
  const store = listSteps(shared.store, steps);
  const keeper = closeAfterTest(openKeeper(store, { servers: [wiki] }));
  const count = async () => {
    steps.length = 0;
    const counts = await keeper.connections.count('wiki');
    expect(steps).toEqual(['countListed', 'countListed']);
    return counts;
  };
  expect(await count()).toEqual({ active: 0, 'login needed': 0 });
  const people = Array.from({ length: 12 }, (_, at) => ({ issuer: PROVIDER, sub: `user-${at}` }));
  for (const owner of people) await connectOwner(keeper, wiki, { owner, account: owner.sub });
  expect(await count()).toEqual({ active: 12, 'login needed': 0 });

  const [first = ADA, second = ADA] = people;
  own.endLoginsOf(first.sub);
  const access = await keeper.connections.getAccess(first, wiki);
  if (access.kind !== 'active') throw new Error('It has not been told yet.');
  const refusal = { status: 401, challenge: undefined, isRefusedItself: async () => true } as const;
  await keeper.connections.replaceRefusedToken(first, wiki, access, refusal);
  expect(await count()).toEqual({ active: 11, 'login needed': 1 });
  await keeper.connections.end(second, wiki, 'user');
  expect(await count()).toEqual({ active: 10, 'login needed': 1 });
  await connectOwner(keeper, wiki, { owner: first, account: first.sub });
  expect(await count()).toEqual({ active: 11, 'login needed': 0 });
  expect(await keeper.connections.endAtServer('wiki', 'operator')).toMatchObject({ ended: 11 });
  expect(await count()).toEqual({ active: 0, 'login needed': 0 });
});

test.for([
  ['a new login', 1],
  ['its end', 0],
] as const)(
  '§24.6 counts: where it turns out late that a login was lost, after %s, they are of what stands',
  async ([what, active]) => {
    const own = closeAfterTest(await startProtectedServer());
    const wiki = toConnectionServer(own);
    let meanwhile = async () => {};
    const store: Store = {
      ...shared.store,
      async setListed(list, ...rest) {
        if (list.startsWith('connection:logins-needed:')) await meanwhile();
        await shared.store.setListed(list, ...rest);
      },
    };
    const keeper = closeAfterTest(openKeeper(store, { servers: [wiki] }));
    await connectOwner(keeper, wiki, { owner: ADA });
    own.endLoginsOf('ada@work');
    const access = await keeper.connections.getAccess(ADA, wiki);
    if (access.kind !== 'active') throw new Error('It has not been told yet.');
    let times = 0;
    meanwhile = async () => {
      times += 1;
      if (what === 'its end') await keeper.connections.end(ADA, wiki, 'user');
      else await connectOwner(keeper, wiki, { owner: ADA });
    };
    const refusal = {
      status: 401,
      challenge: undefined,
      isRefusedItself: async () => true,
    } as const;
    await keeper.connections.replaceRefusedToken(ADA, wiki, access, refusal);
    expect(times).toBe(1);
    expect(await keeper.connections.count('wiki')).toEqual({ active, 'login needed': 0 });
  },
);
