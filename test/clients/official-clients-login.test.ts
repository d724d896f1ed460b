// Login in the middle of negotiation: a 401 is no sign of an older server.
import { expect, test } from 'vitest';
import { createClientTestCatalog } from '../support/catalogs/client-test-catalog.ts';
import { OFFICIAL_CLIENTS } from '../support/clients/official-clients.ts';
import { startService } from '../support/gateway/service.ts';
import { useShared } from '../support/lifetimes.ts';

const { catalog } = createClientTestCatalog();
const service = useShared(() => startService({ mode: 'broker', deps: { catalog } }));

test.for(OFFICIAL_CLIENTS.map((row) => [row.title, row] as const))(
  '§5 official client %s: is refused at its first word, logs in and says it again; no other way is tried',
  async ([, { era, connect }]) => {
    const client = await connect(service.mcpUrl);
    expect(client.memory.saved.authorizations).toHaveLength(1);
    const first = era === 'session' ? 'POST initialize' : 'POST server/discover';
    expect(client.sent.slice(0, 2)).toEqual([`${first} 401`, `${first} 200`]);

    await client.call('who-am-i');
    const rest = client.sent.slice(2).sort();
    expect(rest).toEqual(
      era === 'session'
        ? ['GET 405', 'POST notifications/initialized 202', 'POST tools/call 200']
        : ['POST tools/call 200'],
    );
    await client.close();
  },
);
