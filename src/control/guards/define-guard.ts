// §26: a kind of guard: how `use` of the configuration file names it, what it needs there, and how it is opened.

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

/** A file in this folder, and a row of `GUARD_KINDS`. `Use` is what `use` of such a guard becomes. */
export interface GuardKind<Use extends GuardUse = GuardUse> {
  readonly kind: Use['kind'];
  /** The member of `use` that names it; undefined for one that comes with the gateway, which `builtIn` names. */
  readonly naming: Member<unknown> | undefined;
  /** Follows the kind of one that comes with the gateway, for editors: `finds keys and tokens`. */
  readonly summary?: string;
  /**
   * Members that `use` may have beside. Kinds that have the same member share it, as one object. Of a guard that comes with the
   * gateway the summary follows `With size: `, so it begins in lower case.
   */
  readonly members: readonly Member<unknown>[];
  /** Reads each of its members, so that all problems are told at once. Undefined where what is missing was reported. */
  read(members: MemberReader): Use | undefined;
  /** Undefined for one of another kind. */
  bind(use: GuardUse): BoundGuard | undefined;
}

/** A guard, before it is opened. */
export interface BoundGuard {
  /** Describes it for operators: never a path, a query or a header of its address. */
  describe(): string;
  /** With what its paths lead to. Reports what is wrong with it beside the rest of the file. */
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
 * Sends a request to a server of the file, on behalf of the gateway itself.
 *
 * @throws Error whose message says why there is no result, without what was sent.
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

/** Servers of the file. `personalBy` is the member by which one is another for each user; undefined where it is the same for all. */
export type NamedServers = readonly {
  readonly name: string;
  readonly personalBy: 'auth' | 'isolation' | undefined;
}[];

export interface FileAccess {
  /** An absolute path, for one that is relative to the file. */
  resolvePath(path: string): string;
  /** @throws Error with what is wrong with the file. */
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

// Members of those that are asked outside of the gateway's own code.

export const DEFAULT_TIMEOUT_MS = 2_000;
const MIN_TIMEOUT_MS = 10;
const MAX_TIMEOUT_MS = 60_000;

export const timeout = defineMember(
  'timeout',
  wholeNumber(MIN_TIMEOUT_MS, MAX_TIMEOUT_MS),
  `Milliseconds for one answer; then the guard has failed. The default is ${DEFAULT_TIMEOUT_MS}.`,
);

// The only one so far: another becomes another choice, and this one stays the default.
export const version = defineMember(
  'version',
  choice('sep-2624'),
  'The message format: sep-2624, from the interceptors proposal of MCP.',
);

// §26.4: guards that come with the gateway.

export interface BuiltInGuard<Use extends GuardUse> extends GuardKind<Use> {
  /**
   * Looks at a message, step by step. `value` may be of any size and depth: `size.ts` goes through one in steps; what looks for
   * something in texts is made by `createTextJudge` of `text-guard.ts`.
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

// Their work: what is long is done in turns of the event loop, so that it holds nobody up.

/** Its steps say how many characters they looked at. */
export type Steps<Result> = Generator<number, Result, void>;

/** As many characters take as long as one value, or one look at a short text. */
export const A_VALUE = 64;
/** Members of one object after which others have their turn. */
export const MANY = 1_024;

/** How much is done before the answer, and in each turn after that: so many characters, in so many milliseconds at most. */
const AT_ONCE = { characters: 262_144, ms: 10 };
const IN_A_TURN = { characters: 65_536, ms: 5 };
/** Long ones at the same time, of one user and of all: they take turns. */
const LONG = { ofOne: 1, ofAll: 4 };

/** @throws TooMuchForGuard as a guard's line does. */
export function createRunWork(clock: Pick<Clock, 'monotonic'>) {
  const runInTurn = createGuardLine(LONG);
  let last = Promise.resolve();

  async function finish<Result>(work: Steps<Result>, signal: GuardTurn['signal']): Promise<Result> {
    for (;;) {
      // One step of one work in each turn of the event loop, however many there are.
      last = last.then(() => nextTurn());
      await last;
      if (signal?.aborted) throw new GuardFailure('the caller no longer waits for it');
      const end = runSome(work, IN_A_TURN);
      if (end !== undefined) return end.value;
    }
  }

  /** Undefined where there is more to do. */
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
