// §18.3: calls that are passed on to a server, and the server's requests and notifications in the meantime.

import { GatewayError, type JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { TraceContext } from '../../telemetry/tracing/tracing.ts';
import type { QuestionGuards } from '../calls/guards.ts';
import type { Context, RawResult } from '../catalog/catalog.ts';
import {
  type ClientCapabilities,
  type ClientRequest,
  isQuestionMethod,
  QUESTIONS,
} from '../catalog/client-requests.ts';
import type { TaskRequest } from '../catalog/served-catalog.ts';
import { isLogSeverity, type LogSeverity } from '../protocol/methods.ts';
import {
  INTERNAL_ERROR,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  type Upstream,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamQuestion,
} from './upstream.ts';

/** The client of a relayed call, as one request to the server needs it, in either era. */
export interface RequestClient {
  /** Aborted when nobody is waiting for the result any more. */
  readonly signal: CancelSignal;
  readonly trace: TraceContext;
  readonly logLevel: LogSeverity | undefined;
  readonly wantsProgress: boolean;
  /** Undefined if no guard checks the requests. */
  readonly questionGuards: QuestionGuards | undefined;
  /** Params of `notifications/progress`. */
  progress(params: JsonObject): void;
  /** Params of `notifications/message`. */
  log(params: JsonObject): void;
  /** Undefined if the client cannot be notified. False if it was not asked this in the call. */
  completeElicitation?(elicitationId: string): boolean;
  /** @throws UpstreamError whose `jsonRpcError` is the server's answer. */
  answer(question: UpstreamQuestion, cancelled: CancelSignal): Promise<JsonObject>;
}

/**
 * Passes a call on to its server, along with the messages that both exchange in the meantime.
 *
 * @throws GatewayError; and, in the stateless era, the error that ends a call that asks (`RelayedStatelessClient`), which must
 * propagate.
 */
export type RelayCall = (
  upstream: Upstream,
  caller: UpstreamCaller,
  request: RelayedRequest,
  context: Context,
) => Promise<RawResult>;

export interface RelayedRequest {
  readonly method:
    | 'tools/call'
    | 'prompts/get'
    | 'resources/read'
    | 'resources/directory/read'
    | 'skills/get'
    | 'completion/complete'
    | TaskRequest['method'];
  /** With the server's own names and URIs; `_meta` has the members of `RelayedClient.meta`, not all of the client's. */
  readonly params: JsonObject;
  /** The server's own name or URI of the requested item. */
  readonly name?: string;
  /** For `tools/call`: the tool says that calling it twice does no harm. */
  readonly isRepeatable?: boolean;
  /** For `resources/read`: as the client knows it. */
  readonly clientUri?: string;
  /** Arguments that are also sent in headers, as header name and value. */
  readonly mirrored?: Readonly<Record<string, string>>;
}

export interface RelayedCall {
  readonly upstream: Upstream;
  readonly caller: UpstreamCaller;
  readonly request: RelayedRequest;
}

// Notifications of a server about a call, passed on to its client. Hostile input: invalid ones are dropped.

/** The server only knows the gateway's own progress token; the client's is in `context`. */
export function passProgress(
  context: Pick<Context, 'progress'>,
  { progress, total, message }: JsonObject,
): void {
  if (!isNumber(progress)) return;
  context.progress(
    progress,
    isNumber(total) ? total : undefined,
    typeof message === 'string' ? message : undefined,
  );
}

export function passLog(context: Pick<Context, 'log'>, { level, data, logger }: JsonObject): void {
  if (!isLogSeverity(level)) return;
  context.log(level, data, typeof logger === 'string' ? logger : undefined);
}

/** JSON cannot represent the Infinity that 1e400 becomes in JavaScript. */
const isNumber = (value: unknown): value is number => Number.isFinite(value);

// §18.3: server-initiated requests that a client can answer, and errors for all others.

/** Why this client cannot be asked; undefined if it can. */
export function findQuestionProblem(
  { method, params }: UpstreamQuestion,
  capabilities: ClientCapabilities,
): JsonRpcErrorObject | undefined {
  if (!isQuestionMethod(method))
    return {
      code: METHOD_NOT_FOUND,
      message: 'Clients of the gateway do not accept this request.',
    };
  // MCP 2025-11-25 "Elicitation", "Sampling": a mode, or tools, that were not declared are invalid params.
  if (method === 'elicitation/create' && params.mode === 'url')
    return capabilities.elicitationUrl === true
      ? undefined
      : { code: INVALID_PARAMS, message: 'The client did not declare elicitation by URL.' };
  const name = QUESTIONS[method];
  if (!capabilities[name])
    return { code: METHOD_NOT_FOUND, message: `The client did not declare ${name}.` };
  const hasTools = name === 'sampling' && Object.keys(params).some((member) => TOOLS.test(member));
  return hasTools && capabilities.samplingTools !== true
    ? { code: INVALID_PARAMS, message: 'The client did not declare sampling with tools.' }
    : undefined;
}

/** The error for a server-initiated request that cannot be passed on. */
export const refuseQuestion = (message: string, code = INTERNAL_ERROR): UpstreamError =>
  new UpstreamError('error', message, { jsonRpcError: { code, message } });

/** The same if the call ended before its client answered. */
export const refuseAsOver = (message: string): UpstreamError =>
  new UpstreamError('aborted', message, { jsonRpcError: { code: INTERNAL_ERROR, message } });

/** The error for a server-initiated request without an answer. */
export function toQuestionError(thrown: unknown, isCancelled: boolean): UpstreamError {
  if (!(thrown instanceof GatewayError)) return refuseQuestion('The client could not be asked.');
  const isOver = isCancelled || thrown.key === 'request_cancelled';
  return isOver ? refuseAsOver(thrown.message) : refuseQuestion(thrown.message);
}

/** Reads a server-initiated request; undefined if the value is not one. */
export function readQuestion(value: unknown): UpstreamQuestion | undefined {
  const { method, params = {} } = isObject(value) ? value : {};
  return typeof method === 'string' && isObject(params) ? { method, params } : undefined;
}

/** Of one round of a call, or of one task. */
const MAX_QUESTIONS = 16;

/** Reads server-initiated requests by their keys, and checks each. `refuse` describes the problem. */
export function readQuestions(
  server: string,
  inputRequests: unknown,
  refuse: (problem: string) => never,
  check?: (question: UpstreamQuestion) => void,
): Readonly<Record<string, UpstreamQuestion>> {
  const entries = isObject(inputRequests) ? Object.entries(inputRequests) : [];
  if (entries.length > MAX_QUESTIONS)
    return refuse(
      `${server} asked ${entries.length} questions at once; ${MAX_QUESTIONS} are allowed.`,
    );
  return Object.fromEntries(
    entries.map(([key, written]) => {
      const question =
        readQuestion(written) ?? refuse(`${server} sent a question that cannot be read.`);
      check?.(question);
      return [key, question];
    }),
  );
}

/** Why the value is not an answer to a request of that kind; undefined if it may be one. */
export const findKindProblem = (
  { method }: Pick<UpstreamQuestion, 'method'>,
  answer: unknown,
): string | undefined =>
  isQuestionMethod(method) && isObject(answer) && IS_ANSWER[method](answer)
    ? undefined
    : `is no answer to ${method}`;

/** By the member that distinguishes the answer from all others. */
const IS_ANSWER: Readonly<Record<ClientRequest['method'], (answer: JsonObject) => boolean>> = {
  'elicitation/create': ({ action }) => typeof action === 'string',
  'sampling/createMessage': ({ role }) => typeof role === 'string',
  'roots/list': ({ roots }) => Array.isArray(roots),
};

// §18.3: a client knows only one server, the gateway. So the messages that it shows name the server behind it that asks: the
// `message` of an elicitation, the `systemPrompt` of a sampling request. `roots/list` shows nothing, and stays as it is.

export function nameAsker(server: string, question: UpstreamQuestion): UpstreamQuestion {
  const { method, params } = question;
  if (method === 'elicitation/create')
    return { ...question, params: nameAskerInMessage(server, params) };
  if (method !== 'sampling/createMessage') return question;
  // `thisServer` would be the context of all servers behind the gateway.
  const others = omitNames(params, TAKEN_OUT);
  return { ...question, params: { ...others, systemPrompt: tell(server, params.systemPrompt) } };
}

/** Takes the params of an elicitation. */
export const nameAskerInMessage = (server: string, params: JsonObject): JsonObject => ({
  ...omitNames(params, MESSAGE),
  message: tell(server, params.message),
});

// Case-insensitive: many clients written in Go treat `Message`, and even `meſſage`, as `message`, and the last one counts.

const TOOLS = /^(?:tools|toolChoice)$/iu;
const TAKEN_OUT = /^(?:includeContext|systemPrompt)$/iu;
const MESSAGE = /^message$/iu;

const omitNames = (params: JsonObject, names: RegExp): JsonObject =>
  Object.fromEntries(Object.entries(params).filter(([name]) => !names.test(name)));

const tell = (server: string, words: unknown) =>
  typeof words === 'string' ? `${server} asks: ${words}` : `${server} asks.`;
