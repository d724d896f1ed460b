// One server under load, in a process of its own, and the CPU that it used.
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface Target {
  readonly name: string;
  readonly url: string;
  /** CPU seconds used so far, user and system. */
  readCpuSeconds(): number;
  stop(): Promise<void>;
}

/** Linux counts CPU time in ticks of 10 ms. */
const TICKS_PER_SECOND = 100;

export async function startTarget(
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  port: number,
): Promise<Target> {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const url = `http://127.0.0.1:${port}`;
  await waitUntilListening(url, child);
  return {
    name,
    url: `${url}/mcp`,
    readCpuSeconds: () => readCpuSecondsOf(child),
    stop: () => stopProcess(child),
  };
}

async function waitUntilListening(url: string, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    if (child.exitCode !== null) throw new Error(`The server ended with ${child.exitCode}`);
    const answer = await fetch(`${url}/health`).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`Nothing answers at ${url}`);
}

function readCpuSecondsOf({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

const stopProcess = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
  });
