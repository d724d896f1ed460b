// npm run bench -- start: from the start of the process to the first answer of /health, and of postern dev to its banner.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { freePort } from '../test/support/gateway/ports.ts';
import { runPostern } from './contestants.ts';
import { describeMachine } from './machine.ts';
import { findNodes, type NodeVersion } from './node-versions.ts';
import type { Options } from './options.ts';
import { publish } from './published.ts';
import { computeMedian } from './results.ts';
import { readCpuSecondsOfAll, SERVER_CORE, stopProcess } from './server-process.ts';
import { openTestbed, type Testbed } from './testbed.ts';

export interface StartResult {
  readonly store: 'redis' | 'embedded';
  /** Of Node.js. */
  readonly version?: string;
  readonly medianMs: number;
  readonly slowestMs: number;
  /** Of the process until the answer: steadier than the time where others use the machine. */
  readonly cpuMs?: number;
  /** The time divided by that of `node -e 0` in the same round: the median. Steadier where the speed of the machine changes. */
  readonly ratio?: number;
}

export const START_GOAL_MS = 250;
export const DEV_GOAL_MS = 1200;
export const STARTS = 10;

interface Start {
  readonly wallMs: number;
  /** Undefined for a process that ends: its system forgets it. */
  readonly cpuMs?: number;
}

/** What is started, by the words that tell of it. */
const CASES = {
  empty: 'node -e 0',
  redis: 'to the first /health (redis)',
  embedded: 'to the first /health (embedded)',
  dev: 'postern dev to its banner',
} as const;

type Case = keyof typeof CASES;
type Round = Readonly<Record<Case, Start>>;

export async function measureStart({ isPublished, nodes }: Options): Promise<void> {
  const machine = describeMachine();
  const testbed = await openTestbed();
  try {
    const versions = findNodes(nodes);
    const rounds = new Map(versions.map((node) => [node, [] as Round[]]));
    for (let n = 0; n < STARTS; n++)
      for (const node of versions) rounds.get(node)?.push(await startAll(testbed, node));
    const results: StartResult[] = [];
    for (const [node, starts] of rounds) {
      const { version } = node;
      console.log(`Node.js ${version}, medians of ${STARTS} starts by turns:`);
      print('empty', starts);
      for (const store of ['redis', 'embedded'] as const) {
        results.push({ store, version, ...summarize(store, starts) });
        print(store, starts, START_GOAL_MS);
      }
      print('dev', starts, DEV_GOAL_MS);
    }
    if (isPublished) publish({ start: { machine, results } });
  } finally {
    await testbed.close();
  }
}

/** One after the other, so that what changes the speed of the machine meets all of them alike. */
const startAll = async (testbed: Testbed, node: NodeVersion): Promise<Round> => ({
  empty: await startEmpty(node),
  redis: await startService(testbed, node, 'redis'),
  embedded: await startService(testbed, node, 'embedded'),
  dev: await startDev(testbed, node),
});

async function startEmpty({ program }: NodeVersion): Promise<Start> {
  const startedAt = performance.now();
  const child = spawn('taskset', ['-c', SERVER_CORE, program, '-e', '0'], { stdio: 'inherit' });
  await once(child, 'exit');
  return { wallMs: performance.now() - startedAt };
}

async function startService(
  testbed: Testbed,
  { program }: NodeVersion,
  store: StartResult['store'],
): Promise<Start> {
  const command = runPostern(store);
  const server = await testbed.start((surroundings) => ({ program, ...command(surroundings) }));
  const start = { wallMs: server.startMs, cpuMs: server.readCpuSeconds() * 1000 };
  await server.stop();
  return start;
}

/** In a folder of its own, where the development provider has to make its keys. On all cores, as developers have it. */
async function startDev({ folder }: Testbed, { program }: NodeVersion): Promise<Start> {
  const cwd = join(folder, randomUUID());
  mkdirSync(cwd);
  const startedAt = performance.now();
  const main = resolve('dist/cli/main.js');
  const args = ['-c', '0,1', program, main, 'dev', '--port', String(await freePort())];
  const child = spawn('taskset', args, {
    cwd,
    env: { PATH: process.env.PATH ?? '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    let printed = '';
    for await (const chunk of child.stdout) {
      printed += String(chunk);
      if (printed.includes('Ctrl+C')) break;
    }
    if (child.exitCode !== null) throw new Error(`postern dev ended with ${child.exitCode}`);
    const wallMs = performance.now() - startedAt;
    return { wallMs, cpuMs: readCpuSecondsOfAll(child.pid) * 1000 };
  } finally {
    await stopProcess(child);
  }
}

function summarize(name: Case, rounds: readonly Round[]) {
  const starts = rounds.map((round) => round[name]);
  const cpuMs = starts.flatMap((start) => start.cpuMs ?? []);
  return {
    medianMs: computeMedian(starts.map(({ wallMs }) => wallMs)),
    slowestMs: Math.max(...starts.map(({ wallMs }) => wallMs)),
    ...(cpuMs.length > 0 && { cpuMs: computeMedian(cpuMs) }),
    ratio: computeMedian(rounds.map((round) => round[name].wallMs / round.empty.wallMs)),
  };
}

function print(name: Case, rounds: readonly Round[], goalMs?: number): void {
  const { medianMs, slowestMs, cpuMs, ratio } = summarize(name, rounds);
  const facts = [
    `${Math.round(medianMs)} ms, slowest ${Math.round(slowestMs)} ms`,
    ...(goalMs === undefined
      ? []
      : [
          `${medianMs <= goalMs ? 'reached' : 'missed'} (≤ ${goalMs})`,
          `${ratio.toFixed(1)} times node -e 0`,
        ]),
    ...(cpuMs === undefined ? [] : [`${Math.round(cpuMs)} ms of CPU`]),
  ];
  console.log(`  ${CASES[name]}: ${facts.join('; ')}`);
}
