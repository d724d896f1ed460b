// A Redis Cluster of three primaries, each with a replica.
import type { Redis } from 'ioredis';
import { type RedisServer, startRedis } from '../../../test/support/stores/redis.ts';
import type { Stage } from '../stage.ts';

export interface ReplicatedCluster {
  readonly url: string;
  /** The first three are the primaries at the start. */
  readonly nodes: readonly RedisServer[];
  /** True if the replica of the first primary has taken over, as the second one sees it. */
  hasFailedOver(): Promise<boolean>;
}

const SLOTS = 16_384;
const PRIMARIES = 3;
/** After so long without an answer a primary counts as gone. */
const NODE_TIMEOUT_MS = 2000;

export async function startReplicatedCluster(stage: Stage): Promise<ReplicatedCluster> {
  const config = [
    'cluster-enabled yes',
    'cluster-require-full-coverage no',
    `cluster-node-timeout ${NODE_TIMEOUT_MS}`,
    'repl-diskless-sync-delay 0',
  ];
  const nodes: RedisServer[] = [];
  for (let at = 0; at < 2 * PRIMARIES; at += 1) {
    nodes.push(stage.closeAtEnd(await startRedis({ config })));
  }
  const clients = nodes.map((node) => node.client());
  const [first, second] = clients;
  const [firstNode] = nodes;
  if (!first || !second || !firstNode) throw new Error('The cluster has no nodes');

  for (const [at, client] of clients.slice(0, PRIMARIES).entries()) {
    const start = Math.floor((SLOTS * at) / PRIMARIES);
    const end = Math.floor((SLOTS * (at + 1)) / PRIMARIES) - 1;
    await client.call('CLUSTER', 'ADDSLOTSRANGE', start, end);
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', at + 1);
  }
  for (const { port } of nodes.slice(1)) await first.cluster('MEET', '127.0.0.1', port);
  await waitUntil(stage, clients, `cluster_known_nodes:${nodes.length}`);
  const ids = await Promise.all(clients.map((client) => client.call('CLUSTER', 'MYID')));
  for (const [at, client] of clients.slice(PRIMARIES).entries()) {
    await waitUntilKnown(stage, client, String(ids[at]));
    await client.call('CLUSTER', 'REPLICATE', String(ids[at]));
  }
  await waitUntil(stage, clients, 'cluster_state:ok');
  for (const client of clients.slice(PRIMARIES)) await waitUntilReplicated(stage, client);

  return {
    url: `${firstNode.url}?cluster=true`,
    nodes,
    async hasFailedOver() {
      const lines = String(await second.call('CLUSTER', 'NODES')).split('\n');
      const replica = lines.find((line) => line.includes(`:${nodes[PRIMARIES]?.port}@`));
      return replica !== undefined && /\bmaster\b/.test(replica);
    },
  };
}

async function waitUntil(stage: Stage, clients: readonly Redis[], word: string): Promise<void> {
  for (const client of clients) {
    while (!String(await client.cluster('INFO')).includes(word)) await stage.pause(50);
  }
}

async function waitUntilKnown(stage: Stage, client: Redis, id: string): Promise<void> {
  while (!String(await client.call('CLUSTER', 'NODES')).includes(id)) await stage.pause(50);
}

async function waitUntilReplicated(stage: Stage, client: Redis): Promise<void> {
  while (!(await client.info('replication')).includes('master_link_status:up')) {
    await stage.pause(50);
  }
}
