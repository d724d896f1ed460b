// A worker that takes the place of another reads the configuration file anew. By what the others serve it knows
// whether the file has lost its rules or its lock since.
import { isObject } from '../../../platform/json.ts';
import type { Protection } from '../../setup/config-file/find-losses.ts';

const VARIABLE = 'POSTERN_WORKER_PROTECTION';

/** For the environment of a new worker. */
export const writeProtection = (
  served: Protection | undefined,
): Readonly<Record<string, string>> =>
  served === undefined ? {} : { [VARIABLE]: JSON.stringify(served) };

/** What this worker was started with; undefined where there is no file. */
export function readProtection(env: Readonly<Record<string, string | undefined>>) {
  const text = env[VARIABLE];
  const served: unknown = text === undefined ? undefined : JSON.parse(text);
  return isProtection(served) ? served : undefined;
}

/** Also of messages by which workers tell the main process what they have loaded. */
export const isProtection = (value: unknown): value is Protection =>
  isObject(value) && typeof value.hasRules === 'boolean' && typeof value.hasLock === 'boolean';
