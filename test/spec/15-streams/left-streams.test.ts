// §15.1: what a session's own stream costs is given back when its client has left, however long it stood before.
import { expect, test } from 'vitest';
import { createWaitingCatalog } from '../../support/catalogs/waiting-catalog.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { useFreshGateway } from '../../support/gateway/use-gateway.ts';

let clock: ManualClock;
let listeners = 0;
const catalog = {
  ...createWaitingCatalog().catalog,
  listen() {
    listeners += 1;
    return () => {
      listeners -= 1;
    };
  },
};
const gateway = useFreshGateway(() => {
  clock = manualClock();
  return { env: { MCP_STREAMS: 'true' }, deps: { catalog, clock } };
});

const countEnded = () =>
  gateway.log.filter(({ msg, method }) => msg === 'Answered.' && method === 'GET').length;

test.each([0, 15_000, 200_000])(
  '§15.1 nothing is heard for it any more half a minute after its client has left, where it stood for %d ms',
  async (standing) => {
    const client = await openClient(gateway);
    const stream = await client.watch();
    await expect.poll(() => listeners).toBe(1);
    clock.advance(standing);
    stream.hangUp();
    await expect.poll(countEnded).toBe(1);
    clock.advance(45_000);
    await expect.poll(() => listeners).toBe(0);
  },
);
