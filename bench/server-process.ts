// One server under load: a process of its own on a core of its own, and what it used.
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

export interface ServerProcess {
  /** Of `/mcp`. */
  readonly url: string;
  /** Milliseconds from its start to the first answer. */
  readonly startMs: number;
  /** CPU seconds used so far by all of its threads and workers, user and system. */
  readCpuSeconds(): number;
  readResidentMb(): number;
  /** The most that it ever had. */
  readPeakMb(): number;
  /** What it printed to stdout. */
  readOutput(): string;
  /** Until it is resumed neither it nor what it has started takes any CPU: timers of one do not run in the round of another. */
  suspend(): void;
  resume(): void;
  stop(): Promise<void>;
}

export interface StartOptions {
  /** Node unless given. */
  readonly program?: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly port: number;
  /** On which it may run, as taskset takes it; SERVER_CORE unless given. */
  readonly cores?: string;
  /** Where the processes that it starts are the server behind it. */
  readonly ownCpuOnly?: boolean;
}

/** The servers' core. Load, Redis and this process are on LOAD_CORE. */
export const SERVER_CORE = '0';
export const LOAD_CORE = '1';

/** Linux counts CPU time in ticks of 10 ms. */
const TICKS_PER_SECOND = 100;
const START_LIMIT_MS = 30_000;

export async function startServer({
  program = process.execPath,
  args,
  env,
  port,
  cores = SERVER_CORE,
  ownCpuOnly = false,
}: StartOptions): Promise<ServerProcess> {
  const startedAt = performance.now();
  const child = spawn('taskset', ['-c', cores, program, ...args], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  const origin = `http://127.0.0.1:${port}`;
  try {
    await waitForAnswer(`${origin}/health`, child);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  return {
    url: `${origin}/mcp`,
    startMs: performance.now() - startedAt,
    readCpuSeconds: () => (ownCpuOnly ? readCpuSeconds(child.pid) : readCpuSecondsOfAll(child.pid)),
    readResidentMb: () => readMemoryMb(child, 'VmRSS'),
    readPeakMb: () => readMemoryMb(child, 'VmHWM'),
    readOutput: () => output,
    suspend: () => signalAll(child.pid, 'SIGSTOP'),
    resume: () => signalAll(child.pid, 'SIGCONT'),
    stop: () => stopProcess(child),
  };
}

/** Any answer will do: not every contestant knows /health. */
async function waitForAnswer(url: string, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + START_LIMIT_MS;
  while (performance.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`The server ended with ${child.exitCode}`);
    const response = await fetch(url).catch(() => undefined);
    if (response !== undefined) return;
    await pause(5);
  }
  throw new Error(`Nothing answers at ${url}`);
}

/** Of a process and of those that it has started and that still run. */
export const readCpuSecondsOfAll = (pid: number | string | undefined): number =>
  listChildren(pid).reduce((sum, child) => sum + readCpuSecondsOfAll(child), readCpuSeconds(pid));

function signalAll(pid: number | string | undefined, signal: 'SIGSTOP' | 'SIGCONT'): void {
  process.kill(Number(pid), signal);
  for (const child of listChildren(pid)) signalAll(child, signal);
}

const listChildren = (pid: number | string | undefined): readonly string[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .split(' ')
    .filter((child) => child.trim() !== '');

function readCpuSeconds(pid: number | string | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

function readMemoryMb({ pid }: ChildProcess, line: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const [, kilobytes] = new RegExp(`^${line}:\\s+(\\d+) kB$`, 'm').exec(status) ?? [];
  return Number(kilobytes) / 1024;
}

export function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), 5000);
    child.once('exit', () => {
      clearTimeout(timer);
      resolve();
    });
    child.kill('SIGTERM');
  });
}
