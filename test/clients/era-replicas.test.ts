// The same steps over three replicas: each request goes to the next, so that an answer to a
// question, and a cancellation, come to another one than the call.
import { expect, test } from 'vitest';
import { createEraCatalog } from '../support/catalogs/era-catalog.ts';
import { ERA_CLIENTS, type EraClient } from '../support/clients/era-clients.ts';
import { ERA_STEPS } from '../support/clients/era-steps.ts';
import { startReplicas } from '../support/gateway/replicas.ts';
import { useShared } from '../support/lifetimes.ts';

const own = createEraCatalog();

const replicas = useShared(() => startReplicas({ catalog: own.catalog }));

test.for(ERA_CLIENTS.map((row) => [row.title, row] as const))(
  '§2.1 official client %s: logs in once and takes every step over three replicas, before and after a restart of all',
  async ([, row]) => {
    const client = await row.connect(new URL(`${replicas.baseUrl}/mcp`));
    for (const [, take] of ERA_STEPS) await take(client, row, own);
    await replicas.restart();
    await calls(client);
    expect(client.memory.saved.authorizations).toHaveLength(1);
    expect(client.sent.filter((line) => line.endsWith(' 401'))).toHaveLength(1);
    await client.close();
  },
);

/** On each replica. */
async function calls(client: EraClient): Promise<void> {
  const since = replicas.served.length;
  for (const _replica of [0, 1, 2]) {
    const { content } = await client.call('who-am-i');
    expect(content).toEqual([{ type: 'text', text: 'ada' }]);
  }
  const served = replicas.served.slice(since).sort();
  expect(served).toEqual(['POST /mcp 0', 'POST /mcp 1', 'POST /mcp 2']);
}
