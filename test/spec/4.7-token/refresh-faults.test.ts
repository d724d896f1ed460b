// Faults of the store, and of a replica, while one of many does what all wait for.
import { expect, test } from 'vitest';
import { createRunOnce } from '../../../src/logins/broker/renewal.ts';
import { createSeal } from '../../../src/store/seal/seal.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';

const seal = createSeal(['a secret that all replicas have, long enough']);

test('§13 refresh: a failure that comes late does not end the work of another replica', async () => {
  const clock = manualClock(1_800_000_000_000);
  const { store, remove } = await wrapStore(() => ({}), clock);
  closeAfterTest({ close: () => store.close().then(remove) });
  const startReplica = () => createRunOnce<string>({ store, seal }, clock);
  let failSlow = (_: Error) => {};
  let endNext = (_: string) => {};
  const slowWork = new Promise<string>((_, reject) => {
    failSlow = reject;
  });
  const nextWork = new Promise<string>((resolve) => {
    endNext = resolve;
  });
  const begun: string[] = [];
  const runOn = (name: string, work: Promise<string>) =>
    startReplica()(
      'a refresh token',
      () => {
        begun.push(name);
        return work;
      },
      () => true,
    );

  const slowResult = runOn('slow', slowWork).catch(() => 'failed');
  await expect.poll(() => begun).toEqual(['slow']);
  clock.advance(31_000);
  const nextResult = runOn('next', nextWork);
  await expect.poll(() => begun).toEqual(['slow', 'next']);
  failSlow(new Error('A time-out'));
  expect(await slowResult).toBe('failed');
  clock.advance(3000);

  const thirdResult = runOn('third', Promise.resolve('of the third'));
  endNext('of the next');
  expect(await nextResult).toBe('of the next');
  let isAnswered = false;
  void thirdResult.then(() => {
    isAnswered = true;
  });
  // Each time a moment passes, it asks the store once more.
  await expect
    .poll(() => {
      clock.advance(50);
      return isAnswered;
    })
    .toBe(true);
  expect(await thirdResult).toBe('of the next');
  expect(begun).toEqual(['slow', 'next']);
});
