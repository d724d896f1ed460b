// MCP "Elicitation", "Sampling", "Roots" up to 2025-11-25: server-initiated requests on the stream of the client's own request;
// answers arrive as POSTs, on any replica.

import { randomUUID } from 'node:crypto';
import { fail, failInternal, GatewayError } from '../../errors/gateway-error.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { hashSha256, isQuestionId } from '../../platform/ids.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { readExact, toRawMembers } from '../../platform/noted-json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildElicitationKey, buildQuestionKey } from '../../store/keys.ts';
import type { SessionRecord } from '../../store/store.ts';
import type { Call } from '../calls/call.ts';
import { readAnswers, URL_REQUIRED } from '../calls/client-answers.ts';
import { passAnswers, passQuestions, type Question, type QuestionGuards } from '../calls/guards.ts';
import type { RawAnswer } from '../catalog/catalog.ts';
import {
  type Answers,
  type ClientRequest,
  type ClientRequests,
  findMissingCapabilities,
} from '../catalog/client-requests.ts';
import { isJsonRpcError, isShortId, type JsonRpcResponse } from '../protocol/json-rpc.ts';
import { type McpReplicas, readStoredCapabilities } from './sessions.ts';

/** Long enough for a person to answer. */
const ANSWER_TIMEOUT_MS = 300_000;
/** Time to live of the record that names the waiting replica; a little longer than the timeout. */
const NOTE_TTL_SECONDS = ANSWER_TIMEOUT_MS / 1000 + 10;

/** @throws GatewayError `client_cannot_be_asked`. */
function checkCanBeAsked(
  { stream }: Call,
  { clientCapabilities }: SessionRecord,
  requests: Readonly<Record<string, Question | ClientRequest>>,
) {
  const missing = findMissingCapabilities(requests, readStoredCapabilities(clientCapabilities));
  if (missing.length > 0)
    fail('client_cannot_be_asked', {
      details: `The client did not declare ${missing.join(', ')} when it initialized.`,
    });
  if (!stream.isAccepted)
    fail('client_cannot_be_asked', {
      details:
        'Questions reach the client on an event stream: send Accept: application/json, text/event-stream.',
    });
}

export type SessionQuestions = ReturnType<typeof createSessionQuestions>;

export function createSessionQuestions(runtime: Runtime, replicas: McpReplicas) {
  const { config, store, clock } = runtime;
  const { keyPrefix } = config.mcp.sessions;
  const waiters = new Map<string, Waiter>();
  const { noteAsked, ...elicitations } = createElicitations(runtime);

  replicas.listen((message) => {
    if (message.about !== 'answer') return;
    passToWaiter(message.sessionId, message.id, message);
  });

  const buildWaiterKey = (sessionId: string, id: string) => `${sessionId} ${id}`;

  /** False if no call waits for it here. */
  function passToWaiter(sessionId: string, id: string, answer: ClientAnswer) {
    const waiter = waiters.get(buildWaiterKey(sessionId, id));
    waiter?.receive(answer);
    return waiter !== undefined;
  }

  /** Waits for an answer, until `signal` or the timeout. */
  function wait(sessionId: string, id: string, signal: CancelSignal) {
    const key = buildWaiterKey(sessionId, id);
    let receive: Waiter['receive'] = () => {};
    let giveUp: Waiter['giveUp'] = () => {};
    const answer = new Promise<ClientAnswer>((resolve, reject) => {
      receive = resolve;
      giveUp = (details) => reject(new GatewayError('client_silent', { details }));
    });
    const giveUpOnAbort = () => giveUp('The client disconnected or cancelled before it answered.');
    const cancelTimeout = clock.after(ANSWER_TIMEOUT_MS, () =>
      giveUp(`The client did not answer within ${ANSWER_TIMEOUT_MS / 1000} s.`),
    );
    waiters.set(key, { giveUp, receive });
    if (signal.aborted) giveUpOnAbort();
    else signal.addEventListener('abort', giveUpOnAbort);
    return {
      answer,
      giveUp,
      /** To be called when the answer is no longer needed. */
      forget() {
        cancelTimeout();
        signal.removeEventListener('abort', giveUpOnAbort);
        waiters.delete(key);
      },
    };
  }

  async function askAll<Answer>(
    call: Call,
    requests: Readonly<Record<string, Question>>,
    readAnswer: (answer: ClientAnswer) => Answer,
    cancelled?: CancelSignal,
  ): Promise<readonly (readonly [string, Answer])[]> {
    const { sessionId = '' } = call;
    const named = Object.entries(requests).map(([name, request]) => {
      // A request that cannot be serialized fails here, before anything is sent.
      writeExactJson(request);
      // A UUID, so that no other id looks like it by chance.
      return { name, request, id: randomUUID() };
    });
    const notes = named.map(({ id }) =>
      store.set(buildQuestionKey(keyPrefix, sessionId, id), replicas.ownName, NOTE_TTL_SECONDS),
    );
    await Promise.all(notes).catch(failInternal);
    if (cancelled?.aborted) fail('client_silent', { details: CANCELLED });
    if (call.stream.isAnswered) fail('request_cancelled', { details: 'The call is over.' });
    const questions = named.map(({ name, request, id }) => {
      const question = wait(sessionId, id, call.signal());
      call.stream.send({ ...request, id });
      if (request.method === 'elicitation/create') noteAsked(call, sessionId, request.params);
      return { name, id, ...question };
    });
    const cancelAll = () => {
      for (const { id, giveUp } of questions) {
        const params = { requestId: id, reason: CANCELLED };
        call.stream.send({ method: 'notifications/cancelled', params });
        giveUp(CANCELLED);
      }
    };
    cancelled?.addEventListener('abort', cancelAll);
    try {
      return await Promise.all(
        questions.map(async ({ name, answer }) => [name, readAnswer(await answer)] as const),
      );
    } finally {
      cancelled?.removeEventListener('abort', cancelAll);
      for (const { forget } of questions) forget();
    }
  }

  return {
    ...elicitations,
    /**
     * Asks the client on the stream of one call, and resolves to its answers by key. Clients without the capability are not asked.
     */
    async ask<const Requests extends ClientRequests>(
      call: Call,
      session: SessionRecord,
      requests: Requests,
      guards: QuestionGuards | undefined,
    ): Promise<Answers<Requests>> {
      checkCanBeAsked(call, session, requests);
      const asked = await passQuestions(requests, guards);
      const answers = await askAll(call, asked, getResult);
      return readAnswers(
        requests,
        await passAnswers(requests, Object.fromEntries(answers), guards),
      );
    },
    /** Relays one request of a server unchanged; resolves to the client's response, unchanged. */
    async askRaw(
      call: Call,
      session: SessionRecord,
      request: Question,
      cancelled?: CancelSignal,
    ): Promise<RawAnswer> {
      checkCanBeAsked(call, session, { request });
      const [answer] = await askAll(call, { request }, readRawAnswer, cancelled);
      return answer?.[1] ?? failAnswer();
    },
    /** Delivers a client's answer to the waiting call, on any replica. */
    async receiveAnswer(sessionId: string, { id, result, error }: JsonRpcResponse): Promise<void> {
      const answer = { result, error };
      if (!isQuestionId(id) || passToWaiter(sessionId, id, answer)) return;
      // Sent only to the replica that asked: unsolicited answers are dropped.
      const key = buildQuestionKey(keyPrefix, sessionId, id);
      const replica = await store.get(key);
      if (replica === undefined || replica === replicas.ownName) return;
      await replicas.send({ about: 'answer', sessionId, id, ...toRawMembers(answer) }, replica);
      await store.delete(key);
    },
    /** Cancels all waits because the process is stopping. */
    close(): void {
      for (const { giveUp } of waiters.values()) giveUp('The service is stopping; call again.');
    },
  };
}

const CANCELLED = 'The server no longer wants an answer.';

const getResult = ({ result }: ClientAnswer): unknown =>
  result === undefined ? failAnswer() : result;

const failAnswer = (): never =>
  fail('client_silent', { details: 'The client answered with an error.' });

function readRawAnswer({ result, error }: ClientAnswer): RawAnswer {
  if (isObject(result)) return { result };
  if (!isJsonRpcError(error)) return failAnswer();
  const { data } = error.data === undefined ? error : readExact(error);
  return { error: { ...error, ...(data !== undefined && { data }) } };
}

// Requests that this replica waits for.

/** As sent by the client; `result` is undefined for an error. */
interface ClientAnswer {
  readonly result?: unknown;
  readonly error?: unknown;
}

interface Waiter {
  receive(answer: ClientAnswer): void;
  giveUp(details: string): void;
}

// MCP 2025-11-25 "URL mode elicitation": the requests that a session was sent. Only these can be completed: any other id was seen
// by no guard, or belongs to another session or server.

/** Time for the user to open the page. */
const TTL_SECONDS = 3600;
/** Ids remembered for one call, and for one error; the oldest are forgotten first. */
const MAX_REMEMBERED = 100;
const MAX_OF_ERROR = 16;

function createElicitations({ config, store }: Runtime) {
  const { keyPrefix } = config.mcp.sessions;
  const ofCalls = new WeakMap<Call, Set<string>>();

  const buildKey = (sessionId: string, elicitationId: string, server: unknown = '') =>
    buildElicitationKey(keyPrefix, sessionId, hashSha256(`${server} ${elicitationId}`));

  /** Best effort: if the store is unavailable, the client continues without the notification. */
  function note(sessionId: string, elicitationId: string | undefined, server: unknown) {
    if (elicitationId === undefined) return;
    const key = buildKey(sessionId, elicitationId, server);
    store.set(key, 'asked', TTL_SECONDS).catch(() => {});
  }

  return {
    /** Records a request that the client of the call was sent. */
    noteAsked(call: Call, sessionId: string, params: object): void {
      const elicitationId = readId(params);
      if (elicitationId === undefined) return;
      const asked = ofCalls.get(call) ?? new Set();
      ofCalls.set(call, asked.add(elicitationId));
      const [first] = asked;
      if (asked.size > MAX_REMEMBERED && first !== undefined) asked.delete(first);
      note(sessionId, elicitationId, call.record.server);
    },
    /** Notifies the client of a call; false if the call did not ask it, or was notified before. */
    completeElicitation(call: Call, sessionId: string, elicitationId: string): boolean {
      if (ofCalls.get(call)?.delete(elicitationId) !== true) return false;
      call.stream.send({ method: 'notifications/elicitation/complete', params: { elicitationId } });
      store.delete(buildKey(sessionId, elicitationId, call.record.server)).catch(() => {});
      return true;
    },
    /** Records the pages in an error that asks the user of the session to open them first. */
    noteRequired(sessionId: string, { failure: { jsonRpc, facts } }: GatewayError): void {
      const { elicitations }: JsonObject = isObject(jsonRpc?.data) ? jsonRpc.data : {};
      if (jsonRpc?.code !== URL_REQUIRED || !Array.isArray(elicitations)) return;
      for (const params of elicitations.slice(0, MAX_OF_ERROR))
        note(sessionId, readId(params), facts?.server);
    },
    /** True once, if the session was sent the request on any replica and has not been notified. */
    takeElicitation: async (
      sessionId: string,
      elicitationId: string,
      server: string | undefined,
    ): Promise<boolean> =>
      isShortId(elicitationId) &&
      (await store.getAndDelete(buildKey(sessionId, elicitationId, server))) !== undefined,
  };
}

function readId(params: unknown) {
  const { elicitationId }: JsonObject = isObject(params) ? params : {};
  return typeof elicitationId === 'string' && isShortId(elicitationId) ? elicitationId : undefined;
}
