// The built service as a process of its own, seen from the outside only.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, symlinkSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { endProcess } from '../tools/server-process.ts';
import type { LogLine } from './log.ts';
import { freePort } from './ports.ts';

export type Env = Readonly<Record<string, string>>;

export interface Postern {
  readonly pid: number;
  /** All that it printed so far. */
  readonly stdout: string;
  readonly stderr: string;
  /** The whole lines of stdout, parsed: one that is no JSON object fails the test. */
  log(): readonly LogLine[];
  /** How it ended, once everything that it printed was read. */
  readonly ended: Promise<End>;
  readonly hasEnded: boolean;
  kill(signal: NodeJS.Signals): void;
  /** Stops reading what it prints, and goes on, or closes the pipe. */
  readonly reading: { stop(): void; goOn(): void; close(): void };
}

export interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A process that answers. */
export interface RunningPostern extends Postern {
  readonly port: number;
  /** By address: where `localhost` leads is not the matter here. */
  readonly url: string;
  /** For the next process on the same folder. */
  readonly dataDir: string;
}

export interface LaunchOptions {
  readonly args?: readonly string[];
  /** `npm` in place of `node dist/cli/main.js`, in a process group of its own. */
  readonly npm?: boolean;
  /** In a process group of its own, as a terminal has it. */
  readonly leadsGroup?: boolean;
  /** Where it runs; a folder without a `.env` unless given. */
  readonly cwd?: string;
  /** What it reads from standard input; none unless given. */
  readonly input?: string | undefined;
  /** In place of the built service of this checkout. */
  readonly main?: string;
}

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
export const MAIN = join(ROOT, 'dist', 'cli', 'main.js');
const START_LIMIT_MS = 30_000;

/** With whether it leads a process group of its own. */
const started = new Map<ChildProcess, boolean>();
const folders: string[] = [];

/** Nothing of the tests' own environment reaches the service. */
export const BARE: Env = Object.fromEntries(
  ['PATH', 'HOME', 'TMPDIR'].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  }),
);

/** Starts it and does not wait. */
export function launch(env: Env, how: LaunchOptions = {}): Postern {
  const { args = ['start'], npm, main = MAIN, cwd = npm ? linkCheckout() : emptyFolder() } = how;
  const leadsGroup = npm === true || how.leadsGroup === true;
  const [command, ...rest] = npm ? ['npm', 'run', ...args] : [process.execPath, main, ...args];
  const child = spawn(command, rest, {
    cwd,
    env: { ...BARE, npm_config_update_notifier: 'false', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: leadsGroup,
  });
  started.set(child, leadsGroup);
  // One that ends without reading it breaks the pipe.
  child.stdin.on('error', () => {}).end(how.input);
  const pid = child.pid;
  if (pid === undefined) throw new Error(`${command} could not be started`);
  let stdout = '';
  let stderr = '';
  let hasEnded = false;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<End>((resolve) => {
    child.once('close', (code, signal) => {
      hasEnded = true;
      resolve({ code, signal });
    });
  });
  return {
    pid,
    get stdout() {
      return stdout;
    },
    get stderr() {
      return stderr;
    },
    log: () => stdout.split('\n').slice(0, -1).map(parseLine),
    ended,
    get hasEnded() {
      return hasEnded;
    },
    kill: (signal) => void child.kill(signal),
    reading: {
      stop: () => void child.stdout.pause(),
      goOn: () => void child.stdout.resume(),
      close: () => void child.stdout.destroy(),
    },
  };
}

/** Starts it on a free port of loopback, or the given one, and waits until it answers. */
export async function startPostern(
  env: Env = {},
  how: LaunchOptions = {},
): Promise<RunningPostern> {
  const dataDir = env.DATA_DIR ?? (await makeFolder());
  for (let attempt = 1; ; attempt += 1) {
    const port = env.PORT === undefined ? await freePort() : Number(env.PORT);
    const url = `http://127.0.0.1:${port}`;
    const own = { HOST: '127.0.0.1', PORT: String(port), DATA_DIR: dataDir };
    const postern = launch({ ...own, ...env }, how);
    await untilItAnswers(postern, url);
    if (!postern.hasEnded) return Object.assign(postern, { port, url, dataDir });
    // Somebody may have taken the port since it was free.
    const wasTaken = postern.stderr.includes('is in use by another process');
    if (!wasTaken || attempt === 3) {
      throw new Error(`It ended instead of serving:\n${postern.stdout}${postern.stderr}`);
    }
  }
}

/** Starts what is expected to end by itself, and waits for its end. */
export async function runPostern(env: Env, how: LaunchOptions = {}): Promise<Postern & End> {
  const postern = launch(env, how);
  return Object.assign(postern, await postern.ended);
}

/** A folder that `endPosterns` removes. */
export const makeFolder = async (): Promise<string> => emptyFolder();

/** This checkout without what a developer may have put into its `.env`. */
export function linkCheckout(): string {
  const path = emptyFolder();
  for (const name of readdirSync(ROOT).filter((entry) => !entry.startsWith('.'))) {
    symlinkSync(join(ROOT, name), join(path, name));
  }
  return path;
}

export function emptyFolder(): string {
  const path = mkdtempSync(join(tmpdir(), 'postern-process-'));
  folders.push(path);
  return path;
}

/** For afterEach and afterAll: ends what was started here and still runs, by its own id. */
export async function endPosterns(): Promise<void> {
  for (const [child, leads] of started) {
    const { pid } = child;
    if (leads && pid !== undefined && isGroupAlive(pid)) process.kill(-pid, 'SIGKILL');
    await endProcess(child);
  }
  started.clear();
  for (const path of folders.splice(0)) await rm(path, { recursive: true, force: true });
}

/** Whether any process is left in the process group that `pid` was started to lead. */
export function isGroupAlive(pid: number): boolean {
  try {
    process.kill(-pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function untilItAnswers(postern: Postern, url: string): Promise<void> {
  const deadline = performance.now() + START_LIMIT_MS;
  while (!postern.hasEnded && !(await answers(`${url}/health`))) {
    if (performance.now() > deadline) {
      throw new Error(`It does not answer:\n${postern.stdout}${postern.stderr}`);
    }
    await pause(25);
  }
}

const answers = (url: string): Promise<boolean> =>
  fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );

function parseLine(line: string): LogLine {
  const parsed: unknown = JSON.parse(line);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new Error(`No JSON object: ${line}`);
  }
  return parsed as LogLine;
}
