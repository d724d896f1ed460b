// A process of postern dev that serves. A new one loads its files while the one before it serves, and then waits for its
// turn: where loading fails, nothing has ended.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { isObject } from '../../platform/json.ts';
import { BUILD_SCRIPT } from '../command/invocation.ts';
import { type Announcement, isTold, type WatchNote } from './announcement.ts';

export type DevProcess = ReturnType<typeof startDevProcess>;

/** Milliseconds: a stream that a client keeps open would delay the next version. */
const SHUTDOWN_MS = 2000;

/** Runs `postern` with these arguments, in this terminal. */
export function startDevProcess(
  args: readonly string[],
  onTold: (message: Announcement | WatchNote) => void,
) {
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
      if (isTold(message)) onTold(message);
    });
    exitCode.then(() => resolve(false));
  });
  return {
    /** Resolves when it has ended, to its exit code; 0 when a signal ended it. */
    exitCode,
    /** Resolves to true once it has loaded its files and waits for its turn; to false when it ended before. */
    loaded,
    /** Lets it listen: nobody else has its port and its store. It may have ended meanwhile, which its exit code says. */
    serve: () => void child.send(TURN, () => {}),
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    /** Shuts it down, by force when that takes too long; resolves once its port is free. */
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

/** Set for a process that waits: others that have a channel to their parent (of tsx, of pm2) get no turn. */
const VARIABLE = 'POSTERN_DEV_HANDOVER';

const HANDOVER_ENVIRONMENT = { [VARIABLE]: '1' } as const;

/** From the new process: everything is loaded that can be while another one has port and store. */
const LOADED = { kind: 'loaded' } as const;

/** To the new process: port and store are free. */
const TURN = { kind: 'turn' } as const;

/** It comes from our own code in another process. */
const isLoaded = (message: unknown): boolean => isObject(message) && message.kind === LOADED.kind;

/** In the new process: says that it is loaded, and resolves once it may serve; at once where nobody hands over. */
export async function waitForTurn(): Promise<void> {
  if (process.env[VARIABLE] === undefined) return;
  delete process.env[VARIABLE];
  // Nothing else keeps this process alive meanwhile.
  process.channel?.ref();
  process.send?.(LOADED, undefined, undefined, () => {});
  await once(process, 'message');
  process.channel?.unref();
}
