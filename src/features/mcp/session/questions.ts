// MCP "Elicitation", "Sampling", "Roots" up to 2025-11-25: requests to the client on the stream of
// its own request; the answers come by POSTs, to any replica.
import type { Clock } from '../../../core/clock.ts';
import { fail, GatewayError } from '../../../core/errors/gateway-error.ts';
import { generateQuestionId, isQuestionId } from '../../../core/ids.ts';
import { questionKey } from '../../../core/store/keys.ts';
import type { Store } from '../../../core/store/store.ts';
import { readAnswers } from '../catalog/client-answers.ts';
import {
  type Ask,
  type ClientCapabilities,
  type ClientRequest,
  type ClientRequests,
  lackingCapabilities,
} from '../catalog/client-requests.ts';
import type { Response } from '../protocol/json-rpc.ts';
import type { Line } from '../streaming/response-stream.ts';
import type { Replicas } from './replicas.ts';

export interface Questions {
  /** Asks on the line of one call; a client that cannot answer is never asked. */
  askOn(asker: Asker): Ask;
  /** Hands a client's answer to whoever waits for it, on any replica. */
  answered(sessionId: string, response: Response): Promise<void>;
  /** Waits no longer: a process that stops answers what it can. */
  close(): void;
}

export interface Asker {
  readonly sessionId: string;
  client(): ClientCapabilities;
  readonly line: Line;
  signal(): AbortSignal;
}

/** People take their time; whoever has left does not come back. */
const PATIENCE_MS = 300_000;

/** Answers come no later than this. */
const NOTED_SECONDS = PATIENCE_MS / 1000 + 10;

/** One question under way. */
interface Pending {
  readonly result: Promise<unknown>;
  /** To be called when nobody waits any more. */
  withdraw(): void;
}

export interface QuestionsDeps {
  readonly replicas: Replicas;
  readonly store: Pick<Store, 'get' | 'set' | 'delete'>;
  readonly clock: Clock;
  /** `MCP_SESSION_KEY_PREFIX`. */
  readonly prefix: string;
}

export function createQuestions({ replicas, store, clock, prefix }: QuestionsDeps): Questions {
  const waiting = new Map<string, Waiting>();

  function answerHere(sessionId: string, id: string, result: unknown): boolean {
    const own = waiting.get(keyOf(sessionId, id));
    own?.answer(result);
    return own !== undefined;
  }

  replicas.listen((message) => {
    if (message.about === 'answer') answerHere(message.sessionId, message.id, message.result);
  });

  function put({ sessionId, line, signal }: Asker, request: ClientRequest, id: string): Pending {
    const { promise, resolve, reject } = deferred();
    const giveUp = (details: string) => reject(new GatewayError('client_silent', { details }));
    const leave = () => giveUp('The client left, or cancelled, before it answered.');
    const stopWaiting = clock.after(PATIENCE_MS, () =>
      giveUp(`The client did not answer within ${PATIENCE_MS / 1000} s.`),
    );
    waiting.set(keyOf(sessionId, id), {
      giveUp,
      answer: (result) =>
        result === undefined ? giveUp('The client answered with an error.') : resolve(result),
    });
    const left = signal();
    if (left.aborted) leave();
    else left.addEventListener('abort', leave);
    line.say({ ...request, id });
    return {
      result: promise,
      withdraw() {
        stopWaiting();
        left.removeEventListener('abort', leave);
        waiting.delete(keyOf(sessionId, id));
      },
    };
  }

  async function askAll(asker: Asker, requests: ClientRequests) {
    const questions = Object.entries(requests).map(([key, request]) => {
      // What JSON cannot say fails here, and not when it is on its way.
      JSON.stringify(request);
      return { key, request, id: generateQuestionId() };
    });
    const note = ({ id }: { readonly id: string }) =>
      store.set(questionKey(prefix, asker.sessionId, id), replicas.own, NOTED_SECONDS);
    await Promise.all(questions.map(note)).catch((cause: unknown) =>
      fail('internal_error', { cause }),
    );
    const asked = questions.map(({ key, request, id }) => ({ key, ...put(asker, request, id) }));
    try {
      return Object.fromEntries(
        await Promise.all(asked.map(async ({ key, result }) => [key, await result])),
      );
    } finally {
      for (const { withdraw } of asked) withdraw();
    }
  }

  return {
    askOn: (asker) =>
      async function ask(requests) {
        const lacking = lackingCapabilities(requests, asker.client());
        if (lacking.length > 0) {
          fail('client_cannot_be_asked', {
            details: `The client did not declare ${lacking.join(', ')} when it initialized.`,
          });
        }
        if (!asker.line.isOpen) {
          fail('client_cannot_be_asked', {
            details:
              'The client is asked by a stream; send Accept: application/json, text/event-stream.',
          });
        }
        return readAnswers(requests, await askAll(asker, requests));
      },
    async answered(sessionId, { id, result }) {
      if (!isQuestionId(id) || answerHere(sessionId, id, result)) return;
      // Only to who waits for it: nobody can make replicas talk about what was never asked.
      const key = questionKey(prefix, sessionId, id);
      const replica = await store.get(key);
      if (replica === undefined || replica === replicas.own) return;
      await replicas.send({ about: 'answer', sessionId, id, result }, replica);
      await store.delete(key);
    },
    close() {
      for (const { giveUp } of waiting.values()) giveUp('The service is stopping; call again.');
    },
  };
}

interface Waiting {
  answer(result: unknown): void;
  giveUp(details: string): void;
}

const keyOf = (sessionId: string, id: string): string => `${sessionId} ${id}`;

function deferred() {
  let resolve: (value: unknown) => void = () => {};
  let reject: (reason: unknown) => void = () => {};
  const promise = new Promise<unknown>((settle, refuse) => {
    resolve = settle;
    reject = refuse;
  });
  return { promise, resolve, reject };
}
