// What the project has set itself for calls that are passed on, and what a run says about it.
import { type Goal, judgeAtMost } from '../goals.ts';
import type { RelayRow } from '../published.ts';
import { computeRatio, type Measure } from '../results.ts';
import { FLOOR } from './contestants.ts';
import { ERAS, LIST, RELAY_SIZES, SMALL_CALL, type Way } from './ways.ts';

interface RelayGoal {
  readonly way: Way;
  readonly size: string;
  readonly of: string;
  readonly by: string;
  readonly measure: Measure;
  readonly connections: number;
  readonly atMost: number;
}

const createGoal = (changes: Pick<RelayGoal, 'way' | 'of' | 'atMost'> & Partial<RelayGoal>) => ({
  size: SMALL,
  by: FLOOR,
  measure: 'cpuMicroseconds' as const,
  connections: 32,
  ...changes,
});

const SMALL = RELAY_SIZES.find(({ work }) => work === SMALL_CALL)?.name ?? '';

const GOALS: readonly RelayGoal[] = [
  ...ERAS.flatMap((way) =>
    ['embedded', 'redis'].flatMap((of) => [
      createGoal({ way, of, atMost: of === 'redis' ? 0.95 : 1 }),
      ...['1 KB SSE', '100 KB', '100 KB SSE'].map((size) =>
        createGoal({ way, size, of, atMost: 1 }),
      ),
    ]),
  ),
  createGoal({ way: 'session', size: LIST.name, of: 'embedded', atMost: 0.6 }),
  createGoal({
    way: 'session',
    size: LIST.name,
    of: 'embedded-rules',
    by: 'embedded',
    atMost: 1.2,
  }),
  createGoal({ way: 'stdio', of: 'embedded', atMost: 1.3 }),
  createGoal({ way: 'stdio', size: '100 KB', of: 'embedded', atMost: 1.3 }),
  createGoal({ way: 'session', of: 'embedded', measure: 'p50Ms', connections: 1, atMost: 1.2 }),
  createGoal({ way: 'session', of: 'embedded', measure: 'p99Ms', connections: 1, atMost: 2 }),
  createGoal({ way: 'session', of: 'embedded', measure: 'p99Ms', atMost: 2 }),
];

const MEASURES: Partial<Readonly<Record<Measure, string>>> = {
  cpuMicroseconds: 'CPU',
  p50Ms: 'p50',
  p99Ms: 'p99',
};

/** `slack` times what the goals allow is allowed. */
export function judgeRelayGoals(
  rows: readonly RelayRow[],
  slack = 1,
): readonly { readonly title: string; readonly goal: Goal }[] {
  return GOALS.map(({ way, size, by, atMost, ...ratio }) => {
    const { of, measure, connections } = ratio;
    const load = connections === 1 ? ', 1 connection' : '';
    return {
      title: `${MEASURES[measure]}, ${way}, ${size}, ${of}${load}`,
      goal: judgeAtMost(
        atMost * slack,
        computeRatio(
          rows.filter((row) => row.way === way && row.size === size),
          { ...ratio, by },
        ),
        ` × ${by === FLOOR ? 'floor' : by}`,
      ),
    };
  });
}
