import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { BUILD_SCRIPT } from '../command/invocation.ts';
import { type Announcement, isAnnouncement, isNote, type Note } from './announcement.ts';
import { HANDOVER_ENVIRONMENT, isLoaded, TURN } from './handover.ts';

export interface DevProcess {
  /** Resolves to true once it has loaded its files and waits for its turn; to false when it ended before. */
  readonly loaded: Promise<boolean>;
  /** Lets it listen: nobody else has its port and its store. */
  serve(): void;
  /** Resolves when it has ended, to its exit code; 0 when a signal ended it. */
  readonly exitCode: Promise<number>;
  kill(signal: NodeJS.Signals): void;
  /** Shuts it down, by force when that takes too long; resolves once its port is free. */
  stop(): Promise<void>;
}

/** Milliseconds: a stream that a client keeps open would delay the next version. */
const SHUTDOWN_MS = 2000;

/** Runs `postern` with these arguments, in this terminal. */
export function startDevProcess(
  args: readonly string[],
  listener: { announce(announcement: Announcement): void; note(note: Note): void },
): DevProcess {
  const [, script = ''] = process.argv;
  const child = spawn(process.execPath, [...process.execArgv, script, ...args], {
    // Over the channel it says what it serves, and notices when this process is killed (dev.ts).
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, ...HANDOVER_ENVIRONMENT },
  });
  const exitCode = waitForExit(child);
  const loaded = new Promise<boolean>((resolve) => {
    child.on('message', (message) => {
      if (isLoaded(message)) resolve(true);
      if (isAnnouncement(message)) listener.announce(message);
      if (isNote(message)) listener.note(message);
    });
    exitCode.then(() => resolve(false));
  });
  return {
    exitCode,
    loaded,
    // It may have ended meanwhile, which its exit code says.
    serve: () => void child.send(TURN, () => {}),
    kill: (signal) => void child.kill(signal),
    async stop() {
      child.kill('SIGTERM');
      // A second signal ends it at once (process-end.ts).
      const timer = setTimeout(() => child.kill('SIGTERM'), SHUTDOWN_MS);
      await exitCode;
      clearTimeout(timer);
    },
  };
}

/** Builds the checkout; false when that fails, which the build itself explains. */
export async function buildCheckout(): Promise<boolean> {
  const script = fileURLToPath(BUILD_SCRIPT);
  const child = spawn(process.execPath, [script, '--if-stale'], { stdio: ['ignore', 2, 2] });
  return (await waitForExit(child)) === 0;
}

async function waitForExit(child: ChildProcess): Promise<number> {
  const [code]: unknown[] = await once(child, 'exit');
  return typeof code === 'number' ? code : 0;
}
