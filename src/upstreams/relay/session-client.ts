// §18.3: clients of the session era are asked while their call goes on.

import { GatewayError } from '../../errors/gateway-error.ts';
import type { Context, SessionRelay } from '../../mcp/catalog/catalog.ts';
import type { ClientCapabilities } from '../../mcp/catalog/client-requests.ts';
import { passAnswers, type QuestionGuards } from '../../mcp/control/message-guards.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { LogSeverity } from '../../protocol/methods.ts';
import type { TraceContext } from '../../telemetry/tracing/trace-context.ts';
import { UpstreamError, type UpstreamQuestion } from '../upstream.ts';
import { CallRefusedError } from './failures.ts';
import { findQuestionProblem, nameAsker, refuseQuestion, toQuestionError } from './questions.ts';
import {
  addAnswers,
  NO_ANSWERS,
  type Questions,
  type RoundAnswers,
  type RoundsOptions,
  refuseStopped,
  runRounds,
} from './rounds.ts';
import {
  passLog,
  passProgress,
  type RelayedCall,
  type RequestClient,
  sendToServer,
} from './server-request.ts';

export const relayToSessionClient = (
  call: RelayedCall,
  relay: SessionRelay,
  context: Context,
): Promise<JsonObject> => runRounds(new SessionClient(call, relay, context));

/** The client of one call. A class, since every call has one, and nearly none asks it anything. */
class SessionClient implements RequestClient, RoundsOptions {
  private readonly call: RelayedCall;
  private readonly relay: SessionRelay;
  private readonly context: Context;
  readonly server: string;
  readonly capabilities: ClientCapabilities;
  readonly questionGuards: QuestionGuards | undefined;
  readonly mayBeTask = false;
  readonly first: RoundAnswers = NO_ANSWERS;
  readonly signal: CancelSignal;
  readonly trace: TraceContext;
  readonly logLevel: LogSeverity | undefined;
  readonly wantsProgress: boolean;

  constructor(call: RelayedCall, relay: SessionRelay, context: Context) {
    this.call = call;
    this.relay = relay;
    this.context = context;
    this.server = call.upstream.config.name;
    this.capabilities = call.caller.capabilities;
    this.questionGuards = relay.questionGuards;
    this.signal = relay.signal;
    this.trace = context.trace;
    this.logLevel = relay.logLevel;
    this.wantsProgress = relay.wantsProgress;
  }

  send(answers: RoundAnswers): Promise<JsonObject> {
    const { call } = this;
    return sendToServer(call, addAnswers(call.request.params, answers), this);
  }

  progress(params: JsonObject): void {
    passProgress(this.context, params);
  }

  log(params: JsonObject): void {
    passLog(this.context, params);
  }

  /** A server of the session era waits for the answer. */
  async answer(question: UpstreamQuestion, cancelled: CancelSignal): Promise<JsonObject> {
    const problem = findQuestionProblem(question, this.capabilities);
    if (problem !== undefined) throw refuseQuestion(problem.message, problem.code);
    const answer = await this.relay
      .ask(nameAsker(this.server, question), cancelled)
      .catch((thrown: unknown) => {
        throw toQuestionError(thrown, this.signal.aborted);
      });
    if ('result' in answer) return answer.result;
    throw new UpstreamError('error', answer.error.message, { jsonRpcError: answer.error });
  }

  completeElicitation(elicitationId: string): boolean {
    return this.relay.completeElicitation(elicitationId);
  }

  /** A server of the stateless era has answered, and gets the request again. */
  async ask(questions: Questions): Promise<JsonObject> {
    const answers = Object.entries(questions).map(async ([key, question]) => [
      key,
      await this.askOne(question),
    ]);
    const received = Object.fromEntries(await Promise.all(answers));
    const { questionGuards } = this;
    return questionGuards === undefined
      ? received
      : passAnswers(questions, received, questionGuards).catch(refuseStopped);
  }

  /** The stateless era has no word for an answer that is an error. */
  private async askOne(question: UpstreamQuestion): Promise<JsonObject> {
    const { relay, server } = this;
    const answer = await relay.ask(nameAsker(server, question)).catch((thrown: unknown) => {
      if (relay.signal.aborted || !(thrown instanceof GatewayError)) throw thrown;
      throw refuseCall(server, thrown.message);
    });
    if ('result' in answer) return answer.result;
    throw refuseCall(server, answer.error.message);
  }
}

const refuseCall = (server: string, reason: string): CallRefusedError =>
  new CallRefusedError(`${server} asked, and this client gave no answer: ${reason}`);
