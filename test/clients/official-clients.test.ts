// Every official client in every era, logged in for real, and the same steps for each.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClientTestCatalog } from '../support/catalogs/client-test-catalog.ts';
import type { OfficialClient } from '../support/clients/official-client.ts';
import { CLIENT_STEPS } from '../support/clients/official-client-steps.ts';
import { OFFICIAL_CLIENTS } from '../support/clients/official-clients.ts';
import { startService } from '../support/gateway/service.ts';
import { useShared } from '../support/lifetimes.ts';

const own = createClientTestCatalog();
const clients = new Map<string, OfficialClient>();
const service = useShared(() => startService({ mode: 'broker', deps: { catalog: own.catalog } }));

beforeAll(async () => {
  for (const row of OFFICIAL_CLIENTS) clients.set(row.title, await row.connect(service.mcpUrl));
});
afterAll(async () => {
  for (const client of clients.values()) await client.close();
});

function clientOf(title: string): OfficialClient {
  const client = clients.get(title);
  if (client === undefined) throw new Error(`There is no client ${title}.`);
  return client;
}

const rows = OFFICIAL_CLIENTS.flatMap((row) =>
  CLIENT_STEPS.map(([step, take]) => [row.title, step, row, take] as const),
);

test.for(rows)('§4.4 official client %s: %s', async ([title, , row, take]) => {
  await take(clientOf(title), row, own);
});

test.for(OFFICIAL_CLIENTS.map(({ title }) => title))(
  '§4.6 official client %s: was refused once, logged in once, and goes on after a restart',
  async (title) => {
    const client = clientOf(title);
    await service.restart();
    const { content } = await client.call('who-am-i');
    expect(content).toEqual([{ type: 'text', text: 'ada' }]);
    expect(client.memory.saved.authorizations).toHaveLength(1);
    expect(client.sent.filter((line) => line.endsWith(' 401'))).toHaveLength(1);
  },
);
