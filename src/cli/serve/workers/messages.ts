// What the main process and its workers tell each other: by the environment at the start, by messages later.
import { isObject } from '../../../platform/json.ts';
import { describeCommand } from '../../command/invocation.ts';
import type { Protection } from '../../setup/config-file/find-losses.ts';

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

function writeProtection(served: Protection): string {
  const text = JSON.stringify(served);
  return Buffer.byteLength(text) <= MAX_PROTECTION
    ? text
    : JSON.stringify({ ...served, details: undefined });
}

/** What this worker was started with; `served` is undefined where there is no file. */
export function readWorkerEnvironment(env: NodeJS.ProcessEnv) {
  const served: unknown = JSON.parse(env[PROTECTION_VARIABLE] ?? 'null');
  return {
    lockCommand: env[LOCK_COMMAND_VARIABLE],
    served: isProtection(served) ? served : undefined,
  };
}

/** Also of messages by which workers tell the main process what they have loaded. */
export const isProtection = (value: unknown): value is Protection =>
  isObject(value) &&
  typeof value.hasRules === 'boolean' &&
  typeof value.hasLock === 'boolean' &&
  typeof value.hasGuards === 'boolean';
