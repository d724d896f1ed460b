// §18.3: clients of the session era are asked while their call goes on.
import type { Clock } from '../../../core/clock.ts';
import { GatewayError } from '../../../core/errors/gateway-error.ts';
import type { JsonObject } from '../../../core/json.ts';
import type { Context, SessionRelay } from '../../mcp/catalog/catalog.ts';
import type { UpstreamQuestion } from '../upstream.ts';
import { CallRefusedError } from './call-refused.ts';
import { findQuestionProblem, refuseQuestion, toQuestionError } from './questions.ts';
import type { RelayedCall } from './relayed-call.ts';
import { toRequestClient } from './request-client.ts';
import { type Questions, runRounds } from './rounds.ts';
import { sendToServer } from './server-request.ts';

export function relayToSessionClient(
  { clock }: { readonly clock: Clock },
  call: RelayedCall,
  relay: SessionRelay,
  context: Context,
): Promise<JsonObject> {
  const { caller, request, upstream } = call;
  const { capabilities } = caller;
  const server = upstream.config.name;
  const client = toRequestClient(context, answerServer);

  return runRounds({
    server,
    capabilities,
    first: {},
    send: (answers) => sendToServer(clock, call, { ...request.params, ...answers }, client),
    ask: askAll,
  });

  /** A server of the session era waits for the answer. */
  async function answerServer(question: UpstreamQuestion): Promise<JsonObject> {
    const problem = findQuestionProblem(question, capabilities);
    if (problem !== undefined) throw refuseQuestion(problem.message, problem.code);
    try {
      return await relay.ask(question);
    } catch (thrown) {
      throw toQuestionError(thrown);
    }
  }

  /** A server of the stateless era has answered, and gets the request again. */
  async function askAll(questions: Questions): Promise<JsonObject> {
    const answers = Object.entries(questions).map(async ([key, question]) => [
      key,
      await relay.ask(question),
    ]);
    try {
      return Object.fromEntries(await Promise.all(answers));
    } catch (thrown) {
      if (context.signal.aborted || !(thrown instanceof GatewayError)) throw thrown;
      throw new CallRefusedError(`${server} got no answer to its question: ${thrown.message}`);
    }
  }
}
