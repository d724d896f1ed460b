// §26.2: guards that are JavaScript modules of the operator, in this process.

import { statSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { freeText } from '../../config/file/shapes/scalar.ts';
import { defineMember } from '../../config/file/shapes/shape.ts';
import { ConfigError } from '../../config/problem.ts';
import type { Clock } from '../../platform/clock.ts';
import { getMessage } from '../../platform/error-code.ts';
import {
  copyPlain,
  type Originals,
  restoreNumbers,
  UnclearNumber,
} from '../../platform/exact-json.ts';
import { isObject } from '../../platform/json.ts';
import { type AskGuard, GuardFailure, readDecision } from './ask-guard.ts';
import { DEFAULT_TIMEOUT_MS, defineGuard, type GuardHost, timeout } from './define-guard.ts';

export interface ModuleUse {
  readonly kind: 'module';
  /** Absolute after `complete`. */
  readonly path: string;
  readonly timeoutMs: number;
}

const naming = defineMember(
  'module',
  freeText(),
  'A JavaScript module whose default export is the guard, relative to this file. It runs in the gateway’s process.',
);

export const moduleGuard = defineGuard<ModuleUse>({
  kind: 'module',
  naming,
  members: [timeout],
  read({ read }) {
    const timeoutMs = read(timeout) ?? DEFAULT_TIMEOUT_MS;
    const path = read(naming);
    return path === undefined ? undefined : { kind: 'module', path, timeoutMs };
  },
  bind: (use) => ({
    describe: () => `module ${use.path.split(/[\\/]/).at(-1)}`,
    complete(_servers, files, report) {
      const path = files.resolvePath(use.path);
      try {
        files.readText(path);
      } catch (error) {
        const reason = getMessage(error);
        report(`use.module: the file cannot be read (${reason}).`);
      }
      return { ...use, path };
    },
    open: (host, name) => loadModuleGuard(host, name, use),
  }),
});

/** @throws ConfigError if the module cannot be loaded, or exports no guard. */
async function loadModuleGuard(
  { clock }: GuardHost,
  name: string,
  { path, timeoutMs }: ModuleUse,
): Promise<AskGuard> {
  const fail = (reason: string): never => {
    throw new ConfigError([`The guard ${name}: its module ${path} ${reason}`]);
  };
  let exported: unknown;
  try {
    // Node.js caches modules by address: a file that has been modified since needs a different one.
    const address = pathToFileURL(path);
    address.search = `written=${statSync(path).mtimeMs}`;
    exported = await import(address.href);
  } catch (error) {
    return fail(`cannot be loaded: ${getMessage(error)}`);
  }
  const judge = isObject(exported) ? exported.default : undefined;
  if (typeof judge !== 'function') return fail('has no default export that is a function.');

  return async function askModule(message) {
    const originals: Originals = new Map();
    // A copy: the guard may mutate it, and the value itself may carry notes about its text.
    const asked = { ...message, value: copyPlain(message.value, originals) };
    const answer: unknown = judge(asked);
    const decision = readDecision(
      isObject(answer) && 'then' in answer
        ? await waitAtMost(clock, timeoutMs, Promise.resolve(answer))
        : answer,
    );
    if (decision.kind !== 'change') return decision;
    try {
      return { kind: 'change', value: restoreNumbers(decision.value, message.value, originals) };
    } catch (cause) {
      throw cause instanceof UnclearNumber ? new GuardFailure(UNCLEAR, { cause }) : cause;
    }
  };
}

const UNCLEAR =
  'it made a list shorter, or longer, in which JavaScript takes several numbers for one; look at such lists with a guard over HTTP';

/** @throws GuardFailure after a timeout. */
function waitAtMost<Answer>(clock: Clock, ms: number, answer: Promise<Answer>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stop = clock.after(ms, () =>
      reject(new GuardFailure(`it did not answer within ${ms} ms`)),
    );
    answer.finally(stop).then(resolve, reject);
  });
}
