import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { BUILD_SCRIPT } from '../checkout.ts';

export interface Running {
  /** Resolves to the exit code; 0 when a signal ended it. */
  readonly ended: Promise<number>;
  kill(signal: NodeJS.Signals): void;
  /** Ends it in peace, or without when that takes too long; resolves once its port is free. */
  stop(): Promise<void>;
}

/** Milliseconds: a stream that somebody keeps open would hold the next version up. */
const PATIENCE_MS = 2000;

/** `postern` with these arguments, in this terminal. */
export function runDev(args: readonly string[]): Running {
  const [, script = ''] = process.argv;
  const child = spawn(process.execPath, [...process.execArgv, script, ...args], {
    // Over the channel it notices when this process is killed, and ends as well (dev.ts).
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  const ended = exitCodeOf(child);
  return {
    ended,
    kill: (signal) => void child.kill(signal),
    async stop() {
      child.kill('SIGTERM');
      // A second signal ends at once (end.ts).
      const impatience = setTimeout(() => child.kill('SIGTERM'), PATIENCE_MS);
      await ended;
      clearTimeout(impatience);
    },
  };
}

/** Builds the checkout; false when that fails, which the build itself explains. */
export async function build(): Promise<boolean> {
  const script = fileURLToPath(BUILD_SCRIPT);
  const child = spawn(process.execPath, [script, '--if-stale'], { stdio: ['ignore', 2, 2] });
  return (await exitCodeOf(child)) === 0;
}

async function exitCodeOf(child: ChildProcess): Promise<number> {
  const [code]: unknown[] = await once(child, 'exit');
  return typeof code === 'number' ? code : 0;
}
