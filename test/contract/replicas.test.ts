// Messages between replicas over each kind of store: in order, also while the key is not there yet.
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { isReplicaMessage } from '../../src/mcp/session/sessions.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { buildChannelName } from '../../src/store/keys.ts';
import { openStore } from '../../src/store/open.ts';
import { createReplicas } from '../../src/store/replicas/replicas.ts';
import { createReplicaSeal } from '../../src/store/seal/secrets.ts';
import { noMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { collectLog } from '../support/gateway/log.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { startRedis } from '../support/stores/redis.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { subscribers } from './subscribers.ts';

const BIG = 'x'.repeat(100_000);

async function openReplica(env: Readonly<Record<string, string>>) {
  const config = loadConfig({ AUTH_REQUIRED: 'false', ...env });
  const { keyPrefix } = config.mcp.sessions;
  const { log } = collectLog();
  const store = await openStore(config, { clock: systemClock, log });
  const replicas = createReplicas(
    {
      store,
      getSeal: createReplicaSeal(keyPrefix, { store, clock: systemClock }, undefined),
      clock: systemClock,
      log,
      metrics: noMetrics,
    },
    buildChannelName(keyPrefix),
    isReplicaMessage,
  );
  const heard: unknown[] = [];
  replicas.listen((message) => heard.push('id' in message && message.id));
  closeAfterTest(store);
  closeAfterTest(replicas);
  return { replicas, heard };
}

describe.each(['embedded', 'redis'])('replicas over %s', (kind) => {
  let listening: () => Promise<number>;

  async function environment(): Promise<Readonly<Record<string, string>>> {
    if (kind === 'redis') {
      const redis = closeAfterTest(await startRedis());
      const client = redis.client();
      listening = async () =>
        (await subscribers(client)).filter(({ channels }) => channels === 2).length;
      return { REDIS_URL: redis.url };
    }
    return { DATA_DIR: closeAfterTest(await createTemporaryFolder()).path };
  }

  test('§4.4 what is sent at once arrives in its order, from the very first on', async () => {
    const env = await environment();
    const one = await openReplica(env);
    const other = kind === 'redis' ? await openReplica(env) : one;
    if (kind === 'redis') await expect.poll(listening).toBe(2);
    const ids = Array.from({ length: 300 }, (_, at) => at);
    // Sizes and ways differ; the order of each way must not.
    const sent = ids.map((id) =>
      one.replicas.send(
        id % 3 === 0
          ? { about: 'answer', sessionId: 's', id: String(id), result: BIG }
          : { about: 'cancelled', sessionId: 's', id },
        id % 2 === 0 ? other.replicas.ownName : undefined,
      ),
    );
    await Promise.all(sent);
    await expect.poll(() => other.heard.length).toBe(300);
    expect(other.heard.map(Number)).toEqual(ids);
  });

  test('§4.4 after close nothing is handed on', async () => {
    const one = await openReplica(await environment());
    const sending = one.replicas.send({ about: 'cancelled', sessionId: 's', id: 1 });
    one.replicas.close();
    await sending;
    await one.replicas.send({ about: 'cancelled', sessionId: 's', id: 2 });
    await new Promise((resolve) => setImmediate(resolve));
    expect(one.heard).toEqual([]);
  });
});
