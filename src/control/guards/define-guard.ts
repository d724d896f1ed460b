// §26: guard kinds: their members in `use` of the configuration file, and how they are opened.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { choice, wholeNumber } from '../../config/file/shapes/scalar.ts';
import { defineMember, type Member, type MemberReader } from '../../config/file/shapes/shape.ts';
import type { GuardUse } from '../../mcp/calls/guards.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import type { Clock } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import { suggestName } from '../../platform/nearest-name.ts';
import { quote } from '../../platform/text.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  type AskedMessage,
  type AskGuard,
  createGuardLine,
  type Decision,
  GuardFailure,
  type GuardTurn,
} from './ask-guard.ts';

/** A guard kind: a file in this folder, and a row of `GUARD_KINDS`. `Use` is its parsed `use`. */
export interface GuardKind<Use extends GuardUse = GuardUse> {
  readonly kind: Use['kind'];
  /** The member of `use` that names it; undefined for a built-in one, which `builtIn` names. */
  readonly naming: Member<unknown> | undefined;
  /** The summary of a built-in kind, for editors: `finds keys and tokens`. */
  readonly summary?: string;
  /**
   * Further members of `use`. Kinds with the same member share one object. The summary of a built-in guard's member follows `With
   * size: `, so it begins in lower case.
   */
  readonly members: readonly Member<unknown>[];
  /** Reads all members, so that all problems are reported at once. Undefined if one was reported. */
  read(members: MemberReader): Use | undefined;
  /** Undefined for one of any other kind. */
  bind(use: GuardUse): BoundGuard | undefined;
}

/** A guard, before it is opened. */
export interface BoundGuard {
  /** For operators: without path, query or header of its address. */
  describe(): string;
  /** Resolves its paths, and validates it against the rest of the file. */
  complete?(servers: NamedServers, files: FileAccess, report: (problem: string) => void): GuardUse;
  /** @throws ConfigError for a module that cannot be loaded. */
  open(host: GuardHost, name: string): AskGuard | Promise<AskGuard>;
}

/** Shared by all guards of a configuration. `fetch` keeps its connections. */
export interface GuardHost extends Pick<Runtime, 'clock' | 'fetch'> {
  readonly askServer: AskServer;
  readonly runWork: ReturnType<typeof createRunWork>;
}

/**
 * Sends a request to a server in the file, on behalf of the gateway itself.
 *
 * @throws Error with a message without the request.
 */
export type AskServer = (
  server: string,
  request: {
    readonly method: string;
    readonly params: JsonObject;
    readonly signal: CancelSignal | undefined;
    readonly timeoutMs: number;
    readonly traceparent: string | undefined;
  },
) => Promise<JsonObject>;

/** Servers of the file. `personalBy` is the member that makes one personal; undefined if it is the same for all users. */
export type NamedServers = readonly {
  readonly name: string;
  readonly personalBy: 'auth' | 'isolation' | undefined;
}[];

export interface FileAccess {
  /** Resolves a path relative to the file. */
  resolvePath(path: string): string;
  /** @throws Error with the problem of the file. */
  readText(path: string): string;
}

export function defineGuard<Use extends GuardUse>(
  definition: Omit<GuardKind<Use>, 'bind'> & { bind(use: Use): BoundGuard },
): GuardKind<Use> {
  const isOwn = (use: GuardUse): use is Use => use.kind === definition.kind;
  return { ...definition, bind: (use) => (isOwn(use) ? definition.bind(use) : undefined) };
}

export function findServerProblem(
  member: string,
  name: string,
  servers: NamedServers,
): string | undefined {
  const names = servers.map((server) => server.name);
  return names.includes(name)
    ? undefined
    : `${member}: there is no server ${quote(name, 64)} in this file.${suggestName(name, names)}`;
}

// Members of guards outside the gateway's own code.

export const DEFAULT_TIMEOUT_MS = 2_000;
const MIN_TIMEOUT_MS = 10;
const MAX_TIMEOUT_MS = 60_000;

export const timeout = defineMember(
  'timeout',
  wholeNumber(MIN_TIMEOUT_MS, MAX_TIMEOUT_MS),
  `Milliseconds for one answer; then the guard has failed. The default is ${DEFAULT_TIMEOUT_MS}.`,
);

// The only format so far, and the default.
export const version = defineMember(
  'version',
  choice('sep-2624'),
  'The message format: sep-2624, from the interceptors proposal of MCP.',
);

// §26.4: built-in guards.

export interface BuiltInGuard<Use extends GuardUse> extends GuardKind<Use> {
  /**
   * Inspects a message, step by step. `value` may be of any size and depth: `size.ts` walks one in steps; guards that search
   * strings use `createTextJudge` of `text-guard.ts`.
   */
  createJudge(use: Use): JudgeMessage;
}

export type JudgeMessage = (message: AskedMessage) => Steps<Decision>;

export function defineBuiltInGuard<Use extends GuardUse>(
  definition: Required<Omit<BuiltInGuard<Use>, 'bind' | 'naming'>>,
): BuiltInGuard<Use> {
  const { kind, createJudge } = definition;
  const bind = (use: Use): BoundGuard => ({
    describe: () => `built in: ${kind}`,
    open({ runWork }) {
      const judge = createJudge(use);
      return (message, turn) => runWork(judge(message), turn);
    },
  });
  return { ...defineGuard({ ...definition, naming: undefined, bind }), createJudge };
}

// Long work is done in turns of the event loop, so that it does not block other calls.

/** Each step yields the number of characters inspected. */
export type Steps<Result> = Generator<number, Result, void>;

/** The cost of one value, or one search of a short text, in characters. */
export const A_VALUE = 64;
/** Members of one object in one turn. */
export const MANY = 1_024;

/** Budget of the synchronous start, and of each later turn, in characters and milliseconds. */
const AT_ONCE = { characters: 262_144, ms: 10 };
const IN_A_TURN = { characters: 65_536, ms: 5 };
/** Concurrent long work, of one user and of all. */
const LONG = { ofOne: 1, ofAll: 4 };

/** @throws TooMuchForGuard as the fair queue of a guard. */
export function createRunWork(clock: Pick<Clock, 'monotonic'>) {
  const runInTurn = createGuardLine(LONG);
  let last = Promise.resolve();

  async function finish<Result>(work: Steps<Result>, signal: GuardTurn['signal']): Promise<Result> {
    for (;;) {
      // One step per turn of the event loop, across all work.
      last = last.then(() => nextTurn());
      await last;
      if (signal?.aborted) throw new GuardFailure('the caller no longer waits for it');
      const end = runSome(work, IN_A_TURN);
      if (end !== undefined) return end.value;
    }
  }

  /** Undefined if there is more to do. */
  function runSome<Result>(
    work: Steps<Result>,
    { characters, ms }: typeof AT_ONCE,
  ): IteratorReturnResult<Result> | undefined {
    const endsAt = clock.monotonic() + ms;
    for (let left = characters; left > 0 && clock.monotonic() < endsAt; ) {
      const step = work.next();
      if (step.done) return step;
      left -= step.value;
    }
    return undefined;
  }

  return function runWork<Result>(work: Steps<Result>, turn: GuardTurn): Result | Promise<Result> {
    const end = runSome(work, AT_ONCE);
    return end === undefined ? runInTurn(() => finish(work, turn.signal), turn) : end.value;
  };
}
