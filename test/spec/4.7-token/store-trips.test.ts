// Every wait for the store is a round trip to Redis: however much is looked up and noted, they are few.
import { expect, test } from 'vitest';
import { useShared } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';
import { createTripCounter } from './count-trips.ts';

const trips = createTripCounter();
// The limits add two, one before the request is judged and one after.
const broker = useShared(() => startBroker({ RATE_LIMIT_ENABLED: 'false' }, {}, trips.count));

test('§13 store trips: a code is redeemed with seven waits', async () => {
  const { steps } = broker;
  const client = await steps.register();
  const back = await steps.logIn(client);
  trips.take();
  expect((await steps.redeem(client, back)).status).toBe(200);
  expect(trips.take()).toHaveLength(7);
});

test.each([
  ['that is rotated', 3_000_000, 2],
  ['whose tokens are good still', 0, 1],
])('§13 store trips: a refresh token %s is used with few waits', async (_what, later, waits) => {
  const { steps } = broker;
  const client = await steps.register();
  const { refresh_token: token } = await broker.logIn(client);
  broker.clock.advance(later);
  trips.take();
  expect((await steps.refresh(client, token)).status).toBe(200);
  expect(trips.take()).toHaveLength(waits);
});

test('§13 store trips: a login is revoked with four waits', async () => {
  const { steps } = broker;
  const client = await steps.register();
  const { refresh_token: token } = await broker.logIn(client);
  trips.take();
  const { status } = await steps.post('/oauth/revoke', { token, client_id: client.id });
  expect(status).toBe(200);
  expect(trips.take()).toHaveLength(4);
});
