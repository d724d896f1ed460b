// The same steps over three replicas: each request goes to the next, so that an answer to a
// question, and a cancellation, come to another one than the call.
import { expect, test } from 'vitest';
import { createClientTestCatalog } from '../support/catalogs/client-test-catalog.ts';
import type { OfficialClient } from '../support/clients/official-client.ts';
import { CLIENT_STEPS } from '../support/clients/official-client-steps.ts';
import { OFFICIAL_CLIENTS } from '../support/clients/official-clients.ts';
import { startReplicas } from '../support/gateway/replicas.ts';
import { useShared } from '../support/lifetimes.ts';

const own = createClientTestCatalog();

const replicas = useShared(() => startReplicas({ catalog: own.catalog }));

test.for(OFFICIAL_CLIENTS.map((row) => [row.title, row] as const))(
  '§2.1 official client %s: logs in once and takes every step over three replicas, before and after a restart of all',
  async ([, row]) => {
    const client = await row.connect(new URL(`${replicas.baseUrl}/mcp`));
    for (const [, take] of CLIENT_STEPS) await take(client, row, own);
    await replicas.restart();
    await calls(client);
    expect(client.memory.saved.authorizations).toHaveLength(1);
    expect(client.sent.filter((line) => line.endsWith(' 401'))).toHaveLength(1);
    await client.close();
  },
);

/** On each replica. */
async function calls(client: OfficialClient): Promise<void> {
  const since = replicas.served.length;
  for (const _replica of [0, 1, 2]) {
    const { content } = await client.call('who-am-i');
    expect(content).toEqual([{ type: 'text', text: 'ada' }]);
  }
  const served = replicas.served.slice(since).sort();
  expect(served).toEqual(['POST /mcp 0', 'POST /mcp 1', 'POST /mcp 2']);
}
