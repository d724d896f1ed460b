// Faults of the store at single steps of a refresh: a login must survive them.
import { beforeEach, expect, test } from 'vitest';
import { createFlightRecords, createRunOnce } from '../../../src/oauth/broker/run-once.ts';
import { createSeal } from '../../../src/store/seal/seal.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';
import type { Client } from '../../support/oauth/login-steps.ts';

/** The part of a key whose next read fails. */
let failingKey: string | undefined;
let client: Client;

const broker = useShared(() =>
  startBroker({}, {}, (store) => ({
    ...store,
    get(key) {
      if (failingKey === undefined || !key.includes(failingKey)) return store.get(key);
      failingKey = undefined;
      return Promise.reject(new Error('The store does not answer'));
    },
  })),
);
beforeEach(async () => {
  client = await broker.steps.register();
});

test('§17 refresh: a read that fails after the lock was taken leaves no lock behind', async () => {
  const token = await broker.refreshTokenOf(client, 'r-lock');
  const asked = broker.asked();
  failingKey = ':answer:';
  expect((await broker.steps.refresh(client, token)).status).toBe(500);
  expect(broker.asked()).toBe(asked);
  broker.answer(200, { access_token: await broker.sign(), refresh_token: 'r-lock-2' });
  expect((await broker.steps.refresh(client, token)).json.refresh_token).toBe('r-lock-2');
});

test('§17 refresh: a replacement that was kept is not forgotten before the client has its tokens', async () => {
  const token = await broker.refreshTokenOf(client, 'r-kept');
  broker.answer(200, {
    access_token: await broker.sign({ aud: 'https://elsewhere.example' }),
    refresh_token: 'r-replacement',
  });
  expect((await broker.steps.refresh(client, token)).status).toBe(502);
  broker.clock.advance(20_000);

  broker.answer(200, { access_token: await broker.sign() });
  broker.respond(async (res) => {
    failingKey = ':refresh-revoked:';
    res.writeHead(200).end(JSON.stringify({ access_token: await broker.sign() }));
  });
  expect((await broker.steps.refresh(client, token)).status).toBe(500);
  broker.clock.advance(20_000);

  broker.answer(200, { access_token: await broker.sign() });
  expect((await broker.steps.refresh(client, token)).status).toBe(200);
  expect(broker.last().refresh_token).toBe('r-replacement');
});

test('§13 refresh: a failure that comes late does not end the work of another replica', async () => {
  const { clock, store } = broker;
  const seal = createSeal(['a secret that all replicas have, long enough']);
  const startReplica = () => createRunOnce(createFlightRecords<string>({ store, seal }), clock);
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
