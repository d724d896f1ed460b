// §15.1: ids that somebody made up, and bounds on who comes back.
import { randomUUID } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { createWaitingCatalog } from '../../support/catalogs/waiting-catalog.ts';
import type { EventStream } from '../../support/clients/event-stream.ts';
import { openClient, type SessionClient } from '../../support/clients/session-client.ts';
import { startTwoReplicas, type TwoReplicas } from '../../support/gateway/two-replicas.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const { catalog, calls } = createWaitingCatalog();
let replicas: TwoReplicas;

beforeEach(async () => {
  calls.clear();
  replicas = closeAfterTest(
    await startTwoReplicas({
      env: { MCP_STREAMS: 'true' },
      deps: { catalog },
    }),
  );
});

/** That the client's own id looks like, of a stream that never was, at a replica that never was. */
async function createForge(client: SessionClient): Promise<() => string> {
  const stream = await client.watch();
  stream.hangUp();
  const primer = (await client.watch())[Symbol.asyncIterator]();
  const { value } = await primer.next();
  const [, tag = ''] = (value?.id ?? '').split('.');
  return () => `${randomUUID()}.${tag}.${randomUUID().slice(-12)}.0`;
}

const hangUpAll = (streams: readonly EventStream[]) => {
  for (const stream of streams) stream.hangUp();
};

test('§15.1 a session that waits for as much as it may still gets its own stream, and is told that all may have changed', async () => {
  const client = await openClient(replicas.one);
  const forge = await createForge(client);
  const waiting = await Promise.all(
    Array.from({ length: 50 }, () => client.watch({ 'last-event-id': forge() })),
  );
  expect(waiting.map(({ status }) => status)).toEqual(Array.from({ length: 50 }, () => 200));
  const stream = await client.watch({ 'last-event-id': `${forge()}.g` });
  expect(await stream.next()).toMatchObject({ method: 'notifications/tools/list_changed' });
  hangUpAll([...waiting, stream]);
}, 60_000);

test('§15.1 one user with many sessions does not take the place of all', async () => {
  const clients = await Promise.all(Array.from({ length: 5 }, () => openClient(replicas.one)));
  const forges = await Promise.all(clients.map(createForge));
  // At once: nobody waits for long for a replica that does not answer.
  const waiting = await Promise.all(
    clients.flatMap((client, index) =>
      Array.from({ length: 45 }, () => client.watch({ 'last-event-id': forges[index]?.() ?? '' })),
    ),
  );
  const statuses = waiting.map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(200);
  expect(statuses.filter((status) => status === 503)).toHaveLength(25);
  hangUpAll(waiting);
}, 60_000);
