// With MCP_STREAMS=true clients hear that a resource has changed, in the way of their era.
import { expect, test } from 'vitest';
import {
  createClientTestCatalog,
  TODAY,
  TOMORROW,
} from '../support/catalogs/client-test-catalog.ts';
import type { OfficialClient } from '../support/clients/official-client.ts';
import { OFFICIAL_CLIENTS } from '../support/clients/official-clients.ts';
import { startService } from '../support/gateway/service.ts';
import { useShared } from '../support/lifetimes.ts';

/** On a busy machine; nothing here asserts by the clock. */
const PATIENT = { timeout: 20_000 } as const;

const { catalog, change } = createClientTestCatalog();

const service = useShared(() =>
  startService({
    mode: 'broker',
    deps: { catalog },
    env: { MCP_STREAMS: 'true' },
  }),
);

const rows = OFFICIAL_CLIENTS.map((row) => [row.title, row] as const);

/** In the session era the stream is opened beside all else. */
const streamsOf = ({ sent }: OfficialClient) => sent.filter((line) => line === 'GET 200').length;

test.for(rows)(
  '§4.1 official client %s: hears of changes of the resource that it subscribed to, until it unsubscribes',
  async ([, { era, connect }]) => {
    const client = await connect(service.mcpUrl);
    const today = await client.watch(TODAY);
    if (era === 'session') await expect.poll(() => streamsOf(client), PATIENT).toBe(1);

    change(TOMORROW);
    change(TODAY);
    await expect.poll(() => client.updated, PATIENT).toEqual([TODAY]);

    const tomorrow = await client.watch(TOMORROW);
    await today.end();
    change(TODAY);
    change(TOMORROW);
    await expect.poll(() => client.updated, PATIENT).toEqual([TODAY, TOMORROW]);
    await tomorrow.end();
    await client.close();
  },
);

test.for(rows)(
  '§4.1 official client %s: hears of changes after a restart',
  async ([, { era, connect }]) => {
    const client = await connect(service.mcpUrl);
    const { closed } = await client.watch(TODAY);
    if (era === 'session') await expect.poll(() => streamsOf(client), PATIENT).toBe(1);

    await service.restart();
    if (era === 'session') {
      // By itself, after a while; its subscription was kept.
      await expect.poll(() => streamsOf(client), PATIENT).toBe(2);
    } else {
      expect(await closed).toBe('graceful');
      await client.watch(TODAY);
    }
    change(TODAY);
    await expect.poll(() => client.updated, PATIENT).toEqual([TODAY]);
    expect(client.memory.saved.authorizations).toHaveLength(1);
    await client.close();
  },
);
