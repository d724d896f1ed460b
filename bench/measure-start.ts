// npm run bench -- start: from the start of the process to the first answer of /health, and of postern dev to its banner.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { freePort } from '../test/support/gateway/ports.ts';
import { runPostern } from './contestants.ts';
import { describeMachine } from './machine.ts';
import type { Options } from './options.ts';
import { publish } from './published.ts';
import { computeMedian } from './results.ts';
import { readCpuSecondsOfAll, stopProcess } from './server-process.ts';
import { openTestbed, type Testbed } from './testbed.ts';

export interface StartResult {
  readonly store: 'redis' | 'embedded';
  readonly medianMs: number;
  readonly slowestMs: number;
  /** Of the process until the answer: steadier than the time where others use the machine. */
  readonly cpuMs?: number;
}

export const START_GOAL_MS = 250;
export const DEV_GOAL_MS = 1200;
export const STARTS = 10;

interface Start {
  readonly wallMs: number;
  readonly cpuMs: number;
}

export async function measureStart({ isPublished }: Options): Promise<void> {
  const machine = describeMachine();
  const testbed = await openTestbed();
  try {
    const results: StartResult[] = [];
    for (const store of ['redis', 'embedded'] as const) {
      const starts = await repeat(() => startService(testbed, store));
      results.push({ store, ...summarize(starts) });
      print(`Start to the first /health (${store})`, starts, START_GOAL_MS);
    }
    print('postern dev to its banner', await repeat(() => startDev(testbed)), DEV_GOAL_MS);
    if (isPublished) publish({ start: { machine, results } });
  } finally {
    await testbed.close();
  }
}

async function repeat(start: () => Promise<Start>): Promise<readonly Start[]> {
  const starts: Start[] = [];
  while (starts.length < STARTS) starts.push(await start());
  return starts;
}

async function startService(testbed: Testbed, store: StartResult['store']): Promise<Start> {
  const server = await testbed.start(runPostern(store));
  const start = { wallMs: server.startMs, cpuMs: server.readCpuSeconds() * 1000 };
  await server.stop();
  return start;
}

/** In a folder of its own, where the development provider has to make its keys. On all cores, as developers have it. */
async function startDev({ folder }: Testbed): Promise<Start> {
  const cwd = join(folder, randomUUID());
  mkdirSync(cwd);
  const startedAt = performance.now();
  const main = resolve('dist/cli/main.js');
  const args = ['-c', '0,1', process.execPath, main, 'dev', '--port', String(await freePort())];
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

const summarize = (starts: readonly Start[]) => ({
  medianMs: computeMedian(starts.map(({ wallMs }) => wallMs)),
  slowestMs: Math.max(...starts.map(({ wallMs }) => wallMs)),
  cpuMs: computeMedian(starts.map(({ cpuMs }) => cpuMs)),
});

function print(what: string, starts: readonly Start[], goalMs: number): void {
  const { medianMs, slowestMs, cpuMs } = summarize(starts);
  const verdict = medianMs <= goalMs ? 'reached' : 'missed';
  console.log(
    `${what}: median ${Math.round(medianMs)} ms, slowest ${Math.round(slowestMs)} ms of ${STARTS} (≤ ${goalMs}) ${verdict}; ${Math.round(cpuMs)} ms of CPU`,
  );
}
