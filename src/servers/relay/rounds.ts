// MCP 2026-07-28 "Multi Round-Trip Requests": a server of the stateless era answers with its questions, and gets the
// request again with the answers.

import { randomUUID } from 'node:crypto';
import { GatewayError } from '../../errors/gateway-error.ts';
import { CallStopped, passQuestions, type QuestionGuards } from '../../mcp/calls/guards.ts';
import type { ClientCapabilities } from '../../mcp/catalog/client-requests.ts';
import type { LogSeverity } from '../../mcp/protocol/methods.ts';
import { CallRefusedError } from '../../mcp/upstream/failures.ts';
import {
  findQuestionProblem,
  type RelayedCall,
  readQuestions,
  refuseQuestion,
} from '../../mcp/upstream/server-request.ts';
import type { UpstreamQuestion, UpstreamRuntime } from '../../mcp/upstream/upstream.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import type { JsonObject } from '../../platform/json.ts';
import { readExact, toRawMembers } from '../../platform/noted-json.ts';
import { buildRedeemedAnswersKey } from '../../store/keys.ts';
import type { TraceContext } from '../../telemetry/tracing/tracing.ts';

/** The answers that a request brings of its rounds before. */
export interface RoundAnswers {
  readonly inputResponses?: JsonObject;
  readonly requestState?: string;
}

type RoundQuestions = Readonly<Record<string, UpstreamQuestion>>;

/** A request, as it is sent in rounds. */
export interface RoundsRequest {
  /** Name of the server, for messages. */
  readonly server: string;
  readonly capabilities: ClientCapabilities;
  /** Undefined where no guard inspects questions. */
  readonly questionGuards: QuestionGuards | undefined;
  readonly params: JsonObject;
  /** Answers to what was asked before; undefined for a call that was not asked yet. */
  readonly first?: RoundAnswers | undefined;
  /** True if the server was told that the client can have tasks (§29). */
  readonly mayBeTask?: boolean;
  /** `params` are those of the request, with the answers of a round. */
  send(params: JsonObject): Promise<JsonObject>;
  /** Resolves to the answers by the keys of the questions. */
  ask(questions: RoundQuestions, state: Pick<RoundAnswers, 'requestState'>): Promise<JsonObject>;
}

const MAX_ROUNDS = 10;
/** The client of the stateless era has to send it back in its next request. */
const MAX_STATE_LENGTH = 65_536;

/** Resolves to the result that ends the rounds: nearly always the first one. */
export async function runRounds(rounds: RoundsRequest): Promise<JsonObject> {
  const { server, params, first } = rounds;
  let result = await rounds.send(first === undefined ? params : addAnswers(params, first));
  for (let round = 1; ; round += 1) {
    const { resultType = 'complete' } = result;
    if (resultType === 'complete' || (resultType === 'task' && rounds.mayBeTask)) return result;
    if (resultType !== 'input_required')
      throw new CallRefusedError(
        `${server} answered with a kind of result that the gateway does not know.`,
      );
    if (round > MAX_ROUNDS)
      throw new CallRefusedError(`${server} asked again after ${MAX_ROUNDS} rounds of questions.`);
    result = await rounds.send(addAnswers(params, await answerRound(result, rounds)));
  }
}

const addAnswers = (params: JsonObject, answers: RoundAnswers): JsonObject => ({
  ...params,
  ...answers,
  ...(answers.inputResponses && { inputResponses: toRawMembers(answers.inputResponses) }),
});

/** A server that only wants to be asked again, later, asks nothing. */
async function answerRound(result: JsonObject, rounds: RoundsRequest): Promise<RoundAnswers> {
  const { requestState } = result;
  if (typeof requestState === 'string' && requestState.length > MAX_STATE_LENGTH)
    throw new CallRefusedError(
      `${rounds.server} asked with a state of more than ${MAX_STATE_LENGTH} characters.`,
    );
  const { server, capabilities } = rounds;
  const asked = readQuestions(server, readExact(result).inputRequests, refuseCall, (question) => {
    const problem = findQuestionProblem(question, capabilities);
    if (problem !== undefined)
      refuseCall(`${server} needs an answer that this client cannot give: ${problem.message}`);
  });
  const { questionGuards } = rounds;
  const questions =
    questionGuards === undefined
      ? asked
      : await passQuestions(asked, questionGuards).catch(refuseStopped);
  const state = typeof requestState === 'string' ? { requestState } : {};
  return Object.keys(questions).length === 0
    ? state
    : { inputResponses: await rounds.ask(questions, state), ...state };
}

/** For a server that waits for nothing: its call ends. */
export function refuseStopped(thrown: unknown): never {
  throw thrown instanceof CallStopped ? new CallRefusedError(thrown.message) : thrown;
}

function refuseCall(problem: string): never {
  throw new CallRefusedError(problem);
}

// §18.3: one request to a server, with everything that belongs to it until its result. The transport has the timeout.

/** The client of a call, as its server meets it. */
export interface RequestClient {
  /** Aborted when nobody waits for the result any more. */
  readonly signal: CancelSignal;
  readonly trace: TraceContext;
  readonly logLevel: LogSeverity | undefined;
  readonly wantsProgress: boolean;
  /** Undefined where no guard looks at what is asked. */
  readonly questionGuards: QuestionGuards | undefined;
  /** Params of `notifications/progress`. */
  progress(params: JsonObject): void;
  /** Params of `notifications/message`. */
  log(params: JsonObject): void;
  /** Undefined where the client cannot be told. False where it was not asked this in the call. */
  completeElicitation?(elicitationId: string): boolean;
  /** @throws UpstreamError whose `jsonRpcError` is the server's answer. */
  answer(question: UpstreamQuestion, cancelled: CancelSignal): Promise<JsonObject>;
}

/** Server-initiated requests of one call in flight at the same time. */
const MAX_QUESTIONS = 16;

/**
 * Resolves to the result as the server wrote it. `params` are those of the call, with the answers of its rounds.
 *
 * @throws UpstreamError
 */
export function sendToServer(
  { upstream, caller, request }: RelayedCall,
  params: JsonObject,
  client: RequestClient,
): Promise<JsonObject> {
  let questions = 0;
  // Each member by its name: a spread took a tenth of the relay's time.
  return upstream.request(caller, {
    method: request.method,
    name: request.name,
    mirrored: request.mirrored,
    params,
    signal: client.signal,
    trace: client.trace,
    logLevel: client.logLevel,
    onProgress: client.wantsProgress ? (said) => client.progress(said) : undefined,
    onLog: client.logLevel === undefined ? undefined : (said) => client.log(said),
    async onRequest(question, cancelled) {
      if (questions >= MAX_QUESTIONS)
        throw refuseQuestion(`A call may ask ${MAX_QUESTIONS} questions at once.`);
      questions += 1;
      try {
        const { questionGuards: guards } = client;
        if (guards === undefined) return await client.answer(question, cancelled);
        const passed = await guards.passQuestion(question);
        return await guards.passAnswer(question.method, await client.answer(passed, cancelled));
      } catch (thrown) {
        // A guard stopped the request or its answer: the server gets an error.
        throw thrown instanceof CallStopped ? refuseQuestion(thrown.message) : thrown;
      } finally {
        questions -= 1;
      }
    },
    onElicitationComplete:
      client.completeElicitation && ((id) => client.completeElicitation?.(id) === true),
  });
}

// §18.3: the answers to questions of a stateless server are passed on once (no replay). The server keeps nothing of the
// call, so it could not tell a replay from the first time.

/** No `requestState` is good for longer. */
const TTL_SECONDS = 3600;

/**
 * True if these answers, named when they were asked for, come for the first time, at any replica.
 *
 * @throws GatewayError `internal_error` when the store does not say.
 */
export async function redeemAnswers(
  { config, store }: UpstreamRuntime,
  id: string,
): Promise<boolean> {
  const own = randomUUID();
  const key = buildRedeemedAnswersKey(config.mcp.sessions.keyPrefix, id);
  const first = await store.getOrSet(key, own, TTL_SECONDS).catch((cause: unknown) => {
    throw new GatewayError('internal_error', { cause });
  });
  return first === own;
}
