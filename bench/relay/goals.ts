// What the project has set itself for calls that are passed on, and what a run says about it.
import { type Goal, judgeAtMost } from '../goals.ts';
import type { RelayRow } from '../published.ts';
import { computeRatio, type Measure } from '../results.ts';
import { FLOOR, TOOLS } from './contestants.ts';

interface RelayGoal {
  readonly title: string;
  readonly size: string;
  readonly of: string;
  readonly by: string;
  readonly measure: Measure;
  readonly connections: number;
  readonly atMost: number;
}

const toFloor = (
  title: string,
  size: string,
  atMost: number,
  measure: Measure = 'cpuMicroseconds',
  connections = 32,
): RelayGoal => ({ title, size, of: 'embedded', by: FLOOR, measure, connections, atMost });

const GOALS: readonly RelayGoal[] = [
  toFloor('CPU, 1 KB', '1 KB', 1),
  toFloor('CPU, SSE', 'SSE', 1),
  toFloor('CPU, 100 KB', '100 KB', 1.3),
  toFloor(`CPU, list of ${TOOLS}`, `list of ${TOOLS}`, 0.6),
  {
    ...toFloor('CPU, 1 KB, Redis', '1 KB', 1.4),
    of: 'redis',
    by: 'embedded',
  },
  toFloor('p50, 1 KB, 1 connection', '1 KB', 1.2, 'p50Ms', 1),
  toFloor('p99, 1 KB, 1 connection', '1 KB', 2, 'p99Ms', 1),
  toFloor('p99, 1 KB, 32 connections', '1 KB', 2, 'p99Ms'),
];

export function judgeRelayGoals(
  rows: readonly RelayRow[],
): readonly { readonly title: string; readonly goal: Goal }[] {
  return GOALS.map(({ title, size, by, atMost, ...ratio }) => ({
    title,
    goal: judgeAtMost(
      atMost,
      computeRatio(
        rows.filter((row) => row.size === size),
        { ...ratio, by },
      ),
      ` of ${by === FLOOR ? 'the floor’s' : by}`,
    ),
  }));
}
