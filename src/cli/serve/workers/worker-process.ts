// Communication between the main process and its workers: the environment at startup, messages later.

import cluster, { type Worker } from 'node:cluster';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../../platform/clock.ts';
import { isObject } from '../../../platform/json.ts';
import { getModuleUrl } from '../../../platform/own-files.ts';
import { describeCommandHere } from '../../command-line/invocation.ts';
import type { Protection } from '../../setup/protection.ts';

/** A message about a metrics scrape. */
export interface WorkerMessage {
  /**
   * `merge`, to the main process: requests the merged text of all workers, and contains the sender's own; answered with `merged`.
   * `render`, to each other worker: requests its text; answered with `rendered`.
   */
  readonly kind: 'merge' | 'merged' | 'render' | 'rendered';
  /** Chosen by the requester, and repeated in the answer. */
  readonly id: number;
  /** Empty in `render`. */
  readonly text: string;
}

export const isWorkerMessage = (message: unknown): message is WorkerMessage =>
  isObject(message) && typeof message.kind === 'string' && typeof message.text === 'string';

const LOCK_COMMAND_VARIABLE = 'POSTERN_WORKER_LOCK_COMMAND';
const PROTECTION_VARIABLE = 'POSTERN_WORKER_PROTECTION';

/**
 * The environment of a new worker. The worker rereads the configuration file; comparing it with the protection served by the
 * others shows whether the file has lost its rules or its lock. Only the main process knows how `postern lock` is typed here.
 */
export const writeWorkerEnvironment = (
  served: Protection | undefined,
): Readonly<Record<string, string>> => ({
  [LOCK_COMMAND_VARIABLE]: describeCommandHere(['lock'], process),
  ...(served && { [PROTECTION_VARIABLE]: writeProtection(served) }),
});

/** Bytes: the system does not accept much longer variables. */
const MAX_PROTECTION = 100_000;

function writeProtection(served: Protection) {
  const text = JSON.stringify(served);
  return Buffer.byteLength(text) <= MAX_PROTECTION
    ? text
    : JSON.stringify({ ...served, details: undefined });
}

/** Reads this worker's startup parameters; `served` is undefined without a configuration file. */
export function readWorkerEnvironment(env: NodeJS.ProcessEnv) {
  const served: unknown = JSON.parse(env[PROTECTION_VARIABLE] ?? 'null');
  return {
    lockCommand: env[LOCK_COMMAND_VARIABLE],
    served: isProtection(served) ? served : undefined,
  };
}

/** Also recognizes messages that report the configuration that a worker has loaded. */
const isProtection = (value: unknown): value is Protection =>
  isObject(value) &&
  typeof value.hasRules === 'boolean' &&
  typeof value.hasLock === 'boolean' &&
  typeof value.hasGuards === 'boolean';

// A worker, as seen by the main process.

export type WorkerProcess = ReturnType<typeof startWorker>;

const SCRIPT = fileURLToPath(getModuleUrl('cli/serve/workers/worker'));

/** Starts a worker with the environment of this process and the protection that the other workers serve. */
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
    /** Milliseconds since it started serving; on a busy machine, startup itself may take a long time. */
    getServedMs: () => (servingSince === undefined ? 0 : systemClock.monotonic() - servingSince),
    ended,
    /** A message to a dead worker is lost. */
    send: (message: WorkerMessage) => void worker.send(message, () => {}),
    onMessage(listener: (message: WorkerMessage) => void) {
      worker.on('message', (message: unknown) => {
        if (isWorkerMessage(message)) listener(message);
      });
    },
    /** Calls the listener when the worker loads a new configuration. */
    onLoad(listener: (served: Protection) => void) {
      worker.on('message', (message: unknown) => {
        if (isProtection(message)) listener(message);
      });
    },
    /** Shuts the worker down gracefully, and waits for its end. */
    async shutDown(): Promise<'clean' | 'failed'> {
      // The signal kills a worker that does not serve yet.
      const canFail = servingSince !== undefined;
      worker.process.kill('SIGTERM');
      const { code } = await ended;
      return code === 0 || !canFail ? 'clean' : 'failed';
    },
    /** Sends SIGHUP, unless the worker is starting and so has just read the configuration. */
    hangUp() {
      if (servingSince !== undefined) worker.process.kill('SIGHUP');
    },
    kill: () => void worker.process.kill('SIGKILL'),
  };
}

/**
 * Closes the connection that was in transit to a worker when the worker died. `node:cluster` sends a worker one connection at a
 * time and forgets one that is never acknowledged: the connection would stay open, and its client would wait forever.
 */
function closeUnacknowledged({ process: child }: Worker) {
  const send = child.send;
  let sent: { readonly seq: unknown; readonly handle: unknown } | undefined;
  child.send = (...args: readonly unknown[]) => {
    const [message, handle] = args;
    if (isObject(message) && message.act === 'newconn') sent = { seq: message.seq, handle };
    return Reflect.apply(send, child, args);
  };
  child.on('internalMessage', (message: unknown) => {
    // node:cluster sends the next connection before it emits the acknowledgment.
    if (isObject(message) && message.ack === sent?.seq) sent = undefined;
  });
  child.once('exit', () => {
    const handle = sent?.handle;
    if (isObject(handle) && typeof handle.close === 'function') handle.close();
  });
}
