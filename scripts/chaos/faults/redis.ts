// Redis that is gone, frozen, full, read-only, or has forgotten its scripts.
import { checkAtMost, checkFact, type Fault, type Outcome } from '../fault.ts';
import { measureReadiness, measureRecovery } from '../recovery.ts';
import { finishCalls, type GatewayOverRedis, startOverRedis } from '../servers/redis.ts';
import type { Stage } from '../stage.ts';

const killed: Fault = {
  name: 'redis-killed',
  title: 'Redis is killed and started again every 10 s, for 10 minutes.',
  figure: 'Every answer within 500 ms, the first good one within 2 s of the start.',
  async run(stage) {
    const over = await startOverRedis(stage);
    const phaseMs = stage.isShort ? 700 : 5000;
    let recoveryMs = 0;
    for (let round = 0; round < stage.choose({ full: 60, short: 2 }); round += 1) {
      await stage.pause(phaseMs);
      over.client.allow('store');
      await over.redis.kill();
      await stage.pause(phaseMs);
      await over.redis.restart();
      recoveryMs = Math.max(recoveryMs, await measureRecovery(stage, over.client));
    }
    return finishCalls(over, recoveryMs, [checkAtMost('slowest answer', slowest(over), 500)]);
  },
};

const frozen: Fault = {
  name: 'redis-frozen',
  title: 'Redis is frozen for 30 s (SIGSTOP).',
  figure: 'p99 within 300 ms; readiness follows within 2 s both ways.',
  async run(stage) {
    const over = await startOverRedis(stage);
    const { redis, client, gateway } = over;
    await stage.pause(500);
    client.allow('store');
    redis.freeze();
    const notReadyMs = await measureReadiness(stage, gateway.url, false);
    await stage.pause(stage.choose({ full: 30_000, short: 1500 }));
    redis.thaw();
    const [recoveryMs, readyMs] = await Promise.all([
      measureRecovery(stage, client),
      measureReadiness(stage, gateway.url, true),
    ]);
    return finishCalls(over, recoveryMs, [
      checkAtMost('p99', client.tally.percentile(0.99), 300),
      checkAtMost('not ready after the freeze', notReadyMs, 2000),
      checkAtMost('ready after the thaw', readyMs, 2000),
    ]);
  },
};

const full: Fault = {
  name: 'redis-full',
  title: 'Redis reaches maxmemory with noeviction, then gets more memory.',
  figure: 'Refused at once, good again at once.',
  run: (stage) => withSetting(stage, ['maxmemory', '1mb'], ['maxmemory', '0'], 'OOM'),
};

const readOnly: Fault = {
  name: 'redis-read-only',
  title: 'Redis takes no writes (min-replicas-to-write without a replica), then does again.',
  figure: 'Refused at once, good again at once.',
  run: (stage) =>
    withSetting(
      stage,
      ['min-replicas-to-write', '1'],
      ['min-replicas-to-write', '0'],
      'NOREPLICAS',
    ),
};

const demoted: Fault = {
  name: 'redis-demoted',
  title: 'Redis becomes a replica of a server that is not there (READONLY), then a primary again.',
  figure: 'Refused at once, the first good answer within 2 s.',
  async run(stage) {
    const over = await startOverRedis(stage);
    const admin = over.redis.client();
    await stage.pause(500);
    over.client.allow('store');
    await admin.call('REPLICAOF', '127.0.0.1', '1');
    await stage.pause(stage.choose({ full: 20_000, short: 1000 }));
    await admin.call('REPLICAOF', 'NO', 'ONE');
    const recoveryMs = await measureRecovery(stage, over.client);
    return finishCalls(over, recoveryMs, [checkAtMost('slowest answer', slowest(over), 500)]);
  },
};

const scriptsFlushed: Fault = {
  name: 'redis-script-flush',
  title: 'SCRIPT FLUSH ten times a second.',
  figure: 'Nothing is refused.',
  async run(stage) {
    const over = await startOverRedis(stage);
    const admin = over.redis.client();
    for (let times = 0; times < stage.choose({ full: 200, short: 10 }); times += 1) {
      await stage.pause(100);
      await admin.script('FLUSH');
    }
    return finishCalls(over, await measureRecovery(stage, over.client), []);
  },
};

/** Redis answers, but with an error for whatever writes. */
async function withSetting(
  stage: Stage,
  setting: readonly [string, string],
  after: readonly [string, string],
  word: string,
): Promise<Outcome> {
  const over = await startOverRedis(stage);
  const admin = over.redis.client();
  await stage.pause(500);
  over.client.allow('store');
  await admin.config('SET', ...setting);
  await stage.pause(stage.choose({ full: 20_000, short: 1000 }));
  const saysWhy = over.gateway.stdout.includes(word);
  await admin.config('SET', ...after);
  const recoveryMs = await measureRecovery(stage, over.client);
  return finishCalls(over, recoveryMs, [
    checkAtMost('slowest answer', slowest(over), 500),
    // Only where the fault took hold: a Redis with room left in the short form refuses nothing.
    checkFact(`the log says why (${word})`, saysWhy || over.client.tally.count('refused') === 0),
  ]);
}

const slowest = ({ client }: GatewayOverRedis) => client.tally.slowestMs;

export const redisFaults: readonly Fault[] = [
  killed,
  frozen,
  full,
  readOnly,
  demoted,
  scriptsFlushed,
];
