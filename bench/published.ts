// The results that docs/benchmarks.md shows, raw, so that the page can be written again from them.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import type { GrowthResult } from './growth/measure-growth.ts';
import type { Machine } from './machine.ts';
import type { MemoryResult } from './measure-memory.ts';
import type { StartResult } from './measure-start.ts';
import type { StreamsResult } from './measure-streams.ts';
import type { ProfileResult } from './profile.ts';
import type { Way } from './relay/ways.ts';
import type { Figures } from './results.ts';
import type { Plan, Series } from './rounds.ts';
import type { CallersRow } from './scaling/measure-callers.ts';
import type { DeploymentResult } from './scaling/measure-deployments.ts';
import type { ModeResult } from './scaling/measure-modes.ts';
import type { HotWindowResult, RedisCostRow } from './scaling/measure-redis.ts';

export interface Published {
  readonly calls?: CallResults;
  readonly growth?: GrowthResults;
  readonly memory?: MemoryResults;
  readonly streams?: StreamsResults;
  readonly relay?: RelayResults;
  readonly relayProfile?: RelayProfileResults;
  readonly start?: StartResults;
  readonly profile?: ProfileResults;
  readonly nodes?: NodeResults;
  readonly scaling?: Partial<ScalingResults>;
}

export interface CallResults {
  readonly machine: Machine;
  readonly plan: Plan;
  readonly series: readonly Series[];
  /** By the name of the contestant. */
  readonly promotedKb: Readonly<Record<string, number>>;
}

/** Rounds of one contestant with answers of one size. */
export interface RelayRow extends Series {
  readonly way: Way;
  readonly size: string;
}

export interface RelayResults {
  readonly machine: Machine;
  readonly plan: Plan;
  readonly rows: readonly RelayRow[];
}

export interface GrowthResults {
  readonly machine: Machine;
  readonly plan: Plan;
  readonly results: readonly GrowthResult[];
}

export interface MemoryResults {
  readonly machine: Machine;
  readonly results: readonly MemoryResult[];
}

export interface StreamsResults {
  readonly machine: Machine;
  readonly results: readonly StreamsResult[];
}

export interface StartResults {
  readonly machine: Machine;
  readonly results: readonly StartResult[];
}

export interface ProfileResults {
  readonly machine: Machine;
  readonly results: readonly ProfileResult[];
}

/** Of a call with an answer of one size. */
export interface RelayProfile extends ProfileResult {
  readonly size: string;
}

export interface RelayProfileResults {
  readonly machine: Machine;
  readonly results: readonly RelayProfile[];
}

/** One contestant on one version of Node.js. */
export interface NodeResult extends Figures {
  readonly version: string;
  /** Its CPU per request divided by that on the first version, in the same round. */
  readonly cpuRatio?: number;
}

export interface NodeResults {
  readonly machine: Machine;
  readonly plan: Plan;
  readonly results: readonly NodeResult[];
  /** Milliseconds from the start to the first answer of Postern with Redis, by version: the median. */
  readonly starts: Readonly<Record<string, number>>;
}

export interface ScalingResults {
  readonly machine: Machine;
  readonly apart: readonly DeploymentResult[];
  readonly shared: readonly DeploymentResult[];
  readonly redis: readonly RedisCostRow[];
  readonly hotWindows: readonly HotWindowResult[];
  /** Measured by themselves, on another day than the rest, as `ways` are. */
  readonly relayed?: RelayedDeployments;
  readonly ways?: WaysResults;
}

/** One process and two whose calls go on to a server behind them. */
export interface RelayedDeployments {
  readonly machine: Machine;
  readonly deployments: readonly DeploymentResult[];
}

/** The ways of asking Redis, against each other. */
export interface WaysResults {
  readonly machine: Machine;
  readonly modes: readonly ModeResult[];
  readonly callers: readonly CallersRow[];
}

const FILE = new URL('../docs/assets/benchmarks.json', import.meta.url);

export function readPublished(): Published {
  return JSON.parse(readFileSync(FILE, 'utf8'));
}

/** Replaces one part of the results, and writes the page anew. */
export function publish(part: Published): void {
  const text = JSON.stringify({ ...readPublished(), ...part }, roundNumbers, 1);
  // A round is one line: the file is read by people, too.
  const lines = text.replace(
    /\{\n\s+("requests"[^}]*?)\n\s+\}/g,
    (_, members: string) => `{ ${members.replace(/\n\s+/g, ' ')} }`,
  );
  writeFileSync(FILE, `${lines}\n`);
  execFileSync('npm', ['run', '--silent', 'docs'], { stdio: 'inherit' });
}

const roundNumbers = (_key: string, value: unknown) =>
  typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value;
