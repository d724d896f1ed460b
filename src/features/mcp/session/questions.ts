// MCP "Elicitation", "Sampling", "Roots" up to 2025-11-25: requests to the client on the stream of
// its own request; the answers come by POSTs, to any replica.
import type { Clock } from '../../../core/clock.ts';
import { fail, GatewayError } from '../../../core/errors/gateway-error.ts';
import { generateQuestionId, isQuestionId } from '../../../core/ids.ts';
import { questionKey } from '../../../core/store/keys.ts';
import type { SessionRecord, Store } from '../../../core/store/store.ts';
import type { Call } from '../calls/call.ts';
import { readAnswers } from '../calls/client-answers.ts';
import {
  type Answers,
  type ClientRequest,
  type ClientRequests,
  findMissingCapabilities,
} from '../catalog/client-requests.ts';
import type { JsonRpcResponse } from '../protocol/json-rpc.ts';
import { readStoredCapabilities } from './initialize.ts';
import type { Replicas } from './replicas.ts';

export interface Questions {
  /**
   * Asks the client on the stream of one call, and resolves to its answers by key. A client that
   * cannot answer is never asked.
   */
  ask<const Requests extends ClientRequests>(
    call: Call,
    session: SessionRecord,
    requests: Requests,
  ): Promise<Answers<Requests>>;
  /** Passes a client's answer to whoever waits for it, on any replica. */
  receiveAnswer(sessionId: string, response: JsonRpcResponse): Promise<void>;
  /** Waits no longer: a process that stops answers what it can. */
  close(): void;
}

/** Long enough for a person to answer. */
const ANSWER_TIMEOUT_MS = 300_000;

/** Of the note which replica waits; a little longer than an answer may take. */
const NOTE_TTL_SECONDS = ANSWER_TIMEOUT_MS / 1000 + 10;

/** One question under way. */
interface Question {
  readonly answer: Promise<unknown>;
  /** To be called when nobody waits for the answer any more. */
  forget(): void;
}

/** Who waits for the answer to a question. */
interface Waiter {
  receive(answer: unknown): void;
  giveUp(details: string): void;
}

export interface QuestionsDeps {
  readonly replicas: Replicas;
  readonly store: Pick<Store, 'get' | 'set' | 'delete'>;
  readonly clock: Clock;
  /** `MCP_SESSION_KEY_PREFIX`. */
  readonly prefix: string;
}

export function createQuestions({ replicas, store, clock, prefix }: QuestionsDeps): Questions {
  const waiters = new Map<string, Waiter>();

  function receiveHere(sessionId: string, id: string, answer: unknown): boolean {
    const waiter = waiters.get(toWaiterKey(sessionId, id));
    waiter?.receive(answer);
    return waiter !== undefined;
  }

  replicas.listen((message) => {
    if (message.about === 'answer') receiveHere(message.sessionId, message.id, message.result);
  });

  function sendQuestion(call: Call, key: string, id: string, request: ClientRequest): Question {
    const { promise, resolve, reject } = createDeferred();
    const giveUp = (details: string) => reject(new GatewayError('client_silent', { details }));
    const giveUpOnAbort = () => giveUp('The client disconnected or cancelled before it answered.');
    const cancelTimeout = clock.after(ANSWER_TIMEOUT_MS, () =>
      giveUp(`The client did not answer within ${ANSWER_TIMEOUT_MS / 1000} s.`),
    );
    waiters.set(key, {
      giveUp,
      receive: (answer) =>
        answer === undefined ? giveUp('The client answered with an error.') : resolve(answer),
    });
    const signal = call.signal();
    if (signal.aborted) giveUpOnAbort();
    else signal.addEventListener('abort', giveUpOnAbort);
    call.stream.send({ ...request, id });
    return {
      answer: promise,
      forget() {
        cancelTimeout();
        signal.removeEventListener('abort', giveUpOnAbort);
        waiters.delete(key);
      },
    };
  }

  async function askAll(call: Call, sessionId: string, requests: ClientRequests) {
    const named = Object.entries(requests).map(([name, request]) => {
      // A request that JSON cannot say fails here, before anything is sent.
      JSON.stringify(request);
      return { name, request, id: generateQuestionId() };
    });
    const noteWaitingReplica = ({ id }: { readonly id: string }) =>
      store.set(questionKey(prefix, sessionId, id), replicas.ownName, NOTE_TTL_SECONDS);
    await Promise.all(named.map(noteWaitingReplica)).catch((cause: unknown) =>
      fail('internal_error', { cause }),
    );
    const questions = named.map(({ name, request, id }) => ({
      name,
      ...sendQuestion(call, toWaiterKey(sessionId, id), id, request),
    }));
    try {
      return Object.fromEntries(
        await Promise.all(questions.map(async ({ name, answer }) => [name, await answer])),
      );
    } finally {
      for (const { forget } of questions) forget();
    }
  }

  return {
    async ask(call, { sessionId, clientCapabilities }, requests) {
      const missing = findMissingCapabilities(requests, readStoredCapabilities(clientCapabilities));
      if (missing.length > 0) {
        fail('client_cannot_be_asked', {
          details: `The client did not declare ${missing.join(', ')} when it initialized.`,
        });
      }
      if (!call.stream.isAccepted) {
        fail('client_cannot_be_asked', {
          details:
            'Questions reach the client on an event stream: send Accept: application/json, text/event-stream.',
        });
      }
      return readAnswers(requests, await askAll(call, sessionId, requests));
    },
    async receiveAnswer(sessionId, { id, result }) {
      if (!isQuestionId(id) || receiveHere(sessionId, id, result)) return;
      // Sent only to the replica that asked: what nobody asked for is sent to none.
      const key = questionKey(prefix, sessionId, id);
      const replica = await store.get(key);
      if (replica === undefined || replica === replicas.ownName) return;
      await replicas.send({ about: 'answer', sessionId, id, result }, replica);
      await store.delete(key);
    },
    close() {
      for (const { giveUp } of waiters.values()) giveUp('The service is stopping; call again.');
    },
  };
}

const toWaiterKey = (sessionId: string, id: string): string => `${sessionId} ${id}`;

function createDeferred() {
  let resolve: (value: unknown) => void = () => {};
  let reject: (reason: unknown) => void = () => {};
  const promise = new Promise<unknown>((settle, refuse) => {
    resolve = settle;
    reject = refuse;
  });
  return { promise, resolve, reject };
}
