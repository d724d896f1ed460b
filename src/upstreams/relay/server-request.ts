// §18.3: one request to a server, with all that belongs to it until its result. The transport counts the time.
import type { CancelSignal } from '../../platform/cancellation.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { LogSeverity } from '../../protocol/log-severity.ts';
import type { TraceContext } from '../../protocol/trace-context.ts';
import type { UpstreamQuestion } from '../upstream.ts';
import { refuseQuestion } from './questions.ts';
import type { RelayedCall } from './relayed-call.ts';

/** The client of a call, as its server meets it. */
export interface RequestClient {
  /** Aborted when nobody waits for the result any more. */
  readonly signal: CancelSignal;
  readonly trace: TraceContext;
  readonly logLevel: LogSeverity | undefined;
  readonly wantsProgress: boolean;
  /** Params of `notifications/progress`. */
  progress(params: JsonObject): void;
  /** Params of `notifications/message`. */
  log(params: JsonObject): void;
  /** Undefined where the client cannot be told. False where it was not asked this in the call. */
  readonly completeElicitation?: ((elicitationId: string) => boolean) | undefined;
  /** @throws UpstreamError whose `jsonRpcError` is the server's answer. */
  answer(question: UpstreamQuestion, cancelled: CancelSignal): Promise<JsonObject>;
}

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
  const { signal, trace, logLevel, wantsProgress, progress, log, answer } = client;
  // Each member by its name: spread, they were a tenth of all that the relay does.
  return upstream.request(caller, {
    method: request.method,
    name: request.name,
    mirrored: request.mirrored,
    params,
    signal,
    trace,
    logLevel,
    onProgress: wantsProgress ? progress : undefined,
    onLog: logLevel === undefined ? undefined : log,
    onRequest: limitQuestions(answer),
    onElicitationComplete: client.completeElicitation,
  });
}

/** Of one call that wait for an answer at the same time. */
const MAX_QUESTIONS = 16;

function limitQuestions(answer: RequestClient['answer']): RequestClient['answer'] {
  let questions = 0;

  return async function answerQuestion(question, cancelled) {
    if (questions >= MAX_QUESTIONS) {
      throw refuseQuestion(`A call may ask ${MAX_QUESTIONS} questions at once.`);
    }
    questions += 1;
    try {
      return await answer(question, cancelled);
    } finally {
      questions -= 1;
    }
  };
}
