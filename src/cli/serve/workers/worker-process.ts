import cluster from 'node:cluster';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../../platform/clock.ts';
import { getModuleUrl } from '../../../platform/own-files.ts';
import type { Protection } from '../../setup/config-file/find-losses.ts';
import { writeLockCommand } from './lock-command.ts';
import { isWorkerMessage, type WorkerMessage } from './messages.ts';
import { isProtection, writeProtection } from './protection.ts';
import { closeUnacknowledged } from './unacknowledged-connection.ts';

export interface WorkerEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A worker, as the main process sees it. */
export interface WorkerProcess {
  /** In its log lines. */
  readonly id: number;
  readonly pid: number | undefined;
  /** Monotonic milliseconds. */
  readonly startedAt: number;
  /** Resolves when it serves. */
  readonly serving: Promise<undefined>;
  readonly ended: Promise<WorkerEnd>;
  /** Messages to one that has died get lost. */
  send(message: WorkerMessage): void;
  onMessage(listener: (message: WorkerMessage) => void): void;
  /** What it loads anew. */
  onLoad(listener: (served: Protection) => void): void;
  /** Lets it finish what it does, and waits for its end. */
  shutDown(): Promise<'clean' | 'failed'>;
  /** SIGHUP; one that does not serve yet has just read what there is to read. */
  hangUp(): void;
  /** At once. */
  kill(): void;
}

const SCRIPT = fileURLToPath(getModuleUrl('cli/serve/workers/worker'));

/** With the environment of this process, and what the other workers serve. */
export function startWorker(served: Protection | undefined): WorkerProcess {
  cluster.setupPrimary({ exec: SCRIPT });
  const worker = cluster.fork({ ...writeProtection(served), ...writeLockCommand() });
  closeUnacknowledged(worker);
  let isServing = false;
  const serving = new Promise<undefined>((resolve) => {
    worker.once('listening', () => {
      isServing = true;
      resolve(undefined);
    });
  });
  const ended = new Promise<WorkerEnd>((resolve) => {
    worker.once('exit', (code: number | null, signal: string | null) => resolve({ code, signal }));
  });
  return {
    id: worker.id,
    pid: worker.process.pid,
    startedAt: systemClock.monotonic(),
    serving,
    ended,
    send: (message) => void worker.send(message, () => {}),
    onMessage(listener) {
      worker.on('message', (message: unknown) => {
        if (isWorkerMessage(message)) listener(message);
      });
    },
    onLoad(listener) {
      worker.on('message', (message: unknown) => {
        if (isProtection(message)) listener(message);
      });
    },
    async shutDown() {
      // The signal ends one that does not serve yet.
      const canFail = isServing;
      worker.process.kill('SIGTERM');
      const { code } = await ended;
      return code === 0 || !canFail ? 'clean' : 'failed';
    },
    hangUp() {
      if (isServing) worker.process.kill('SIGHUP');
    },
    kill: () => void worker.process.kill('SIGKILL'),
  };
}
