// §18.3: a call of a stateless client. It may outlive the request that began it: a server that asks waits for the
// answer, which comes with a later request of the client.

import type { ClientCapabilities } from '../../../mcp/catalog/client-requests.ts';
import {
  findQuestionProblem,
  refuseAsOver,
  refuseQuestion,
} from '../../../mcp/upstream/questions.ts';
import type { RequestClient } from '../../../mcp/upstream/server-request.ts';
import type { UpstreamError, UpstreamQuestion } from '../../../mcp/upstream/upstream.ts';
import { Cancellation, type CancelSignal } from '../../../platform/cancellation.ts';
import type { Clock } from '../../../platform/clock.ts';
import { isObject, type JsonObject } from '../../../platform/json.ts';
import { type NextOutcome, toFailedOutcome } from './outcome-records.ts';

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
