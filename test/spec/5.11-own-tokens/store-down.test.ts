// A store that does not answer: calls with a token of the gateway say so, by the ids of their requests.
import { expect, test } from 'vitest';
import { StoreUnavailable } from '../../../src/store/store.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';

test('§7.1 a store that does not answer: 500 with the id of the request, Retry-After, and what to do', async () => {
  let isDown = false;
  const broker = closeAfterTest(
    await startBroker({}, {}, (real) => ({
      ...real,
      async admitRequest(...args) {
        const admission = await real.admitRequest(...args);
        const grant = { failure: new StoreUnavailable('no answer') };
        return isDown ? { ...admission, grant } : admission;
      },
    })),
  );
  const { access_token: token } = await broker.logIn(await broker.steps.register());
  const call = (id: number) => stateless(broker.gateway, 'tools/list', {}, { token, id });
  expect((await call(1)).status).toBe(200);
  isDown = true;
  const { status, headers, json } = await call(7);
  expect([status, headers['retry-after']]).toEqual([500, '1']);
  expect(json).toMatchObject({
    id: 7,
    error: {
      code: -32000,
      data: { details: 'The store of this gateway does not answer. Try again shortly.' },
    },
  });
});
