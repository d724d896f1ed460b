// The way to Redis is slow, half open, or breaks.
import { checkAtLeast, checkAtMost, type Fault } from '../fault.ts';
import { measureRecovery } from '../recovery.ts';
import { finishCalls, startOverNetwork } from '../servers/redis.ts';
import type { NetworkBehaviour } from '../servers/tcp-proxy.ts';

interface NetworkRow {
  readonly name: string;
  readonly title: string;
  readonly behaviour: NetworkBehaviour;
  /** True if answers come in time, so that nothing may be refused. */
  readonly isInTime: boolean;
}

const ROWS: readonly NetworkRow[] = [
  {
    name: 'redis-far',
    title: 'Redis answers 20 ms later.',
    behaviour: { kind: 'latency', ms: 20 },
    isInTime: true,
  },
  {
    name: 'redis-slow',
    title: 'Redis answers 600 ms later, longer than a call may wait.',
    behaviour: { kind: 'latency', ms: 600 },
    isInTime: false,
  },
  {
    name: 'redis-trickling',
    title: 'What Redis says arrives a byte every 10 ms.',
    behaviour: { kind: 'trickle', bytes: 1, everyMs: 10 },
    isInTime: false,
  },
  {
    name: 'redis-half-open',
    title: 'Connections to Redis are accepted, and nothing is ever answered.',
    behaviour: { kind: 'silent' },
    isInTime: false,
  },
];

const misbehaving: readonly Fault[] = ROWS.map(({ name, title, behaviour, isInTime }) => ({
  name,
  title,
  figure: isInTime
    ? 'Nothing is refused.'
    : 'Every answer within 500 ms, the first good one within 2 s of the end.',
  async run(stage) {
    const over = await startOverNetwork(stage);
    const { network, client } = over;
    await stage.pause(500);
    if (!isInTime) client.allow('store');
    network.behave(behaviour);
    await stage.pause(stage.choose({ full: 30_000, short: 1500 }));
    network.behave({ kind: 'pass' });
    // Lost bytes never arrive: the gateway has to give up the connection.
    const recoveryMs = await measureRecovery(stage, client);
    return finishCalls(over, recoveryMs, [
      checkAtMost('slowest answer', client.tally.slowestMs, 500),
    ]);
  },
}));

const reset: Fault = {
  name: 'redis-reset',
  title: 'All connections to Redis are reset, every second.',
  figure: 'Only what was under way or comes within 200 ms is refused; nine of ten calls are good.',
  async run(stage) {
    const over = await startOverNetwork(stage);
    const { network, client } = over;
    await stage.pause(500);
    client.allow('store');
    for (let times = 0; times < stage.choose({ full: 30, short: 2 }); times += 1) {
      network.reset();
      await stage.pause(1000);
    }
    const share = client.tally.count('good') / client.tally.calls;
    const recoveryMs = await measureRecovery(stage, client);
    return finishCalls(over, recoveryMs, [
      checkAtLeast('good answers', share * 100, 90, '%'),
      checkAtMost('slowest answer', client.tally.slowestMs, 500),
    ]);
  },
};

export const networkFaults: readonly Fault[] = [...misbehaving, reset];
