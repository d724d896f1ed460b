// npm run bench -- growth: whether a call costs the same when there is much of something.
import { type Contestant, runPostern } from '../contestants.ts';
import { describeMachine } from '../machine.ts';
import type { Options } from '../options.ts';
import { publish } from '../published.ts';
import { computeFigures, computeRatio, type Figures } from '../results.ts';
import { prepareRunner, runRounds } from '../rounds.ts';
import { openTestbed } from '../testbed.ts';
import { GROWTH_CASES, type GrowthCase, type Side, type StoreKind } from './cases.ts';
import { fillStore } from './fill-store.ts';

export interface GrowthResult {
  readonly label: string;
  readonly store: StoreKind;
  readonly small: Figures;
  readonly grown: Figures;
  /** Medians of the grown service's figure divided by the small one's in the same round. */
  readonly cpuRatio: number;
  readonly p99Ratio: number;
}

/** A grown service may need this much of what a small one needs. */
export const MOST_GROWTH = 1.1;

const CONNECTIONS = 32;
const WARM_UP_SECONDS = 3;

export async function measureGrowth({ only, plan, isPublished }: Options): Promise<void> {
  const machine = describeMachine();
  const results: GrowthResult[] = [];
  for (const growthCase of GROWTH_CASES) {
    if (only.length > 0 && !only.includes(growthCase.name)) continue;
    for (const store of growthCase.stores) {
      const result = await measureCase(growthCase, store, plan);
      results.push(result);
      printResult(result);
    }
  }
  if (isPublished) publish({ growth: { machine, plan, results } });
}

async function measureCase(
  growthCase: GrowthCase,
  store: StoreKind,
  plan: Options['plan'],
): Promise<GrowthResult> {
  const testbed = await openTestbed();
  try {
    const prepare = (name: string, side: Side) => {
      const { args = [], settings, fill, variedHeader } = side;
      const contestant: Contestant = {
        name,
        label: name,
        era: 'session',
        command: runPostern(store, { ...growthCase.settings, ...settings }, args),
        isQuick: false,
      };
      return prepareRunner(testbed, contestant, {
        warmUpSeconds: growthCase.warmUpSeconds ?? WARM_UP_SECONDS,
        ...(fill && { prepare: (env) => fillStore(env, fill) }),
        ...(variedHeader && { variedHeader }),
      });
    };
    const small = await prepare('small', growthCase.small);
    const grown = await prepare('grown', growthCase.grown);
    const release = await growthCase.grown.occupy?.(new URL(grown.call.url).origin);
    const series = await runRounds(testbed, [small, grown], {
      ...plan,
      connections: [CONNECTIONS],
    });
    release?.();
    const [smallSeries, grownSeries] = series;
    if (smallSeries === undefined || grownSeries === undefined) throw new Error('No rounds');
    const flaw = smallSeries.flaw ?? grownSeries.flaw;
    if (flaw !== undefined) throw new Error(`${growthCase.name}: ${flaw}`);
    const ratio = (measure: 'cpuMicroseconds' | 'p99Ms') =>
      computeRatio(series, { of: 'grown', by: 'small', connections: CONNECTIONS, measure }) ??
      Number.NaN;
    return {
      label: growthCase.label,
      store,
      small: computeFigures(smallSeries),
      grown: computeFigures(grownSeries),
      cpuRatio: ratio('cpuMicroseconds'),
      p99Ratio: ratio('p99Ms'),
    };
  } finally {
    await testbed.close();
  }
}

function printResult({ label, store, small, grown, cpuRatio, p99Ratio }: GrowthResult): void {
  const describe = (name: string, ratio: number, from: number, to: number) =>
    `${name} ${from.toPrecision(3)} → ${to.toPrecision(3)}, × ${ratio.toFixed(2)} ${ratio <= MOST_GROWTH ? 'reached' : 'missed'}`;
  const cpu = describe('CPU µs', cpuRatio, small.cpuMicroseconds, grown.cpuMicroseconds);
  const p99 = describe('p99 ms', p99Ratio, small.p99Ms, grown.p99Ms);
  const memory = `${Math.round(small.residentMb)} → ${Math.round(grown.residentMb)} MB`;
  console.log(`${label} (${store}): ${cpu}; ${p99}; ${memory}`);
}
