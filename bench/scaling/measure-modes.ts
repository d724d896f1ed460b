// What a call costs gateway and Redis in each of the ways of asking Redis, round by round against each other.
import { Redis } from 'ioredis';
import { computeMedian } from '../results.ts';
import type { Plan } from '../rounds.ts';
import { openTestbed } from '../testbed.ts';
import {
  allowBothCores,
  allowOnlyLoadCore,
  computeMedians,
  type Deployment,
  type DeploymentRound,
  ONE_PROCESS,
  type OpenDeployment,
  openDeployment,
  openOne,
} from './measure-deployments.ts';
import { createRedisMeter } from './redis-meter.ts';
import { STORE_MODES, type StoreMode } from './store-modes.ts';

export interface ModeResult extends DeploymentRound {
  readonly deployment: string;
  readonly mode: StoreMode['name'];
  readonly connections: number;
  /** The median of what the gateway took in a round, divided by what it took in `log` in the same round. */
  readonly gatewayRatio: number;
  /** The same of Redis. */
  readonly redisRatio: number;
}

/** A deployment but for the mode, and with how many connections it is measured. */
interface ModeCase extends Pick<Deployment, 'name' | 'placement' | 'users'> {
  /** As `--only` takes it. */
  readonly part: string;
  readonly connections: readonly number[];
  readonly settings: Readonly<Record<string, string>>;
}

export const MANY_USERS = 'one process, a thousand users';
export const EIGHT_PROCESSES = '`WORKERS=8`';

const CASES: readonly ModeCase[] = [
  {
    part: 'modes',
    name: ONE_PROCESS,
    placement: 'apart',
    connections: [1, 8, 32, 128],
    settings: {},
  },
  {
    part: 'modes-users',
    name: MANY_USERS,
    placement: 'apart',
    connections: [32],
    users: 1000,
    settings: { TRUST_PROXY: 'all' },
  },
  {
    part: 'modes-workers',
    name: EIGHT_PROCESSES,
    placement: 'shared',
    connections: [128],
    settings: { WORKERS: '8' },
  },
];

/** Those parts that are asked for; the other results stay as they were. */
export async function measureModes(
  plan: Plan,
  isAsked: (part: string) => boolean,
  before: readonly ModeResult[],
): Promise<readonly ModeResult[]> {
  const results: ModeResult[] = [];
  for (const one of CASES) {
    const known = before.filter(({ deployment }) => deployment === one.name);
    results.push(...(isAsked(one.part) ? await measureCase(one, plan) : known));
  }
  return results;
}

export const MODE_PARTS: readonly string[] = CASES.map(({ part }) => part);

async function measureCase(one: ModeCase, plan: Plan): Promise<readonly ModeResult[]> {
  const { name, placement, users, settings } = one;
  const testbed = await openTestbed();
  const client = new Redis(testbed.redisUrl);
  const opened: { readonly mode: StoreMode; readonly deployment: OpenDeployment }[] = [];
  try {
    const meter = createRedisMeter(client);
    if (placement === 'shared') await allowBothCores(client);
    for (const mode of STORE_MODES) {
      const deployment = {
        name: `${name}, ${mode.name}`,
        placement,
        connections: 32,
        ...(users !== undefined && { users }),
        open: (start: Parameters<Deployment['open']>[0]) =>
          openOne(start, { ...settings, ...mode.settings }),
      };
      opened.push({ mode, deployment: await openDeployment(testbed, deployment, meter) });
    }
    const results: ModeResult[] = [];
    for (const connections of one.connections) {
      const series = opened.map(({ mode }) => ({ mode, rounds: [] as DeploymentRound[] }));
      for (let round = 0; round < plan.rounds; round++) {
        for (let place = 0; place < opened.length; place++) {
          const at = (place + round) % opened.length;
          const next = await opened[at]?.deployment.run(plan, connections);
          if (next !== undefined) series[at]?.rounds.push(next);
        }
      }
      const [yardstick] = series;
      for (const { mode, rounds } of series) {
        const computeRatio = (figure: 'gateway' | 'redis') =>
          computeMedian(
            rounds.map(
              (round, n) => round[figure] / (yardstick?.rounds[n]?.[figure] ?? Number.NaN),
            ),
          );
        results.push({
          deployment: name,
          mode: mode.name,
          connections,
          gatewayRatio: computeRatio('gateway'),
          redisRatio: computeRatio('redis'),
          ...computeMedians(rounds),
        });
      }
    }
    return results;
  } finally {
    for (const { deployment } of opened) await deployment.close();
    client.disconnect();
    await testbed.close();
    allowOnlyLoadCore();
  }
}
