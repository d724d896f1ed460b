// What sessions subscribed to lies in the store: a store that fails for a moment loses none of it, here or there.
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { openStore } from '../../../src/store/open.ts';
import type { Store } from '../../../src/store/store.ts';
import type { EventStream } from '../../support/clients/event-stream.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import {
  describeWatchedProcesses,
  RESOURCES,
  startWatchedHttp,
  type WatchedServer,
} from '../../support/upstreams/watched-server.ts';

const PATIENT = { timeout: 20_000, interval: 5 };
const [FIRST, SECOND] = RESOURCES;

const redis = useShared(startRedis);

/** What lies there of sessions at servers. */
const isOfServer = (key: string): boolean => key.includes(':upstream:');

/** A replica's own way to the store that all share: it fails, where that is said, for what is of servers. */
async function openFailing() {
  const config = loadConfig({ AUTH_REQUIRED: 'false', REDIS_URL: redis.url });
  const store = await openStore(config, { clock: systemClock, log: collectLog().log });
  const state = { isDown: false, failures: 0 };
  const unlessDown =
    <Args extends readonly unknown[], Result>(
      step: (key: string, ...args: Args) => Promise<Result>,
    ) =>
    async (key: string, ...args: Args) => {
      if (!state.isDown || !isOfServer(key)) return step(key, ...args);
      state.failures += 1;
      throw new Error('The store is down.');
    };
  const failing: Store = {
    ...store,
    get: unlessDown(store.get),
    getOrSet: unlessDown(store.getOrSet),
    compareAndSet: unlessDown(store.compareAndSet),
  };
  return { state, failing };
}

async function startReplicas({ entry }: WatchedServer) {
  const file = { mcpServers: { s: entry } };
  const env = { MCP_STREAMS: 'true', REDIS_URL: redis.url };
  const { state, failing } = await openFailing();
  const first = await startForTest({ file, env });
  const second = await startForTest({
    file,
    env: { ...env, OIDC_ISSUER: first.issuer.url },
    deps: { store: failing },
  });
  const here = await openClient(first);
  return { here, there: await here.at(second), state };
}

const SERVERS = [
  ['streams of the stateless era', () => startWatchedHttp('stateless')],
  ['a process at each replica', async () => describeWatchedProcesses()],
] as const;

/** Lists change as well while processes start. */
async function nextUpdate(stream: EventStream): Promise<unknown> {
  for (;;) {
    const { method, params } = await stream.next();
    if (method === 'notifications/resources/updated') return params.uri;
  }
}

test.each(SERVERS)(
  '§18.3 at a server with %s a stream keeps its subscriptions while the store does not answer, and has new ones after it',
  async (_title, start) => {
    const server = closeAfterTest(await start());
    const { here, there, state } = await startReplicas(server);
    expect(await here.ask('resources/subscribe', { uri: FIRST })).toMatchObject({ result: {} });
    const stream = await there.watch();
    await expect.poll(() => server.listWanted(there), PATIENT).toEqual([FIRST]);
    state.isDown = true;
    expect(await here.ask('resources/subscribe', { uri: SECOND })).toMatchObject({ result: {} });
    await expect.poll(() => state.failures, PATIENT).toBeGreaterThan(0);
    await server.announce(FIRST, there);
    expect(await nextUpdate(stream)).toBe(FIRST);
    state.isDown = false;
    await expect.poll(() => server.listWanted(there), PATIENT).toEqual([FIRST, SECOND]);
    await server.announce(SECOND, there);
    expect(await nextUpdate(stream)).toBe(SECOND);
    stream.hangUp();
  },
);

test.each([...SERVERS, ['sessions', () => startWatchedHttp('session')] as const])(
  '§18.3 at a server with %s who subscribes while the store does not answer is told that it failed',
  async (_title, start) => {
    const server = closeAfterTest(await start());
    const { there, state } = await startReplicas(server);
    const stream = await there.watch();
    state.isDown = true;
    expect(await there.ask('resources/subscribe', { uri: FIRST })).not.toHaveProperty('result');
    state.isDown = false;
    expect(await there.ask('resources/subscribe', { uri: SECOND })).toMatchObject({ result: {} });
    await expect.poll(() => server.listWanted(there), PATIENT).toEqual([SECOND]);
    stream.hangUp();
  },
);
