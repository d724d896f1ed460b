// What two replicas change at the same moment: neither undoes what the other has done.
import { describe, expect, test } from 'vitest';
import { createLinkedResources } from '../../src/catalog/linked-resources.ts';
import { createRunOnce } from '../../src/logins/broker/renewal.ts';
import {
  createClientDirectory,
  createRegisteredClients,
} from '../../src/logins/clients/clients.ts';
import { createSessionSubscriptions } from '../../src/mcp/session/session-streams.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { generateClientId, hashSha256 } from '../../src/platform/ids.ts';
import { createServerSessions, ServerSession } from '../../src/servers/http/sessions.ts';
import {
  createSessionRecords,
  createSubscriptionMemory,
} from '../../src/servers/transport/session-records.ts';
import { buildIdentityKeyName, buildSubscriptionKey } from '../../src/store/keys.ts';
import { createSeal } from '../../src/store/seal/seal.ts';
import { createSigningKeys } from '../../src/store/seal/signing-keys.ts';
import type { Store } from '../../src/store/store.ts';
import { manualClock } from '../support/gateway/clock.ts';
import { collectLog } from '../support/gateway/log.ts';
import { openTestRuntime } from '../support/gateway/runtime.ts';
import { useFresh } from '../support/lifetimes.ts';
import { wrapStore } from '../support/stores/wrapped-store.ts';
import { sessionCaller } from '../support/upstreams/requests.ts';

const KEY_PREFIX = 'mcp:session:';
const FORMER = createSeal(['the secret that all replicas had before this one']);
const { log } = collectLog();

const useStore = () =>
  useFresh(async () => {
    const { store, remove } = await wrapStore(() => ({}));
    return {
      store,
      async close() {
        await store.close();
        await remove();
      },
    };
  });

/** Of a server's sessions, as one replica keeps them. */
const openRecords = (store: Store) =>
  createSessionRecords(openTestRuntime({ store, getSeal: async () => SEAL }), 'server');
const SEAL = createSeal(['a secret that all replicas have, long enough']);

describe('subscriptions at a server', () => {
  const shared = useStore();
  const openMemory = (store: Store = shared.store) =>
    createSubscriptionMemory(store, openRecords(store), 'changes', () => {});
  const uris = Array.from({ length: 8 }, (_, at) => `note://${at}`);

  test('§18.3 of two replicas that note different resources of a session, both are kept', async () => {
    const [one, other] = [openMemory(), openMemory()];
    await Promise.all(
      uris.map((uri, at) => (at % 2 === 0 ? one : other).note('session', uri, true)),
    );
    expect((await one.read('session')).toSorted()).toEqual(uris);
    await Promise.all(
      uris.slice(2).map((uri, at) => (at % 2 === 0 ? one : other).note('session', uri, false)),
    );
    expect((await other.read('session')).toSorted()).toEqual(uris.slice(0, 2));
  });

  test('§18.3 reading them, which begins their time anew, undoes no change', async () => {
    const { store } = shared;
    const other = openMemory();
    let atRead = async () => {};
    const one = openMemory({
      ...store,
      async get(key) {
        const value = await store.get(key);
        await atRead();
        return value;
      },
    });
    const noteMeanwhile = (uri: string, isWanted: boolean) => {
      atRead = async () => {
        atRead = async () => {};
        await other.note('session', uri, isWanted);
      };
    };
    await other.note('session', 'note://a', true);
    noteMeanwhile('note://b', true);
    expect((await one.read('session')).toSorted()).toEqual(['note://a', 'note://b']);
    noteMeanwhile('note://a', false);
    expect(await one.read('session')).toEqual(['note://b']);
    expect(await other.read('session')).toEqual(['note://b']);
  });
});

test('§18.3 two replicas whose session the server has lost go on with one new session', async () => {
  const { store, remove } = await wrapStore(() => ({}));
  const ended: unknown[] = [];
  const openReplica = (name: string) => {
    const ids = [`lost`, `new of ${name}`];
    return createServerSessions(systemClock, openRecords(store), () => undefined, {
      initialize: async () => new ServerSession(ids.shift(), '2025-11-25', 0),
      terminate: async (_caller, { id }) => void ended.push(id),
      restore: async () => {},
    });
  };
  const caller = sessionCaller();
  const [one, other] = [openReplica('one'), openReplica('other')];
  const lost = await Promise.all([one.open(caller), other.open(caller)]);
  const renewed = await Promise.all([one.replace(caller, lost[0]), other.replace(caller, lost[1])]);
  expect(renewed[0].id).toMatch(/^new/);
  expect(renewed[0].id).toBe(renewed[1].id);
  expect(ended).toHaveLength(1);
  expect(ended).not.toContain(renewed[0].id);
  for (const replica of [one, other]) await replica.close();
  await store.close();
  await remove();
});

describe('records that were sealed with a former secret', () => {
  const shared = useStore();

  test('§18.3 two replicas that replace the session at a server have the same one', async () => {
    const first = openRecords(shared.store);
    await first.readOrWrite('session', 'before');
    const { store } = shared;
    const sealedElsewhere = createSessionRecords(
      openTestRuntime({ store, getSeal: async () => FORMER }),
      'server',
    );
    const [one, other] = await Promise.all([
      sealedElsewhere.readOrWrite('session', 'of the one'),
      sealedElsewhere.readOrWrite('session', 'of the other'),
    ]);
    expect(one).toBe(other);
    expect(await sealedElsewhere.read('session')).toBe(one);
  });

  test('§18.2 a resource that two servers name belongs to one of them', async () => {
    const openLinks = (seal: typeof SEAL) =>
      createLinkedResources(
        openTestRuntime({ store: shared.store, getSeal: async () => seal, log }),
      );
    await openLinks(FORMER).remember('session', 'gone', ['note://a']);
    const [one, other] = [openLinks(SEAL), openLinks(SEAL)];
    await Promise.all([
      one.remember('session', 'first', ['note://a']),
      other.remember('session', 'second', ['note://a']),
    ]);
    expect(await one.find('session', 'note://a')).toBe('first');
  });

  test('§18.6 two replicas that replace a key sign with the same one', async () => {
    const clock = manualClock();
    const openKeys = (seal: typeof SEAL) =>
      createSigningKeys(
        { store: shared.store, clock, log },
        async () => seal,
        buildIdentityKeyName,
      );
    await openKeys(FORMER).getSigningKey();
    const [one, other] = await Promise.all([
      openKeys(SEAL).getSigningKey(),
      openKeys(SEAL).getSigningKey(),
    ]);
    expect(one.kid).toBe(other.kid);
    expect((await openKeys(SEAL).getSigningKey()).kid).toBe(one.kid);
  });
});

describe('what is renewed', () => {
  const shared = useStore();

  test('§15 a subscription that was given up meanwhile does not come back', async () => {
    const clock = manualClock();
    const { store } = shared;
    const subscriptions = createSessionSubscriptions(openTestRuntime({ store, clock }));
    const key = buildSubscriptionKey(KEY_PREFIX, 'session', hashSha256('note://a'));
    const savedAt = clock.now();
    await store.set(key, String(savedAt), 604_800);
    clock.advance(2 * 86_400_000);
    await subscriptions.renew('session', 'note://a', savedAt);
    expect(await subscriptions.findSavedAt('session', 'note://a')).toBe(clock.now());
    const renewedAt = clock.now();
    clock.advance(2 * 86_400_000);
    // What unsubscribe does at another replica.
    await store.delete(key);
    await subscriptions.renew('session', 'note://a', renewedAt);
    expect(await subscriptions.findSavedAt('session', 'note://a')).toBeUndefined();
  });

  test('§22.4 a client that an operator removed meanwhile does not come back', async () => {
    const clients = createRegisteredClients(shared.store, {
      ttlSeconds: 3600,
      unusedTtlSeconds: 60,
    });
    const client = {
      client_id: generateClientId(),
      redirect_uris: ['http://localhost/callback'],
      grant_types: [],
      response_types: [],
      token_endpoint_auth_method: 'none',
      client_id_issued_at: 0,
      client_secret_expires_at: 0,
    } as const;
    await clients.add(client);
    expect(await clients.find(client.client_id)).toMatchObject(client);
    await clients.keep(client);
    expect(await clients.find(client.client_id)).toMatchObject({ used: true });
    await createClientDirectory(shared.store).delete(client.client_id);
    await clients.keep(client);
    expect(await clients.find(client.client_id)).toBeUndefined();
  });
});

test('§17 the end of slow work leaves the lock of another replica, which began meanwhile', async () => {
  const clock = manualClock();
  const { store, remove } = await wrapStore(() => ({}), clock);
  const begun: string[] = [];
  const endings: (() => void)[] = [];
  const begin = (name: string) =>
    createRunOnce<string>({ store, seal: SEAL }, clock)(
      'work',
      () => {
        begun.push(name);
        return new Promise((resolve) => endings.push(() => resolve(`of the ${name}`)));
      },
      () => name !== 'slow',
    );
  const slow = begin('slow');
  await expect.poll(() => begun).toEqual(['slow']);
  clock.advance(31_000);
  const next = begin('next');
  await expect.poll(() => begun).toEqual(['slow', 'next']);
  endings[0]?.();
  expect(await slow).toBe('of the slow');
  const third = begin('third');
  endings[1]?.();
  expect(await next).toBe('of the next');
  let answer: string | undefined;
  void third.then((result) => {
    answer = result;
  });
  await expect
    .poll(() => {
      clock.advance(50);
      return answer;
    })
    .toBe('of the next');
  expect(begun).toEqual(['slow', 'next']);
  await store.close();
  await remove();
});
