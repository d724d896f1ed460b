// What every driver of the store must do, port by port.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { describeBus } from './bus.contract.ts';
import { describeGrants } from './grants.contract.ts';
import type { Harness } from './harness.ts';
import { describeKeyValue } from './key-value.contract.ts';
import { describeOwners } from './owners.contract.ts';
import { describeSessions, describeUserSessions } from './sessions.contract.ts';
import { describeWindows } from './windows.contract.ts';

/** `isShared`: whether another process may open the same store. */
export function describeStore(
  name: string,
  open: () => Promise<Harness>,
  { isShared }: { readonly isShared: boolean },
): void {
  describeKeyValue(name, open);
  describeSessions(name, open);
  describeUserSessions(name, open);
  describeOwners(name, open);
  describeWindows(name, open);
  describeGrants(name, open);
  describeBus(name, open);

  let harness: Harness;
  let store: Store;

  beforeAll(async () => {
    harness = await open();
    store = harness.store;
  });
  afterAll(() => harness.close());

  test(`§4.3 a ping to the ${name} store is answered`, async () => {
    await expect(store.ping()).resolves.toBeUndefined();
  });

  test(`§16 the ${name} store says whether replicas share it`, () => {
    expect(store.isShared).toBe(isShared);
  });

  test(`§22.4 the ${name} store says what it is`, async () => {
    const facts = await store.describe();
    if (facts.driver === 'embedded') expect(facts.bytes).toBeGreaterThan(0);
    else {
      expect(facts.servers?.length).toBeGreaterThan(0);
      for (const server of facts.servers ?? []) {
        expect(server).toMatchObject({
          version: expect.stringMatching(/^(Redis|Valkey) \d/),
          role: 'primary',
          evictionPolicy: 'noeviction',
        });
      }
    }
  });
}
