// Requests from a server that are waiting for their answers; the server may cancel them (MCP "Cancellation").

import {
  INTERNAL_ERROR,
  METHOD_NOT_FOUND,
  UpstreamError,
  type UpstreamRequest,
} from '../../mcp/upstream/upstream.ts';
import { Cancellation, type CancelSignal } from '../../platform/cancellation.ts';
import type { Deadline } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import { toRawJson } from '../../platform/noted-json.ts';
import { readEchoedNumber, type ServerRequest } from '../messages/server-message.ts';

/** A call in progress. */
export interface Askable {
  readonly request: { readonly onRequest?: OnRequest | undefined };
  readonly deadline: Deadline | undefined;
}

type OnRequest = NonNullable<UpstreamRequest['onRequest']>;

/** The questions of one session or process, which has its own request ids. */
export function createServerQuestions() {
  const open = new Map<unknown, Cancellation>();
  const busy = new Set<Askable['request']>();

  async function answer(
    question: ServerRequest,
    onRequest: OnRequest | undefined,
  ): Promise<JsonObject | undefined> {
    const { id } = question;
    const cancellation = new Cancellation();
    open.set(id, cancellation);
    const response = await answerRequest(question, onRequest, cancellation);
    if (open.get(id) === cancellation) open.delete(id);
    return cancellation.aborted ? undefined : response;
  }

  return {
    get size() {
      return open.size;
    },
    /** The complete response; undefined if the server no longer wants one. Never rejects. */
    answer,
    /**
     * Like `answer`, for a question that does not name its call. It goes to the first call that it may belong to and that has no
     * such question yet. Any of these calls may be the waiting one, so the deadlines of all of them are paused.
     */
    async answerForOneOf(question: ServerRequest, listAskable: () => readonly Askable[]) {
      const askable = isQuestion(question) ? listAskable() : [];
      if (askable.length === 0) return answer(question, undefined);
      const resumes = askable.map(({ deadline }) => deadline?.pause());
      const response = await answer(question, askInTurn(listAskable, busy));
      for (const resume of resumes) resume?.();
      return response;
    },
    /** True while a question is waiting for its answer. */
    has: (id: unknown) => open.has(id),
    /** The server no longer wants an answer. */
    cancel(named: unknown) {
      const id = open.has(named) ? named : readEchoedNumber(named);
      const cancellation = open.get(id);
      open.delete(id);
      cancellation?.abort();
    },
  };
}

// Answers server-initiated requests (MCP "Elicitation", "Sampling", "Roots", "Ping").

const ASKING_METHODS: readonly string[] = [
  'elicitation/create',
  'sampling/createMessage',
  'roots/list',
];

/** True for a question that only a client can answer. */
export const isQuestion = ({ method }: ServerRequest): boolean => ASKING_METHODS.includes(method);

/** The complete JSON-RPC response. Never rejects. */
async function answerRequest(
  request: ServerRequest,
  onRequest: UpstreamRequest['onRequest'],
  signal: CancelSignal,
): Promise<JsonObject> {
  const { id, method, params } = request;
  if (method === 'ping') return { jsonrpc: '2.0', id, result: {} };
  if (onRequest === undefined || !isQuestion(request)) {
    const message = isQuestion(request) ? NOT_ATTRIBUTED : 'The gateway does not know this method';
    return { jsonrpc: '2.0', id, error: { code: METHOD_NOT_FOUND, message } };
  }
  try {
    const result = await onRequest({ method, params }, signal);
    return { jsonrpc: '2.0', id, result: toRawJson(result) };
  } catch (thrown) {
    // If the client answered with an error, that error is passed on. Any other error is not for the server.
    const told = thrown instanceof UpstreamError ? thrown.jsonRpcError : undefined;
    const error = told ?? { code: INTERNAL_ERROR, message: 'The client could not be asked' };
    return { jsonrpc: '2.0', id, error };
  }
}

const NOT_ATTRIBUTED =
  'The gateway cannot tell which client to ask: it is not known which of the calls in progress this belongs to, if any';

/** A call may end before its client has answered: then the question may belong to a different call. */
function askInTurn(
  listAskable: () => readonly Askable[],
  busy: Set<Askable['request']>,
): OnRequest {
  const asked = new Set<Askable['request']>();

  return async function askNext(question, signal) {
    const untold = listAskable().filter((one) => !asked.has(one.request));
    const { request } = untold.find((one) => !busy.has(one.request)) ?? untold[0] ?? {};
    if (request?.onRequest === undefined) throw new UpstreamError('aborted', 'the calls are over');
    asked.add(request);
    busy.add(request);
    try {
      return await request.onRequest(question, signal);
    } catch (thrown) {
      const isOver = thrown instanceof UpstreamError && thrown.failure === 'aborted';
      if (!isOver || signal.aborted) throw thrown;
      return askNext(question, signal);
    } finally {
      busy.delete(request);
    }
  };
}
