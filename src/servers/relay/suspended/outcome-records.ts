// §18.3: what a call came to, for the replica where the client's retry waits: sealed, for one use.

import type { JsonRpcErrorObject } from '../../../errors/gateway-error.ts';
import type { ClientCapabilities } from '../../../mcp/catalog/client-requests.ts';
import {
  findQuestionProblem,
  readQuestion,
  refuseAsOver,
  refuseQuestion,
} from '../../../mcp/upstream/questions.ts';
import type { RequestClient } from '../../../mcp/upstream/server-request.ts';
import {
  ConnectionNeeded,
  UpstreamError,
  type UpstreamFailure,
  type UpstreamQuestion,
  type UpstreamRuntime,
} from '../../../mcp/upstream/upstream.ts';
import { Cancellation, type CancelSignal } from '../../../platform/cancellation.ts';
import type { Clock } from '../../../platform/clock.ts';
import { parseExactJson, writeExactJson } from '../../../platform/exact-json.ts';
import { hashSha256 } from '../../../platform/ids.ts';
import { isObject, isStringArray, type JsonObject } from '../../../platform/json.ts';
import { toNoted, toRawJson } from '../../../platform/noted-json.ts';
import { createBudgets, releaseInAll, reserveInAll } from '../../../store/budgets.ts';
import { buildSuspendedBytesKey, buildSuspendedCallKey } from '../../../store/keys.ts';
import type { ByteEntry, Windows } from '../../../store/store.ts';

/** Another user's look does not find it. */
export interface CallOwner {
  readonly id: string;
  /** As `nameOwner` has it; undefined without authentication. */
  readonly user: string | undefined;
}

export type OutcomeRecords = ReturnType<typeof createOutcomeRecords>;

const TTL_SECONDS = 300;

const NO_ROOM: NextOutcome = {
  kind: 'failed',
  failure: 'overloaded',
  message:
    'it came before your answer to its question, and too much is kept already until clients come back for it',
};

export function createOutcomeRecords({ config, store, getSeal }: UpstreamRuntime) {
  const { keyPrefix } = config.mcp.sessions;
  const keptBytes = createKeptBytes(store, keyPrefix, config.upstreams.maxBytes);

  const buildKey = ({ id, user }: CallOwner) =>
    buildSuspendedCallKey(keyPrefix, hashSha256(JSON.stringify([id, user ?? null])));

  /** False where there is no room. */
  async function write(
    { id, user }: CallOwner,
    outcome: NextOutcome,
    size: 'any' | 'small',
  ): Promise<boolean> {
    const key = buildKey({ id, user });
    const sealed = (await getSeal()).seal(key, writeOutcome(outcome));
    const hasRoom = await keptBytes.reserve(user, toEntry(key, sealed), size);
    if (hasRoom) await store.set(key, sealed, TTL_SECONDS);
    return hasRoom;
  }

  return {
    /** The owner is told so if there is no room for it. */
    async put(owner: CallOwner, outcome: NextOutcome) {
      if (!(await write(owner, outcome, 'any'))) await write(owner, NO_ROOM, 'small');
    },
    /** For one of many at the same moment. */
    async take(owner: CallOwner) {
      const key = buildKey(owner);
      const sealed = await store.getAndDelete(key);
      if (sealed === undefined) return undefined;
      // An entry that cannot be released now counts until its time is over.
      await keptBytes.release(owner.user, toEntry(key, sealed)).catch(() => {});
      const text = (await getSeal()).open(key, sealed);
      return text === undefined ? undefined : parseOutcome(text);
    },
  };
}

const toEntry = (name: string, sealed: string) => ({ name, bytes: sealed.length });

// §18.3: how much of what calls came to lies in the store: a budget for each user, and one for all users of all replicas.

const MEBIBYTE = 1_048_576;
const USER_BYTES = 16 * MEBIBYTE;
const ALL_BYTES = 128 * MEBIBYTE;
/** For what is told in place of answers that had no room. */
const SMALL_BYTES = MEBIBYTE;
/** Sealing makes a third more of an answer; and it may be written longer than it came. */
const SEALED_PER_BYTE = 1.5;

/** `maxAnswerBytes` is `MAX_UPSTREAM_BYTES`. */
export function createKeptBytes(
  store: Pick<Windows, 'reserveBytes' | 'releaseBytes'>,
  keyPrefix: string,
  maxAnswerBytes: number,
) {
  // One answer of a server has room.
  const oneAnswer = maxAnswerBytes * SEALED_PER_BYTE;
  const listBudgets = createBudgets(
    (owner) => buildSuspendedBytesKey(keyPrefix, owner),
    Math.max(USER_BYTES, oneAnswer),
    Math.max(ALL_BYTES, oneAnswer),
  );

  return {
    /** False where there is no room. Entries of all users have names of their own. A `small` entry may go a little beyond what the others may fill. */
    reserve(user: string | undefined, entry: ByteEntry, size: 'any' | 'small') {
      const more = size === 'small' ? SMALL_BYTES : 0;
      const budgets = listBudgets(user).map(({ key, maxBytes }) => ({
        key,
        maxBytes: maxBytes + more,
      }));
      return reserveInAll(store, budgets, entry, TTL_SECONDS);
    },
    release: (user: string | undefined, entry: ByteEntry) =>
      releaseInAll(store, listBudgets(user), entry),
  };
}

// The next outcome of a call at a server.

export type NextOutcome =
  | { readonly kind: 'result'; readonly result: JsonObject }
  /** The call goes on; `key` names the question in what the client answers. */
  | { readonly kind: 'question'; readonly key: string; readonly question: UpstreamQuestion }
  | {
      readonly kind: 'failed';
      readonly failure: UpstreamFailure;
      readonly message: string;
      readonly jsonRpcError?: JsonRpcErrorObject | undefined;
      /** §24: its user has to log in at the server. */
      readonly login?: Pick<ConnectionNeeded, 'why' | 'scopes'> | undefined;
    };

export const toFailedOutcome = (thrown: unknown): NextOutcome =>
  thrown instanceof UpstreamError
    ? {
        kind: 'failed',
        failure: thrown.failure,
        message: thrown.message,
        jsonRpcError: thrown.jsonRpcError,
        ...(thrown instanceof ConnectionNeeded && {
          login: { why: thrown.why, scopes: thrown.scopes },
        }),
      }
    : { kind: 'failed', failure: 'invalid', message: 'the call failed unexpectedly' };

export const toUpstreamError = ({
  failure,
  message,
  jsonRpcError,
  login,
}: Extract<NextOutcome, { kind: 'failed' }>): UpstreamError =>
  login === undefined
    ? new UpstreamError(failure, message, jsonRpcError && { jsonRpcError })
    : new ConnectionNeeded(login);

const writeOutcome = (outcome: NextOutcome): string =>
  writeExactJson(
    outcome.kind === 'result' ? { ...outcome, result: toRawJson(outcome.result) } : outcome,
  );

/** Reads what another replica wrote. Undefined for what this version does not know. */
function parseOutcome(text: string): NextOutcome | undefined {
  const written: unknown = parseExactJson(text);
  const { kind, result, key, failure, message, jsonRpcError, login, ...rest } = isObject(written)
    ? written
    : {};
  const question = readQuestion(rest.question);
  if (kind === 'result' && isObject(result)) return { kind, result: toNoted(result) };
  if (kind === 'question' && typeof key === 'string' && question !== undefined) {
    return { kind, key, question };
  }
  if (kind !== 'failed' || !isFailure(failure) || typeof message !== 'string') return undefined;
  if (isObject(login)) return { kind, failure, message, login: readLogin(login) };
  return isJsonRpcError(jsonRpcError)
    ? { kind, failure, message, jsonRpcError }
    : { kind, failure, message };
}

const readLogin = ({ why, scopes }: JsonObject) => ({
  why: typeof why === 'string' ? why : undefined,
  scopes: isStringArray(scopes) ? scopes : undefined,
});

const FAILURES: Readonly<Record<UpstreamFailure, true>> = {
  unavailable: true,
  timeout: true,
  session_lost: true,
  invalid: true,
  overloaded: true,
  aborted: true,
  error: true,
};

const isFailure = (value: unknown): value is UpstreamFailure =>
  typeof value === 'string' && Object.hasOwn(FAILURES, value);

const isJsonRpcError = (value: unknown): value is JsonRpcErrorObject =>
  isObject(value) && typeof value.code === 'number' && typeof value.message === 'string';

// §18.3: a call of a stateless client. It may outlive the request that began it: a server that asks waits for the
// answer, which comes with a later request of the client.

/** The request that waits for what the call comes to; there is one at most. */
export interface Waiter {
  /** Params of notifications. */
  progress(params: JsonObject): void;
  log(params: JsonObject): void;
  /** Called once; the call is not over where it is a question. */
  settle(outcome: NextOutcome): void;
}

export interface OpenCall {
  /** Waits in place of the one that waited, which is told that the call is over for it. */
  wait(waiter: Waiter): void;
  isWaitedFor(by: Waiter | undefined): boolean;
  /** Size of those that have no answer. */
  countQuestionBytes(): number;
  /** A second answer, and what is no answer, changes nothing. */
  answer(key: string, answer: unknown): void;
  /** Nobody wants it any more: the server is told. */
  cancel(reason: string): void;
}

export interface CallAtServer {
  readonly capabilities: ClientCapabilities;
  send(client: Pick<RequestClient, 'signal' | 'progress' | 'log' | 'answer'>): Promise<JsonObject>;
}

/** Keeps calls that wait. */
interface CallKeeper {
  /** False where it cannot wait for an answer to what it asks now: too many do, or they keep too much. */
  suspend(call: OpenCall): boolean;
  /** It is over. `untold` is what nobody waited for. */
  end(untold: NextOutcome | undefined): void;
}

/** A client that asks a person needs its time; one that never comes back must not keep the call. */
const ABANDONED_MS = 300_000;

const TOO_MANY =
  'Too many calls of this user, or too large questions, wait for answers; answer those first.';

export function startOpenCall(
  clock: Clock,
  { capabilities, send }: CallAtServer,
  first: Waiter,
  { suspend, end }: CallKeeper,
): OpenCall {
  const cancellation = new Cancellation();
  const questions = createOpenQuestions();
  let waiter: Waiter | undefined = first;
  let isOver = false;
  let stopCounting = () => {};

  async function ask(question: UpstreamQuestion, cancelled: CancelSignal): Promise<JsonObject> {
    const problem = findQuestionProblem(question, capabilities);
    if (problem !== undefined) throw refuseQuestion(problem.message, problem.code);
    if (isOver) throw refuseAsOver('The call is over.');
    const { key, answer } = questions.add(question, cancelled);
    if (suspend(openCall)) tellQuestion();
    else questions.refuse(key, TOO_MANY);
    return answer;
  }

  function tellQuestion(): void {
    const open = questions.getFirst();
    if (open === undefined || !tell({ kind: 'question', ...open })) return;
    stopCounting = clock.after(ABANDONED_MS, () =>
      cancel(`The client did not come back within ${ABANDONED_MS / 1000} s.`),
    );
  }

  /** False when nobody waits. */
  function tell(outcome: NextOutcome): boolean {
    const told = waiter;
    waiter = undefined;
    told?.settle(outcome);
    return told !== undefined;
  }

  function finish(outcome: NextOutcome): void {
    if (isOver) return;
    close('The call is over.');
    end(tell(outcome) ? undefined : outcome);
  }

  function cancel(reason: string): void {
    if (isOver) return;
    close(reason);
    cancellation.abort();
    tell({ kind: 'failed', failure: 'aborted', message: reason });
    end(undefined);
  }

  function close(reason: string): void {
    isOver = true;
    stopCounting();
    questions.refuseAll(reason);
  }

  const openCall: OpenCall = {
    wait(next) {
      stopCounting();
      tell({ kind: 'failed', failure: 'aborted', message: 'The client called again.' });
      waiter = next;
      tellQuestion();
    },
    isWaitedFor: (by) => waiter !== undefined && waiter === by,
    countQuestionBytes: questions.countBytes,
    answer: questions.answer,
    cancel,
  };
  send({
    signal: cancellation,
    progress: (params) => waiter?.progress(params),
    log: (params) => waiter?.log(params),
    answer: ask,
  }).then(
    (result) => finish({ kind: 'result', result }),
    (thrown: unknown) => finish(toFailedOutcome(thrown)),
  );
  return openCall;
}

// Questions of one call that have no answer yet.

interface OpenQuestion {
  readonly question: UpstreamQuestion;
  readonly bytes: number;
  resolve(answer: JsonObject): void;
  reject(reason: UpstreamError): void;
}

function createOpenQuestions() {
  const questions = new Map<string, OpenQuestion>();
  let asked = 0;

  function giveUp(key: string, reason: UpstreamError): void {
    const open = questions.get(key);
    if (questions.delete(key)) open?.reject(reason);
  }

  const refuse = (key: string, reason: string): void => giveUp(key, refuseQuestion(reason));

  return {
    /** Resolves to the client's answer; one that the server cancels is not told, and its answer changes nothing. */
    add(question: UpstreamQuestion, cancelled: CancelSignal) {
      asked += 1;
      const key = `question-${asked}`;
      const bytes = Buffer.byteLength(JSON.stringify(question));
      const answer = new Promise<JsonObject>((resolve, reject) => {
        questions.set(key, { question, bytes, resolve, reject });
        cancelled.addEventListener('abort', () => refuse(key, 'The server no longer asks.'));
      });
      return { key, answer };
    },
    /** The oldest: they are told one after the other. */
    getFirst() {
      const [first] = questions;
      return first && { key: first[0], question: first[1].question };
    },
    /** A second answer, and what is no answer, changes nothing. */
    answer(key: string, answer: unknown) {
      const open = questions.get(key);
      if (open === undefined || !isObject(answer)) return;
      questions.delete(key);
      open.resolve(answer);
    },
    /** The server gets an error. */
    refuse,
    /** The server gets an error for each, unless another call can be asked in place of this one. */
    refuseAll(reason: string) {
      for (const key of [...questions.keys()]) giveUp(key, refuseAsOver(reason));
    },
    countBytes: () => [...questions.values()].reduce((sum, { bytes }) => sum + bytes, 0),
  };
}
