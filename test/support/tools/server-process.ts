// Servers that are programs: started on a port of loopback, and ended by their own id.
import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  /** Beside PATH and HOME, which it has from here; nothing else is passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** The folder it runs in. */
  readonly cwd?: string;
}

export interface ServerProcess {
  /** What it has printed of late. */
  readOutput(): string;
  /** kill -9. */
  end(): Promise<void>;
}

const START_LIMIT_MS = 30_000;
const OUTPUT_LENGTH = 10_000;

/**
 * Resolves when it listens on the port.
 * @throws Error with what it printed, when it ends or does not listen.
 */
export async function startServerProcess(
  { command, args, env = {}, cwd }: Program,
  port: number,
): Promise<ServerProcess> {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(command, args, {
    cwd,
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = `${output}${text}`.slice(-OUTPUT_LENGTH);
    });
  }
  const deadline = performance.now() + START_LIMIT_MS;
  while (!(await isListening(port))) {
    if (hasEnded(child)) throw new Error(`${command} ended:\n${output}`);
    if (performance.now() > deadline) {
      await endProcess(child);
      throw new Error(`${command} does not listen on port ${port}:\n${output}`);
    }
    await pause(25);
  }
  return { readOutput: () => output, end: () => endProcess(child) };
}

/** kill -9, which also ends a process that is frozen. */
export function endProcess(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null;

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
