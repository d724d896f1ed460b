// A primary is lost and a replica takes its place: Redis Cluster, and Sentinel.
import { startRedisSentinel } from '../../../test/support/stores/redis-sentinel.ts';
import { checkAtLeast, checkAtMost, type Fault } from '../fault.ts';
import { measureRecovery, measureWholeRecovery } from '../recovery.ts';
import { finishCalls, startCalls } from '../servers/redis.ts';
import { startReplicatedCluster } from '../servers/redis-cluster.ts';
import type { Stage } from '../stage.ts';

/**
 * Redis answers before its replica has what was written: what was opened or ended in the last moment
 * may not be there after a fail-over, and nobody can say.
 */
const REPLICATION_MS = 1000;

const cluster: Fault = {
  name: 'cluster-primary-lost',
  title: 'One of three primaries of a Redis Cluster is killed; its replica takes over.',
  figure:
    'Meanwhile calls of the other primaries go on; good again within 2 s of the fail-over, no session lost.',
  async run(stage) {
    const redis = await startReplicatedCluster(stage);
    const over = await startCalls(stage, redis.url);
    const { client } = over;
    await stage.pause(1000);
    client.allow('store');
    client.forgetRecent(REPLICATION_MS);
    const [primary] = redis.nodes;
    await primary?.kill();
    const goodBefore = client.tally.count('good');
    const callsBefore = client.tally.calls;
    await waitUntil(stage, redis.hasFailedOver);
    const share = (client.tally.count('good') - goodBefore) / (client.tally.calls - callsBefore);
    const recoveryMs = await measureWholeRecovery(stage, client);
    return finishCalls(over, recoveryMs, [
      checkAtLeast('good answers meanwhile', share * 100, 30, '%'),
      checkAtMost('slowest answer', client.tally.slowestMs, 500),
    ]);
  },
};

const sentinel: Fault = {
  name: 'sentinel-primary-lost',
  title: 'The primary that three sentinels watch is killed; its replica takes over.',
  figure: 'Good again within 2 s of the fail-over, no session lost.',
  async run(stage) {
    const redis = stage.closeAtEnd(await startRedisSentinel());
    const [primary, replica] = redis.servers;
    const over = await startCalls(stage, redis.url);
    const { client } = over;
    await stage.pause(1000);
    client.allow('store');
    client.forgetRecent(REPLICATION_MS);
    await primary.kill();
    const promoted = replica.client();
    await waitUntil(stage, async () =>
      (await promoted.info('replication')).includes('role:master'),
    );
    const recoveryMs = await measureRecovery(stage, client);
    return finishCalls(over, recoveryMs, [
      checkAtMost('slowest answer', client.tally.slowestMs, 500),
    ]);
  },
};

const PATIENCE_MS = 30_000;

async function waitUntil(stage: Stage, condition: () => Promise<boolean>): Promise<void> {
  const start = performance.now();
  while (!(await condition())) {
    if (performance.now() - start > PATIENCE_MS) throw new Error('No replica has taken over');
    await stage.pause(20);
  }
}

export const failOverFaults: readonly Fault[] = [cluster, sentinel];
