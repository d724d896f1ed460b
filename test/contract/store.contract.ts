// What every driver of the store must do, port by port.
import { describe, expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import { describeBus } from './bus.contract.ts';
import { describeGrants } from './grants.contract.ts';
import type { Harness } from './harness.ts';
import { describeKeyValue } from './key-value.contract.ts';
import { describeOwners } from './owners.contract.ts';
import { describeSessions, describeUserSessions } from './sessions.contract.ts';
import { describeWindows } from './windows.contract.ts';

type DescribePort = (name: string, open: () => Promise<Harness>) => void;

/** Each port opens the store for itself, when those before it have closed it: `open` may empty one server. */
export function describePorts(
  name: string,
  open: () => Promise<Harness>,
  ports: readonly DescribePort[],
): void {
  for (const describePort of ports) describe(name, () => describePort(name, open));
}

/** `isShared`: whether another process may open the same store. */
export function describeStore(
  name: string,
  open: () => Promise<Harness>,
  { isShared }: { readonly isShared: boolean },
): void {
  describePorts(name, open, [
    describeKeyValue,
    describeSessions,
    describeUserSessions,
    describeOwners,
    describeWindows,
    describeGrants,
    describeBus,
    (_, openStore) => describeItself(name, openStore, isShared),
  ]);
}

function describeItself(name: string, open: () => Promise<Harness>, isShared: boolean): void {
  const harness = useShared(open);

  test(`§4.3 a ping to the ${name} store is answered`, async () => {
    await expect(harness.store.ping()).resolves.toBeUndefined();
  });

  test(`§16 the ${name} store says whether replicas share it`, () => {
    expect(harness.store.isShared).toBe(isShared);
  });

  test(`§22.4 the ${name} store says what it is`, async () => {
    const facts = await harness.store.describe();
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
