// §18.3, MCP 2026-07-28 "Multi Round-Trip Requests": a server of the stateless era answers with its questions, and gets the request
// again with the answers. A client of that era is asked by the result of its call, and calls again.

import { randomUUID } from 'node:crypto';
import { GatewayError } from '../../errors/gateway-error.ts';
import {
  CallStopped,
  passAnswers,
  passQuestions,
  type QuestionGuards,
} from '../../mcp/calls/guards.ts';
import type { Context, RelayedStatelessClient } from '../../mcp/catalog/catalog.ts';
import type { ClientCapabilities } from '../../mcp/catalog/client-requests.ts';
import { TASKS } from '../../mcp/protocol/revisions.ts';
import { CallRefusedError } from '../../mcp/upstream/failures.ts';
import {
  findQuestionProblem,
  nameAsker,
  passLog,
  passProgress,
  type RelayedCall,
  type RequestClient,
  readQuestions,
  refuseQuestion,
} from '../../mcp/upstream/server-request.ts';
import {
  UpstreamError,
  type UpstreamQuestion,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { readExact, toRawMembers } from '../../platform/noted-json.ts';
import { buildRedeemedAnswersKey, nameOwner } from '../../store/keys.ts';
import { type NextOutcome, toUpstreamError } from './suspended/outcome-records.ts';
import type {
  CallListener,
  ClientReply,
  NewCall,
  SuspendedCalls,
} from './suspended/suspended-calls.ts';

/** The answers to earlier rounds, as a request carries them. */
interface RoundAnswers {
  readonly inputResponses?: JsonObject;
  readonly requestState?: string;
}

type RoundQuestions = Readonly<Record<string, UpstreamQuestion>>;

/** A request that is sent in rounds. */
export interface RoundsRequest {
  /** The server's name, for messages. */
  readonly server: string;
  readonly capabilities: ClientCapabilities;
  /** Undefined if no guard inspects questions. */
  readonly questionGuards: QuestionGuards | undefined;
  readonly params: JsonObject;
  /** Answers to earlier questions; undefined for a call that carries none. */
  readonly first?: RoundAnswers | undefined;
  /** True if the server knows that the client can have tasks (§29). */
  readonly mayBeTask?: boolean;
  /** `params` belong to the request, and include the answers of this round. */
  send(params: JsonObject): Promise<JsonObject>;
  /** Resolves to the answers, keyed like the questions. */
  ask(questions: RoundQuestions, state: Pick<RoundAnswers, 'requestState'>): Promise<JsonObject>;
}

const MAX_ROUNDS = 10;
/** Limited, since a client of the stateless era has to send it back in its next request. */
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

/** A server may ask no question, and only want the request to be repeated later. */
async function answerRound(result: JsonObject, rounds: RoundsRequest): Promise<RoundAnswers> {
  const { requestState } = result;
  if (typeof requestState === 'string' && requestState.length > MAX_STATE_LENGTH)
    throw new CallRefusedError(
      `${rounds.server} asked with a state of more than ${MAX_STATE_LENGTH} characters.`,
    );
  const { server, capabilities } = rounds;
  const asked = readQuestions(server, readExact(result).inputRequests, failCall, (question) => {
    const problem = findQuestionProblem(question, capabilities);
    if (problem !== undefined)
      failCall(`${server} needs an answer that this client cannot give: ${problem.message}`);
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

/** For a server that is not waiting for an answer: the call ends. */
export function refuseStopped(thrown: unknown): never {
  throw thrown instanceof CallStopped ? new CallRefusedError(thrown.message) : thrown;
}

function failCall(problem: string): never {
  throw new CallRefusedError(problem);
}

// §18.3: one request to a server, with everything that belongs to it until its result. The timeout is up to the transport.

/** Maximum number of server-initiated requests of one call in flight at the same time. */
const MAX_QUESTIONS = 16;

/**
 * Resolves to the result as the server wrote it. `params` belong to the call, and include the answers of its rounds.
 *
 * @throws UpstreamError
 */
export function sendToServer(
  { upstream, caller, request }: RelayedCall,
  params: JsonObject,
  client: RequestClient,
): Promise<JsonObject> {
  let questions = 0;
  // Members are listed by name, since a spread took a tenth of the relay's time.
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
        throw refuseQuestion(`A call may ask at most ${MAX_QUESTIONS} questions at once.`);
      questions += 1;
      try {
        const { questionGuards: guards } = client;
        if (guards === undefined) return await client.answer(question, cancelled);
        const passed = await guards.passQuestion(question);
        return await guards.passAnswer(question.method, await client.answer(passed, cancelled));
      } catch (thrown) {
        // A guard stopped the question or its answer: the server gets an error.
        throw thrown instanceof CallStopped ? refuseQuestion(thrown.message) : thrown;
      } finally {
        questions -= 1;
      }
    },
    onElicitationComplete:
      client.completeElicitation && ((id) => client.completeElicitation?.(id) === true),
  });
}

// §18.3: clients of the stateless era.

export const createStatelessRelay = (runtime: UpstreamRuntime, suspendedCalls: SuspendedCalls) =>
  async function relayToStatelessClient(
    call: RelayedCall,
    relay: RelayedStatelessClient,
    context: Context,
  ): Promise<JsonObject> {
    const server = call.upstream.config.name;
    const user = context.user && nameOwner(context.user);
    const { capabilities } = call.caller;
    const waiting = readReply(server, user, relay);

    /** If the server asks while it works, this request ends, and the call is suspended. */
    async function sendOpen(params: JsonObject) {
      const { outcome, ...place } = suspendedCalls.begin(
        { user, server, capabilities, params, send: createSend(call, params, context) },
        toListener(context),
      );
      return toResult(await outcome, place);
    }

    async function sendReply(reply: ClientReply): Promise<JsonObject> {
      const outcome = await suspendedCalls
        .resume(reply, toListener(context))
        .catch((cause: unknown) => {
          // A failure that is not the server's is the store's.
          throw cause instanceof UpstreamError
            ? cause
            : new GatewayError('internal_error', { cause });
        });
      if (outcome === undefined) throw callAgain(server);
      return toResult(outcome, reply);
    }

    /** A suspended call stays on its replica. */
    function toResult(
      outcome: NextOutcome,
      { id, replica }: Pick<ClientReply, 'id' | 'replica'>,
    ): JsonObject {
      switch (outcome.kind) {
        case 'result':
          return outcome.result;
        case 'failed':
          // The gateway gave up the call; this client did not.
          throw outcome.failure === 'aborted' && !relay.signal.aborted
            ? callAgain(server)
            : toUpstreamError(outcome);
        case 'question': {
          const { key, question } = outcome;
          return relay.requireInput(
            { [key]: nameAsker(server, question) },
            { server, id, replica, key },
          );
        }
      }
    }

    if (waiting !== undefined) return sendReply(waiting);
    return runRounds({
      server,
      capabilities,
      questionGuards: relay.questionGuards,
      mayBeTask:
        call.request.method === 'tools/call' && capabilities.extensions?.[TASKS] !== undefined,
      params: call.request.params,
      first: await readAnswers(server, relay, runtime),
      // Servers of the stateless era do not ask while a call is in flight.
      send: (params) =>
        call.upstream.peekDescription(call.caller)?.era === 'stateless'
          ? sendToServer(
              call,
              params,
              toClient(readWishes(context), toListener(context), refuseToAsk),
            )
          : sendOpen(params),
      async ask(questions, state) {
        const asked = Object.entries(questions);
        return relay.requireInput(
          Object.fromEntries(asked.map(([key, question]) => [key, nameAsker(server, question)])),
          {
            server,
            once: randomUUID(),
            // Keyed like the questions: guards inspect an answer along with its question.
            asked: Object.fromEntries(asked.map(([key, { method }]) => [key, method])),
            ...state,
          },
        );
      },
    });
  };

/** Retains nothing of the request that began the call, since that request has ended by the time the call is suspended. */
function createSend(call: RelayedCall, params: JsonObject, context: Context): NewCall['send'] {
  const wishes = readWishes(context);
  return (client) => sendToServer(call, params, toClient(wishes, client, client.answer));
}

const readWishes = ({ trace, relay: { logLevel, wantsProgress, questionGuards } }: Context) => ({
  trace,
  logLevel,
  wantsProgress,
  questionGuards,
});

/** Members are listed by name, since spreads of objects with functions took a hundred times as long. */
const toClient = (
  { trace, logLevel, wantsProgress, questionGuards }: ReturnType<typeof readWishes>,
  { signal, progress, log }: CallListener,
  answer: RequestClient['answer'],
): RequestClient => ({
  signal,
  trace,
  logLevel,
  wantsProgress,
  questionGuards,
  progress,
  log,
  answer,
});

/** Servers of the stateless era send no requests: an older server must just have replaced this one. */
async function refuseToAsk(): Promise<never> {
  throw refuseQuestion('A server of MCP 2026-07-28 asks in the result of the call.');
}

const toListener = (context: Context): CallListener => ({
  signal: context.relay.signal,
  progress: (params) => context.relay.wantsProgress && passProgress(context, params),
  log: (params) => passLog(context, params),
});

/** The client's answer to a server that waits for it. */
function readReply(
  server: string,
  user: string | undefined,
  { answered }: RelayedStatelessClient,
): ClientReply | undefined {
  if (answered === undefined) return undefined;
  const { server: asked, id, replica, key } = answered.state;
  if (typeof id !== 'string' || typeof replica !== 'string' || typeof key !== 'string')
    return undefined;
  if (asked !== server) throw callAgain(server);
  return { id, user, server, replica, key, answer: answered.inputResponses[key] };
}

/** The client's answers to a server that receives the request again; none if the server has not asked before. */
async function readAnswers(
  server: string,
  { answered, questionGuards }: RelayedStatelessClient,
  runtime: UpstreamRuntime,
): Promise<RoundAnswers | undefined> {
  if (answered === undefined) return undefined;
  const { inputResponses, state } = answered;
  const { once, asked, requestState } = state;
  if (state.server !== server || typeof once !== 'string' || !isObject(asked))
    throw callAgain(server);
  const methods = Object.fromEntries(
    Object.entries(asked).map(([key, method]) => [key, { method: String(method) }]),
  );
  // Guards come before redemption: answers that they refuse were not passed on, and may be corrected and sent again.
  const passed = await passAnswers(methods, inputResponses, questionGuards).catch(refuseStopped);
  if (!(await redeemAnswers(runtime, once)))
    throw new CallRefusedError(
      `The answers to ${server} were already passed on, and count only once. The call may have run: check this first if it must not run twice. Then call again without the answers.`,
    );
  return {
    inputResponses: passed,
    ...(typeof requestState === 'string' && { requestState }),
  };
}

const callAgain = (server: string) =>
  new CallRefusedError(
    `The call at ${server} that asked this is over, and its answer is lost. Call again, without the answers.`,
  );

// §18.3: the answers to questions of a stateless server are passed on once (no replay). The server keeps no state for the call,
// so it could not distinguish a replay from the original.

/** No `requestState` is valid for longer. */
const TTL_SECONDS = 3600;

/**
 * True if these answers, which were named when they were requested, arrive for the first time, on any replica.
 *
 * @throws GatewayError `internal_error` if the store is unavailable.
 */
async function redeemAnswers({ config, store }: UpstreamRuntime, id: string): Promise<boolean> {
  const own = randomUUID();
  const key = buildRedeemedAnswersKey(config.mcp.sessions.keyPrefix, id);
  const first = await store.getOrSet(key, own, TTL_SECONDS).catch((cause: unknown) => {
    throw new GatewayError('internal_error', { cause });
  });
  return first === own;
}
