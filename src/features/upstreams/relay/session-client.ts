// §18.3: clients of the session era are asked while their call goes on.
import type { CancelSignal } from '../../../core/cancellation.ts';
import { GatewayError } from '../../../core/errors/gateway-error.ts';
import type { JsonObject } from '../../../core/json.ts';
import type { Context, SessionRelay } from '../../mcp/catalog/catalog.ts';
import { UpstreamError, type UpstreamQuestion } from '../upstream.ts';
import { CallRefusedError } from './call-refused.ts';
import { nameAsker } from './name-asker.ts';
import { findQuestionProblem, refuseQuestion, toQuestionError } from './questions.ts';
import type { RelayedCall } from './relayed-call.ts';
import { toRequestClient } from './request-client.ts';
import { addAnswers, NO_ANSWERS, type Questions, runRounds } from './rounds.ts';
import { sendToServer } from './server-request.ts';

export function relayToSessionClient(
  call: RelayedCall,
  relay: SessionRelay,
  context: Context,
): Promise<JsonObject> {
  const { caller, request, upstream } = call;
  const { capabilities } = caller;
  const server = upstream.config.name;
  /** Of elicitations by URL; made on first use, as nearly no call asks. */
  let askedIds: Set<string> | undefined;
  const client = toRequestClient(context, answerServer, completeElicitation);

  return runRounds({
    server,
    capabilities,
    first: NO_ANSWERS,
    send: (answers) => sendToServer(call, addAnswers(request.params, answers), client),
    ask: askAll,
  });

  /** A server of the session era waits for the answer. */
  async function answerServer(
    question: UpstreamQuestion,
    cancelled: CancelSignal,
  ): Promise<JsonObject> {
    const problem = findQuestionProblem(question, capabilities);
    if (problem !== undefined) throw refuseQuestion(problem.message, problem.code);
    const { elicitationId } = question.params;
    if (typeof elicitationId === 'string') askedIds = (askedIds ?? new Set()).add(elicitationId);
    const answer = await relay
      .ask(nameAsker(server, question), cancelled)
      .catch((thrown: unknown) => {
        throw toQuestionError(thrown);
      });
    if ('result' in answer) return answer.result;
    throw new UpstreamError('error', answer.error.message, { jsonRpcError: answer.error });
  }

  function completeElicitation(elicitationId: string): boolean {
    const wasAsked = askedIds?.delete(elicitationId) === true;
    if (wasAsked) relay.completeElicitation(elicitationId);
    return wasAsked;
  }

  /** A server of the stateless era has answered, and gets the request again. */
  async function askAll(questions: Questions): Promise<JsonObject> {
    const answers = Object.entries(questions).map(async ([key, question]) => [
      key,
      await askOne(question),
    ]);
    return Object.fromEntries(await Promise.all(answers));
  }

  /** The stateless era has no word for an answer that is an error. */
  async function askOne(question: UpstreamQuestion): Promise<JsonObject> {
    const answer = await relay.ask(nameAsker(server, question)).catch((thrown: unknown) => {
      if (relay.signal.aborted || !(thrown instanceof GatewayError)) throw thrown;
      throw refuseCall(thrown.message);
    });
    if ('result' in answer) return answer.result;
    throw refuseCall(answer.error.message);
  }

  function refuseCall(reason: string): CallRefusedError {
    return new CallRefusedError(`${server} asked, and this client gave no answer: ${reason}`);
  }
}
