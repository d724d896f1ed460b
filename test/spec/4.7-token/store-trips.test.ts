// Every wait for the store is a round trip to Redis: however much is looked up and noted, they are few.
import { expect, test } from 'vitest';
import { useShared } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';
import { createTripCounter } from './count-trips.ts';

const trips = createTripCounter();
// The limits add two, one before the request is judged and one after.
const broker = useShared(() => startBroker({ RATE_LIMIT_ENABLED: 'false' }, {}, trips.count));

test('§13 store trips: a code is redeemed with three waits', async () => {
  const { steps } = broker;
  const client = await steps.register();
  const back = await steps.logIn(client);
  broker.answer(200, { access_token: await broker.sign(), refresh_token: 'r-code' });
  trips.take();
  expect((await steps.redeem(client, back)).status).toBe(200);
  expect(trips.take()).toHaveLength(3);
});

test.each([
  ['that is replaced', { refresh_token: 'r-next' }],
  ['that stays', {}],
])('§13 store trips: a refresh token %s is used with five waits', async (_what, answer) => {
  const { steps } = broker;
  const client = await steps.register();
  const token = await broker.refreshTokenOf(client, `r-of-${client.id}`);
  broker.answer(200, { access_token: await broker.sign(), ...answer });
  trips.take();
  expect((await steps.refresh(client, token)).status).toBe(200);
  expect(trips.take()).toHaveLength(5);
});

test('§13 store trips: the answer to a refresh that was given is read with two waits', async () => {
  const { steps } = broker;
  const client = await steps.register();
  const token = await broker.refreshTokenOf(client, 'r-again');
  broker.answer(200, { access_token: await broker.sign(), refresh_token: 'r-again-2' });
  await steps.refresh(client, token);
  const asked = broker.asked();
  trips.take();
  expect((await steps.refresh(client, token)).json.refresh_token).toBe('r-again-2');
  expect(trips.take()).toHaveLength(2);
  expect(broker.asked()).toBe(asked);
});

test('§13 store trips: a token is revoked with three waits', async () => {
  const { steps } = broker;
  const client = await steps.register();
  const token = await broker.refreshTokenOf(client, 'r-revoked');
  broker.respond((res) => void res.writeHead(200).end());
  trips.take();
  const { status } = await steps.post('/oauth/revoke', { token, client_id: client.id });
  expect(status).toBe(200);
  expect(trips.take()).toHaveLength(3);
});
