// §18.3: one request to a server, with all that belongs to it until its result: progress, log messages, questions,
// cancellation and the time-out.
import type { Clock } from '../../../core/clock.ts';
import type { JsonObject } from '../../../core/json.ts';
import type { LogSeverity } from '../../mcp/catalog/catalog.ts';
import type { TraceContext } from '../../mcp/protocol/trace-context.ts';
import { UpstreamError, type UpstreamQuestion, type UpstreamRequest } from '../upstream.ts';
import { type IdleTimeout, startIdleTimeout } from './idle-timeout.ts';
import { refuseQuestion } from './questions.ts';
import type { RelayedCall } from './relayed-call.ts';

/** The client of a call, as its server meets it. */
export interface RequestClient {
  /** Aborted when nobody waits for the result any more. */
  readonly signal: AbortSignal;
  readonly trace: TraceContext;
  readonly logLevel: LogSeverity | undefined;
  readonly wantsProgress: boolean;
  /** Params of `notifications/progress`. */
  progress(params: JsonObject): void;
  /** Params of `notifications/message`. */
  log(params: JsonObject): void;
  /** @throws UpstreamError whose `jsonRpcError` is the server's answer. */
  answer(question: UpstreamQuestion): Promise<JsonObject>;
}

/**
 * Resolves to the result as the server wrote it. `params` are those of the call, with the answers of its rounds.
 *
 * @throws UpstreamError
 */
export function sendToServer(
  clock: Clock,
  { upstream, caller, request }: RelayedCall,
  params: JsonObject,
  client: RequestClient,
): Promise<JsonObject> {
  const { timeoutMs } = upstream.config;
  const controller = new AbortController();
  const { signal } = controller;
  return new Promise<JsonObject>((resolve, reject) => {
    const timeout = startIdleTimeout(clock, timeoutMs, () =>
      giveUp('timeout', `it neither answered nor reported progress for ${timeoutMs / 1000} s`),
    );
    const giveUpOnAbort = () => giveUp('aborted', 'nobody waits for its answer any more');

    // The server is told; how long that takes is nothing to the client.
    function giveUp(failure: 'timeout' | 'aborted', message: string): void {
      reject(new UpstreamError(failure, message));
      end();
      controller.abort();
    }

    function end(): void {
      timeout.end();
      client.signal.removeEventListener('abort', giveUpOnAbort);
    }

    if (client.signal.aborted) {
      giveUpOnAbort();
      return;
    }
    client.signal.addEventListener('abort', giveUpOnAbort);
    upstream
      .request(caller, {
        ...request,
        params,
        signal,
        trace: client.trace,
        logLevel: client.logLevel,
        ...listenTo(client, timeout, signal),
      })
      .then(resolve, reject)
      .finally(end);
  });
}

/** What the server says before its result. Nothing passes once the call is over. */
function listenTo(
  client: RequestClient,
  timeout: IdleTimeout,
  signal: AbortSignal,
): Pick<UpstreamRequest, 'onProgress' | 'onLog' | 'onRequest'> {
  let questions = 0;

  async function askClient(question: UpstreamQuestion): Promise<JsonObject> {
    if (signal.aborted || questions >= MAX_QUESTIONS) throw tooManyQuestions();
    questions += 1;
    timeout.pause();
    try {
      return await client.answer(question);
    } finally {
      questions -= 1;
      timeout.resume();
    }
  }

  return {
    onRequest: askClient,
    ...(client.wantsProgress && {
      onProgress(params) {
        timeout.restart();
        if (!signal.aborted) client.progress(params);
      },
    }),
    ...(client.logLevel !== undefined && {
      onLog(params) {
        if (!signal.aborted) client.log(params);
      },
    }),
  };
}

/** Of one call that wait for an answer at the same time. */
const MAX_QUESTIONS = 16;

const tooManyQuestions = () =>
  refuseQuestion(`A call may ask ${MAX_QUESTIONS} questions at once, and none when it is over.`);
