// Messages between the main process and its workers: by the environment at the start, by messages later.

import type { Worker } from 'node:cluster';
import cluster from 'node:cluster';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../../platform/clock.ts';
import { isObject } from '../../../platform/json.ts';
import { getModuleUrl } from '../../../platform/own-files.ts';
import { describeCommand } from '../../command-line/invocation.ts';
import type { Protection } from '../../setup/protection.ts';

/** When a worker was asked for the metrics. */
export interface WorkerMessage {
  /**
   * `merge`, to the main process: here is my text, I want that of all workers. It comes as `merged`.
   * `render`, to each other worker: I want your text. It comes as `rendered`.
   */
  readonly kind: 'merge' | 'merged' | 'render' | 'rendered';
  /** Chosen by who asks, and repeated in the answer. */
  readonly id: number;
  /** Empty in `render`. */
  readonly text: string;
}

export const isWorkerMessage = (message: unknown): message is WorkerMessage =>
  isObject(message) && typeof message.kind === 'string' && typeof message.text === 'string';

const LOCK_COMMAND_VARIABLE = 'POSTERN_WORKER_LOCK_COMMAND';
const PROTECTION_VARIABLE = 'POSTERN_WORKER_PROTECTION';

/**
 * For the environment of a new worker. It reads the configuration file anew, and knows by what the others serve whether
 * the file has lost its rules or its lock since. How `postern lock` is typed here, the main process alone knows.
 */
export const writeWorkerEnvironment = (
  served: Protection | undefined,
): Readonly<Record<string, string>> => ({
  [LOCK_COMMAND_VARIABLE]: describeCommand(['lock'], process),
  ...(served && { [PROTECTION_VARIABLE]: writeProtection(served) }),
});

/** Bytes: the system takes no much longer variable. */
const MAX_PROTECTION = 100_000;

function writeProtection(served: Protection) {
  const text = JSON.stringify(served);
  return Buffer.byteLength(text) <= MAX_PROTECTION
    ? text
    : JSON.stringify({ ...served, details: undefined });
}

/** Reads what this worker was started with; `served` is undefined where there is no file. */
export function readWorkerEnvironment(env: NodeJS.ProcessEnv) {
  const served: unknown = JSON.parse(env[PROTECTION_VARIABLE] ?? 'null');
  return {
    lockCommand: env[LOCK_COMMAND_VARIABLE],
    served: isProtection(served) ? served : undefined,
  };
}

/** Also of messages by which workers tell the main process what they have loaded. */
const isProtection = (value: unknown): value is Protection =>
  isObject(value) &&
  typeof value.hasRules === 'boolean' &&
  typeof value.hasLock === 'boolean' &&
  typeof value.hasGuards === 'boolean';

// A worker, as the main process knows it.

export type WorkerProcess = ReturnType<typeof startWorker>;

const SCRIPT = fileURLToPath(getModuleUrl('cli/serve/workers/worker'));

/** With the environment of this process, and what the other workers serve. */
export function startWorker(served: Protection | undefined) {
  cluster.setupPrimary({ exec: SCRIPT });
  const worker = cluster.fork(writeWorkerEnvironment(served));
  closeUnacknowledged(worker);
  let servingSince: number | undefined;
  const serving = new Promise<undefined>((resolve) => {
    worker.once('listening', () => {
      servingSince = systemClock.monotonic();
      resolve(undefined);
    });
  });
  const ended = new Promise<{ readonly code: number | null; readonly signal: string | null }>(
    (resolve) => {
      worker.once('exit', (code: number | null, signal: string | null) =>
        resolve({ code, signal }),
      );
    },
  );
  return {
    id: worker.id,
    pid: worker.process.pid,
    serving,
    /** Milliseconds; a machine may be so busy that one takes long to start. */
    getServedMs: () => (servingSince === undefined ? 0 : systemClock.monotonic() - servingSince),
    ended,
    /** Messages to one that has died get lost. */
    send: (message: WorkerMessage) => void worker.send(message, () => {}),
    onMessage(listener: (message: WorkerMessage) => void) {
      worker.on('message', (message: unknown) => {
        if (isWorkerMessage(message)) listener(message);
      });
    },
    /** Tells what it loads anew. */
    onLoad(listener: (served: Protection) => void) {
      worker.on('message', (message: unknown) => {
        if (isProtection(message)) listener(message);
      });
    },
    /** Lets it finish what it does, and waits for its end. */
    async shutDown(): Promise<'clean' | 'failed'> {
      // The signal ends one that does not serve yet.
      const canFail = servingSince !== undefined;
      worker.process.kill('SIGTERM');
      const { code } = await ended;
      return code === 0 || !canFail ? 'clean' : 'failed';
    },
    /** SIGHUP; one that does not serve yet has just read what there is to read. */
    hangUp() {
      if (servingSince !== undefined) worker.process.kill('SIGHUP');
    },
    kill: () => void worker.process.kill('SIGKILL'),
  };
}

/**
 * Closes the connection that was on its way to a worker when the worker died. `node:cluster` sends a
 * worker one connection at a time and forgets the one that is never acknowledged: it would stay
 * open, and its client would wait for an answer that nobody gives.
 */
function closeUnacknowledged({ process: child }: Worker) {
  const send = child.send;
  let sent: { readonly seq: unknown; readonly handle: unknown } | undefined;
  child.send = (...args: readonly unknown[]): boolean => {
    const [message, handle] = args;
    if (isObject(message) && message.act === 'newconn') sent = { seq: message.seq, handle };
    return Reflect.apply(send, child, args);
  };
  child.on('internalMessage', (message: unknown) => {
    // When it is told of an acknowledgment, node:cluster has sent the next one already.
    if (isObject(message) && message.ack === sent?.seq) sent = undefined;
  });
  child.once('exit', () => {
    const handle = sent?.handle;
    if (isObject(handle) && typeof handle.close === 'function') handle.close();
  });
}
