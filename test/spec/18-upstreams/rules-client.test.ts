// §18.5: which OAuth client a token was made for.
import { describe, expect, test } from 'vitest';
import { hashSha256 } from '../../../src/platform/ids.ts';
import { createClientOf } from '../../../src/policy/rules/client-of.ts';
import type { Store } from '../../../src/store/store.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';
import { decide, rule, tool, userWith } from '../../support/upstreams/rules.ts';

const NOW = 1_800_000_000_000;
const OWN = 'provider-client';
const keyOf = (token: string) => `oauth:token-client:${hashSha256(token)}`;

interface Parts {
  readonly store: Pick<Store, 'get'>;
  readonly ownClientId?: string;
  readonly isNeeded?: () => boolean;
}

function open({ store, ownClientId, isNeeded = () => true }: Parts) {
  const clock = manualClock(NOW);
  const { log, lines } = collectLog();
  const clientOf = createClientOf({ store, clock, log }, ownClientId, isNeeded);
  const ask = async (claims: object, token = 'token') =>
    clientOf({ user: userWith({ exp: NOW / 1000 + 3600, ...claims }, token) });
  return { ask, clientOf, clock, lines };
}

const noStore: Pick<Store, 'get'> = { get: () => Promise.reject(new Error('asked the store')) };

/** A store that counts what it is asked. */
async function openCountedStore(get?: (store: Store) => Store['get']) {
  let count = 0;
  const wrapped = await wrapStore((real) => ({
    async get(key) {
      count += 1;
      return (get?.(real) ?? real.get)(key);
    },
  }));
  closeAfterTest({
    async close() {
      await wrapped.store.close();
      await wrapped.remove();
    },
  });
  return { store: wrapped.store, asked: () => count };
}

describe('by the claims of the token', () => {
  test.each<[object, string | undefined]>([
    [{ azp: 'a' }, 'a'],
    [{ client_id: 'b' }, 'b'],
    [{ cid: 'c' }, 'c'],
    [{ appid: 'd' }, 'd'],
    [{ azp: 'a', client_id: 'b' }, 'a'],
    [{ azp: 7, client_id: 'b' }, 'b'],
    [{ azp: ['a'] }, undefined],
    [{ azp: '' }, undefined],
    [{ aud: 'x' }, undefined],
    [{}, undefined],
  ])('§18.5 a token with %j is of the client %s', async (claims, expected) => {
    expect(await open({ store: noStore }).ask(claims)).toBe(expected);
  });

  test('§18.5 without a user there is no client', async () => {
    expect(await open({ store: noStore }).clientOf({ user: undefined })).toBeUndefined();
  });

  test('§18.5 in broker mode a token that was made for another client than the gateway is of that client', async () => {
    const { ask, lines } = open({ store: noStore, ownClientId: OWN });
    expect(await ask({ azp: 'machine' })).toBe('machine');
    expect(lines).toEqual([]);
  });
});

describe('by what was noted at hand-out', () => {
  test('§18.5 the client is read once for each token, and forgotten when the token expires', async () => {
    const { store, asked } = await openCountedStore();
    await store.set(keyOf('token'), 'client-1', 7200);
    const { ask, clock } = open({ store, ownClientId: OWN });
    expect(await Promise.all([ask({ azp: OWN }), ask({ azp: OWN }), ask({})])).toEqual([
      'client-1',
      'client-1',
      'client-1',
    ]);
    expect(await ask({ azp: OWN })).toBe('client-1');
    expect(asked()).toBe(1);
    expect(await ask({ azp: OWN }, 'another token')).toBeUndefined();
    expect(asked()).toBe(2);
    clock.advance(3_600_000);
    expect(await ask({ azp: OWN })).toBe('client-1');
    expect(asked()).toBe(3);
  });

  test('§18.5 where nothing was noted, the store is asked again after half a minute', async () => {
    const { store, asked } = await openCountedStore();
    const { ask, clock } = open({ store, ownClientId: OWN });
    expect(await ask({})).toBeUndefined();
    expect(await ask({})).toBeUndefined();
    expect(asked()).toBe(1);
    await store.set(keyOf('token'), 'client-1', 7200);
    clock.advance(30_000);
    expect(await ask({})).toBe('client-1');
  });

  test('§18.5 the store is not asked where no rule needs the client', async () => {
    const { ask, lines } = open({ store: noStore, ownClientId: OWN, isNeeded: () => false });
    expect(await ask({ azp: OWN })).toBeUndefined();
    expect(lines).toEqual([]);
  });

  test('§18.5 a store that fails: rules about clients allow nothing, the log says so once, and it recovers', async () => {
    let isDown = true;
    const { store } = await openCountedStore((real) => async (key) => {
      if (isDown) throw new Error('down');
      return real.get(key);
    });
    await store.set(keyOf('token'), 'client-1', 7200);
    const { ask, lines } = open({ store, ownClientId: OWN });
    const clientId = await ask({ azp: OWN });
    expect(clientId).toBeUndefined();
    expect(await ask({ azp: OWN })).toBeUndefined();
    expect(lines).toMatchObject([
      { level: 'warn', msg: expect.stringContaining('rules about clients') },
    ]);
    const rules = [rule({ who: { clients: ['*'] } })];
    expect((await decide(rules, tool('x'), { user: userWith({}), clientId })).kind).toBe('denied');
    isDown = false;
    expect(await ask({ azp: OWN })).toBe('client-1');
  });
});

const WITH_CLIENT_RULE = await readFile({
  mcpServers: {},
  rules: [{ who: { clients: ['*'] }, may: ['*'] }],
});

describe('broker mode', () => {
  test('§18.5 which client gets a token is noted when it is handed out, and at each refresh, until it expires', async () => {
    const broker = closeAfterTest(await startBroker({}, { file: WITH_CLIENT_RULE }));
    const { steps, store, clock } = broker;
    const client = await steps.register();
    const exp = clock.now() / 1000 + 3600;
    const first = await broker.sign({ exp, azp: OWN });
    broker.answer(200, { access_token: first, refresh_token: 'refresh-1' });
    expect((await steps.redeem(client, await steps.logIn(client))).status).toBe(200);
    const second = await broker.sign({ exp: exp + 60, azp: OWN });
    broker.answer(200, { access_token: second, refresh_token: 'refresh-2' });
    expect((await steps.refresh(client, 'refresh-1')).status).toBe(200);

    const clientOf = createClientOf({ store, clock, log: collectLog().log }, OWN, () => true);
    for (const token of [first, second]) {
      expect(await clientOf({ user: userWith({ exp, azp: OWN }, token) })).toBe(client.id);
    }
    expect(await store.get(keyOf('refresh-1'))).toBeUndefined();
    clock.advance(4_000_000);
    expect(await store.get(keyOf(first))).toBeUndefined();
    expect(JSON.stringify(broker.gateway.log)).not.toContain(first);
  });

  test('§18.5 nothing is noted where no rule needs the client', async () => {
    const broker = closeAfterTest(await startBroker());
    const client = await broker.steps.register();
    const token = await broker.sign();
    broker.answer(200, { access_token: token });
    expect((await broker.steps.redeem(client, await broker.steps.logIn(client))).status).toBe(200);
    expect(await broker.store.get(keyOf(token))).toBeUndefined();
  });

  test('§18.5 a store that cannot note the client: the login succeeds, and the log says what follows', async () => {
    const broker = closeAfterTest(
      await startBroker({}, { file: WITH_CLIENT_RULE }, (real) => ({
        ...real,
        async set(key, value, ttl) {
          if (key.startsWith('oauth:token-client:')) throw new Error('down');
          await real.set(key, value, ttl);
        },
      })),
    );
    const client = await broker.steps.register();
    broker.answer(200, { access_token: await broker.sign() });
    expect((await broker.steps.redeem(client, await broker.steps.logIn(client))).status).toBe(200);
    expect(broker.gateway.log).toContainEqual(
      expect.objectContaining({ level: 'warn', client: client.id }),
    );
  });
});
