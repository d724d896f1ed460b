import type { Redis } from 'ioredis';
import { newCertificate, type RedisOptions, type RedisServer, startRedis } from './redis.ts';

export interface RedisCluster {
  readonly url: string;
  readonly nodes: readonly RedisServer[];
  close(): Promise<void>;
}

const SLOTS = 16_384;

/** Three primaries on loopback, without replicas. */
export async function startRedisCluster(options: RedisOptions = {}): Promise<RedisCluster> {
  // The nodes must trust one another, so they share a certificate.
  const tls = options.tls === true ? await newCertificate() : (options.tls ?? false);
  const config = [
    'cluster-enabled yes',
    'cluster-require-full-coverage no',
    ...(tls ? ['tls-cluster yes'] : []),
    ...(options.config ?? []),
  ];
  const nodes = await Promise.all([0, 1, 2].map(() => startRedis({ ...options, tls, config })));
  const clients = nodes.map((node) => node.client());
  for (const [at, client] of clients.entries()) {
    const range = [Math.floor((SLOTS * at) / 3), Math.floor((SLOTS * (at + 1)) / 3) - 1] as const;
    await client.call('CLUSTER', 'ADDSLOTSRANGE', ...range);
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', at + 1);
  }
  for (const { port } of nodes.slice(1)) await clients[0]?.cluster('MEET', '127.0.0.1', port);
  for (const client of clients) await until(async () => knowsAll(client));
  return {
    url: `${nodes[0]?.url}?cluster=true`,
    nodes,
    async close() {
      for (const node of nodes) await node.close();
    },
  };
}

async function knowsAll(client: Redis): Promise<boolean> {
  const info = String(await client.cluster('INFO'));
  return (
    info.includes('cluster_state:ok') &&
    info.includes('cluster_known_nodes:3') &&
    info.includes('cluster_size:3')
  );
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 15_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('The cluster did not come up');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
