// §18.4: a connection that is not there at once.
import { expect, test } from 'vitest';
import { openServerPool } from '../../../../src/platform/outbound/outbound-network.ts';
import { manualClock } from '../../../support/gateway/clock.ts';
import { closeAfterTest } from '../../../support/lifetimes.ts';
import { startFullServer } from '../../../support/upstreams/full-server.ts';
import { startRawConnections } from '../../../support/upstreams/raw-connections.ts';
import { sendOver } from '../../../support/upstreams/sent-requests.ts';

const NO_PROXY = { httpProxy: undefined, httpsProxy: undefined, noProxy: [] };

/** A request whose connection was asked for twice, and is not there. */
async function sendToFull() {
  const server = closeAfterTest(await startFullServer());
  const clock = manualClock();
  const options = { ca: undefined, connectTimeoutMs: 900, outbound: NO_PROXY, clock };
  const sent = sendOver(closeAfterTest(openServerPool(server.url, options)));
  await expect.poll(server.countWaiting).toBe(1);
  // The system itself asks again after a second, when the call has failed.
  clock.advance(450);
  await expect.poll(server.countWaiting).toBe(2);
  return { server, clock, sent };
}

test.runIf(process.platform === 'linux')(
  '§18.4 a connection whose first packet is lost is asked for once more in time',
  async () => {
    const { server, sent } = await sendToFull();
    server.accept();
    expect(await sent.ended()).toBe('accepted');
    await expect.poll(server.countWaiting).toBe(0);
  },
);

test('§14 a proxy that says nothing is named, and not the server', async () => {
  const proxy = closeAfterTest(await startRawConnections());
  const clock = manualClock();
  const outbound = { ...NO_PROXY, httpsProxy: proxy.url.origin };
  const options = { ca: undefined, connectTimeoutMs: 900, outbound, clock };
  const sent = sendOver(closeAfterTest(openServerPool(new URL('https://a.example/'), options)));
  await proxy.connection(0);
  clock.advance(900);
  expect(await sent.failed()).toMatchObject({
    name: 'ProxyError',
    code: 'ERR_PROXY_FAILED',
    cause: { name: 'ConnectTimeout' },
  });
});

test.runIf(process.platform === 'linux')(
  '§18.4 a server that accepts nothing fails the request in time, and nothing is left of it',
  async () => {
    const { server, clock, sent } = await sendToFull();
    clock.advance(450);
    expect(await sent.failed()).toMatchObject({ name: 'ConnectTimeout', code: 'ETIMEDOUT' });
    await expect.poll(server.countWaiting).toBe(0);
  },
);
