// What the project has set itself for each way to run Postern, and what a run says about it.
import { CONTESTANTS } from './contestants.ts';
import { computeRatio, type Measure } from './results.ts';
import type { Series } from './rounds.ts';

export interface Goal {
  readonly target: string;
  /** Undefined when what it needs was not measured. */
  readonly found: number | undefined;
  readonly isReached: boolean;
}

/** The goals of one contestant, in the order of GOAL_TITLES. */
export interface GoalRow {
  readonly contestant: string;
  readonly label: string;
  readonly goals: readonly Goal[];
}

export const GOAL_TITLES = [
  'CPU, 32 connections',
  'p99, 32 connections',
  'p50, 1 connection',
  'CPU, better MCP library',
  'CPU, gateways elsewhere',
] as const;

/** CPU per request divided by the floor's, measured on the same work elsewhere: lower is better. */
export const PEERS = [
  { name: 'agentgateway', ratio: 2.5 },
  { name: 'the official Go SDK', ratio: 2.2 },
  { name: 'mcp-auth-proxy', ratio: 2.2 },
  { name: 'mcp-go', ratio: 1.3 },
  { name: 'rmcp with axum (Rust)', ratio: 0.76 },
] as const;

/** With every signature verified below all peers but rmcp, with signatures remembered below all. */
const BEST_PEER = { verified: 1.3, remembered: 0.76 } as const;

/** The least CPU of the yardstick divided by ours. */
const CPU_TARGETS = [
  { era: 'redis-session', yardstick: 'floor', verified: 1, remembered: 1.6 },
  { era: 'redis-stateless', yardstick: 'floor', verified: 1.1, remembered: 1.9 },
  { era: 'embedded-session', yardstick: 'bare', verified: 0.38, remembered: 0.65 },
  { era: 'embedded-stateless', yardstick: 'bare', verified: 0.38, remembered: 0.65 },
] as const;

const CONNECTIONS = 32;

/** Those that were measured. */
export function judgeGoals(series: readonly Series[]): readonly GoalRow[] {
  const measured = new Set(series.map(({ contestant }) => contestant));
  return CPU_TARGETS.flatMap(({ era, yardstick, ...targets }) =>
    (['verified', 'remembered'] as const).map((mode) => {
      const contestant = `${era}-${mode}`;
      const label = CONTESTANTS.find(({ name }) => name === contestant)?.label ?? contestant;
      const best = BEST_PEER[mode];
      const toFloor = (measure: Measure, connections = CONNECTIONS) =>
        computeRatio(series, { of: contestant, by: 'floor', measure, connections });
      const cpuOf = (of: string) =>
        computeRatio(series, {
          of,
          by: contestant,
          measure: 'cpuMicroseconds',
          connections: CONNECTIONS,
        });
      return {
        contestant,
        label,
        goals: [
          judgeAtLeast(targets[mode], cpuOf(yardstick), ` × ${yardstick}`),
          judgeAtMost(1, toFloor('p99Ms'), ' × floor'),
          judgeAtMost(1.2, toFloor('p50Ms', 1), ' × floor'),
          mode === 'verified'
            ? NO_GOAL
            : judgeAtLeast(4, findLess(cpuOf('sdk'), cpuOf('fastmcp')), ' times ours'),
          judgeAtMost(best, toFloor('cpuMicroseconds'), ' × floor'),
        ],
      };
    }),
  ).filter(({ contestant }) => measured.has(contestant));
}

const NO_GOAL: Goal = { target: '', found: undefined, isReached: false };

const judgeAtLeast = (wanted: number, found: number | undefined, unit: string): Goal => ({
  target: `≥ ${wanted}${unit}`,
  found,
  isReached: found !== undefined && found >= wanted,
});

export const judgeAtMost = (wanted: number, found: number | undefined, unit: string): Goal => ({
  target: `≤ ${wanted}${unit}`,
  found,
  isReached: found !== undefined && found <= wanted,
});

const findLess = (one: number | undefined, other: number | undefined) =>
  one === undefined || other === undefined ? undefined : Math.min(one, other);

/** Such as `0.47 (≥ 1 × floor) MISSED`; empty where there is nothing to say. */
export function renderGoal({ target, found, isReached }: Goal): string {
  if (found === undefined) return '';
  return `${found.toFixed(2)} (${target}) ${isReached ? 'reached' : 'missed'}`;
}
