// §18.3: outcomes of suspended calls in the store, for the replica where the client's retry waits: sealed, and read once.

import type { JsonRpcErrorObject } from '../../../errors/gateway-error.ts';
import type { ClientCapabilities } from '../../../mcp/catalog/client-requests.ts';
import {
  findQuestionProblem,
  type RequestClient,
  readQuestion,
  refuseAsOver,
  refuseQuestion,
} from '../../../mcp/upstream/server-request.ts';
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

/** The owner of a call; a lookup by another user does not find it. */
export interface CallOwner {
  readonly id: string;
  /** In the form of `nameOwner`; undefined without authentication. */
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

export function createOutcomeRecords({ config, store, log, getSeal }: UpstreamRuntime) {
  const { keyPrefix } = config.mcp.sessions;
  const keptBytes = createKeptBytes(store, keyPrefix, config.upstreams.maxBytes);

  const buildKey = ({ id, user }: CallOwner) =>
    buildSuspendedCallKey(keyPrefix, hashSha256(JSON.stringify([id, user ?? null])));

  /** False if there is no room. */
  async function write({ id, user }: CallOwner, outcome: NextOutcome, size: 'any' | 'small') {
    const key = buildKey({ id, user });
    const written =
      outcome.kind === 'result' ? { ...outcome, result: toRawJson(outcome.result) } : outcome;
    const sealed = (await getSeal()).seal(key, writeExactJson(written));
    const hasRoom = await keptBytes.reserve(user, toEntry(key, sealed), size);
    if (hasRoom) await store.set(key, sealed, TTL_SECONDS);
    return hasRoom;
  }

  return {
    /** If there is no room, the owner gets a note that says so. Never rejects: without the record, the client has to call again. */
    async put(owner: CallOwner, outcome: NextOutcome) {
      try {
        if (!(await write(owner, outcome, 'any'))) await write(owner, NO_ROOM, 'small');
      } catch (cause) {
        log.warn(
          'The outcome of a call at a server could not be written to the store; its client is told to call again.',
          { cause },
        );
      }
    },
    /** If several callers ask at the same moment, only one gets the outcome. */
    async take(owner: CallOwner) {
      const key = buildKey(owner);
      const sealed = await store.getAndDelete(key);
      if (sealed === undefined) return undefined;
      // An entry that cannot be released now counts until it expires.
      await keptBytes.release(owner.user, toEntry(key, sealed)).catch(() => {});
      const text = (await getSeal()).open(key, sealed);
      return text === undefined ? undefined : parseOutcome(text);
    },
  };
}

const toEntry = (name: string, sealed: string) => ({ name, bytes: sealed.length });

// §18.3: bytes of outcomes in the store: a budget for each user, and one for all users of all replicas.

const MEBIBYTE = 1_048_576;
const USER_BYTES = 16 * MEBIBYTE;
const ALL_BYTES = 128 * MEBIBYTE;
/** Budget for the notes that replace outcomes for which there was no room. */
const SMALL_BYTES = MEBIBYTE;
/** Sealing makes an answer a third larger, and its serialized form may be longer than the received one. */
const SEALED_PER_BYTE = 1.5;

/** `maxAnswerBytes` is `MAX_UPSTREAM_BYTES`. */
export function createKeptBytes(
  store: Pick<Windows, 'reserveBytes' | 'releaseBytes'>,
  keyPrefix: string,
  maxAnswerBytes: number,
) {
  // A single answer from a server always fits.
  const oneAnswer = maxAnswerBytes * SEALED_PER_BYTE;
  const listBudgets = createBudgets(
    (owner) => buildSuspendedBytesKey(keyPrefix, owner),
    Math.max(USER_BYTES, oneAnswer),
    Math.max(ALL_BYTES, oneAnswer),
  );

  return {
    /**
     * False if there is no room. Names of entries are unique across all users. A `small` entry may slightly exceed the limit that
     * applies to the others.
     */
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

// The next outcome of a call to a server.

export type NextOutcome =
  | { readonly kind: 'result'; readonly result: JsonObject }
  /** The call continues; `key` names the question in the client's answers. */
  | { readonly kind: 'question'; readonly key: string; readonly question: UpstreamQuestion }
  | {
      readonly kind: 'failed';
      readonly failure: UpstreamFailure;
      readonly message: string;
      readonly jsonRpcError?: JsonRpcErrorObject | undefined;
      /** §24: the user has to log in to the server. */
      readonly login?: Pick<ConnectionNeeded, 'why' | 'scopes'> | undefined;
    };

const toFailedOutcome = (thrown: unknown): NextOutcome =>
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

/** Parses a record that another replica wrote. Undefined for a kind that this version does not know. */
function parseOutcome(text: string): NextOutcome | undefined {
  const written: unknown = parseExactJson(text);
  const { kind, result, key, failure, message, jsonRpcError, login, ...rest } = isObject(written)
    ? written
    : {};
  const question = readQuestion(rest.question);
  if (kind === 'result' && isObject(result)) return { kind, result: toNoted(result) };
  if (kind === 'question' && typeof key === 'string' && question !== undefined)
    return { kind, key, question };
  if (kind !== 'failed' || !isFailure(failure) || typeof message !== 'string') return undefined;
  if (isObject(login)) {
    const why = typeof login.why === 'string' ? login.why : undefined;
    const scopes = isStringArray(login.scopes) ? login.scopes : undefined;
    return { kind, failure, message, login: { why, scopes } };
  }
  return isJsonRpcError(jsonRpcError)
    ? { kind, failure, message, jsonRpcError }
    : { kind, failure, message };
}

const FAILURES: Readonly<Record<UpstreamFailure, true>> = {
  unavailable: true,
  interrupted: true,
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

// §18.3: a call of a stateless client. It may outlive the request that began it: a server that asks waits for the answer, which
// arrives with a later request from the client.

/** The request that waits for the call's outcome; there is at most one. */
export interface Waiter {
  /** Receives the params of notifications. */
  progress(params: JsonObject): void;
  log(params: JsonObject): void;
  /** Called once. If the outcome is a question, the call is not over. */
  settle(outcome: NextOutcome): void;
}

export interface CallAtServer {
  readonly capabilities: ClientCapabilities;
  send(client: Pick<RequestClient, 'signal' | 'progress' | 'log' | 'answer'>): Promise<JsonObject>;
}

/** Keeps waiting calls. */
interface CallKeeper {
  /** False if the call cannot wait for an answer to its question: too many calls are waiting, or they use too much memory. */
  suspend(): boolean;
  /** The call has ended. `untold` are outcomes that no request was waiting for. */
  end(untold: NextOutcome | undefined): void;
}

interface OpenQuestion {
  readonly question: UpstreamQuestion;
  readonly bytes: number;
  resolve(answer: JsonObject): void;
  reject(reason: UpstreamError): void;
}

/** A client that asks a person needs time, but one that never returns must not keep the call open. */
const ABANDONED_MS = 300_000;

const TOO_MANY =
  'Too many calls of this user, or too large questions, wait for answers; answer those first.';

export class OpenCall {
  private readonly clock: Clock;
  private readonly capabilities: ClientCapabilities;
  private readonly keeper: CallKeeper;
  private readonly cancellation = new Cancellation();
  /** Unanswered questions, oldest first: the client gets them one after another. */
  private readonly questions = new Map<string, OpenQuestion>();
  private asked = 0;
  private waiter: Waiter | undefined;
  private isOver = false;
  private stopCounting = () => {};

  constructor(clock: Clock, capabilities: ClientCapabilities, first: Waiter, keeper: CallKeeper) {
    this.clock = clock;
    this.capabilities = capabilities;
    this.waiter = first;
    this.keeper = keeper;
  }

  start(send: CallAtServer['send']): void {
    send({
      signal: this.cancellation,
      progress: (params) => this.waiter?.progress(params),
      log: (params) => this.waiter?.log(params),
      answer: (question, cancelled) => this.ask(question, cancelled),
    }).then(
      (result) => this.finish({ kind: 'result', result }),
      (thrown: unknown) => this.finish(toFailedOutcome(thrown)),
    );
  }

  /** Makes this request wait for the outcome instead of the previous one, which fails as aborted. */
  wait(next: Waiter): void {
    this.stopCounting();
    this.tell({ kind: 'failed', failure: 'aborted', message: 'The client called again.' });
    this.waiter = next;
    this.tellQuestion();
  }

  isWaitedFor(by: Waiter | undefined): boolean {
    return this.waiter !== undefined && this.waiter === by;
  }

  /** The size of the unanswered questions. */
  countQuestionBytes(): number {
    return [...this.questions.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Ignores a second answer, and anything that is not an answer. */
  answer(key: string, answer: unknown): void {
    const open = this.questions.get(key);
    if (open === undefined || !isObject(answer)) return;
    this.questions.delete(key);
    open.resolve(answer);
  }

  /** The client gave up the call: cancels it at the server. */
  cancel(reason: string): void {
    if (this.isOver) return;
    this.close(reason);
    this.cancellation.abort();
    this.tell({ kind: 'failed', failure: 'aborted', message: reason });
    this.keeper.end(undefined);
  }

  /** Resolves to the client's answer. A question that the server cancels is dropped, and so is its answer. */
  private async ask(question: UpstreamQuestion, cancelled: CancelSignal): Promise<JsonObject> {
    const problem = findQuestionProblem(question, this.capabilities);
    if (problem !== undefined) throw refuseQuestion(problem.message, problem.code);
    if (this.isOver) throw refuseAsOver('The call is over.');
    this.asked += 1;
    const key = `question-${this.asked}`;
    const bytes = Buffer.byteLength(JSON.stringify(question));
    const answer = new Promise<JsonObject>((resolve, reject) => {
      this.questions.set(key, { question, bytes, resolve, reject });
      cancelled.addEventListener('abort', () =>
        this.refuse(key, refuseQuestion('The server no longer asks.')),
      );
    });
    if (this.keeper.suspend()) this.tellQuestion();
    else this.refuse(key, refuseQuestion(TOO_MANY));
    return answer;
  }

  /** Answers the question with an error. */
  private refuse(key: string, reason: UpstreamError): void {
    const open = this.questions.get(key);
    if (this.questions.delete(key)) open?.reject(reason);
  }

  private tellQuestion(): void {
    const [first] = this.questions;
    if (first === undefined) return;
    const [key, { question }] = first;
    if (!this.tell({ kind: 'question', key, question })) return;
    this.stopCounting = this.clock.after(ABANDONED_MS, () =>
      this.cancel(`The client did not come back within ${ABANDONED_MS / 1000} s.`),
    );
  }

  /** Returns false if no request is waiting. */
  private tell(outcome: NextOutcome): boolean {
    const told = this.waiter;
    this.waiter = undefined;
    told?.settle(outcome);
    return told !== undefined;
  }

  private finish(outcome: NextOutcome): void {
    if (this.isOver) return;
    this.close('The call is over.');
    this.keeper.end(this.tell(outcome) ? undefined : outcome);
  }

  /** Answers each question with an error, unless another call can be asked instead. */
  private close(reason: string): void {
    this.isOver = true;
    this.stopCounting();
    for (const key of [...this.questions.keys()]) this.refuse(key, refuseAsOver(reason));
  }
}
