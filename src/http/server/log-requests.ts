// §4.11, §21.2: each request in the log and the metrics, after its reply; and as a span.
import { truncateForLog } from '../../platform/log.ts';
import { createLogThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  type RequestTrace,
  readTraceContext,
  type Span,
  type Tracing,
} from '../../telemetry/tracing/tracing.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import type { Reply, ReplyError } from '../endpoint/message.ts';
import type { RunQueue } from './overload.ts';
import type { Pipeline, RoutedReply } from './pipeline.ts';

export interface LoggedRequest {
  readonly method: string;
  readonly path: string;
  readonly clientIp: string;
  readonly route: string;
  readonly reply: Reply;
  /** Seconds from the request's head to the end of its reply. */
  readonly seconds: number;
}

export type LogRequest = (request: LoggedRequest) => void;

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Callers may send any word: those that nobody uses are one series. */
const toKnownMethod = (method: string): string => (METHODS.has(method) ? method : 'other');

/** Never logs a query, a header or a body: they carry codes, states and tokens. */
export function createAccessLog({ log, metrics, clock }: Runtime): LogRequest {
  const throttle = createLogThrottle(clock, (error, leftOut) =>
    log.info(
      'Further requests were refused for the same reason in the last minute; LOG_LEVEL=debug shows all of them.',
      { error, leftOut },
    ),
  );

  /** Most levels do not write this line: then its facts need not be gathered. */
  const isEachLogged = log.isWritten?.('debug') ?? true;

  return function logRequest(request) {
    const { method, route, reply, seconds } = request;
    const { status } = reply;
    const outcome = reply.outcome?.();
    const error = reply.error ?? outcome?.error;
    metrics.recordHttpRequest(toKnownMethod(method), route, status, seconds);
    if (error === undefined) {
      if (isEachLogged) log.debug('Answered.', describeRequest(request, outcome));
      return;
    }
    const usualLevel = chooseLevel(status, error);
    const isLogged = usualLevel === 'debug' || throttle.countLine(error.key);
    const level = isLogged ? usualLevel : 'debug';
    if (log.isWritten?.(level) === false) return;
    log[level](usualLevel === 'error' ? 'Failed.' : 'Refused.', {
      ...describeRequest(request, outcome),
      error: error.key,
      details: error.message,
      cause: error.cause,
    });
  };
}

const describeRequest = (
  { method, path, clientIp, reply, seconds }: LoggedRequest,
  outcome: Pick<Reply, 'facts'> | undefined,
) => ({
  method,
  path: truncateForLog(path),
  status: reply.status,
  ms: Math.round(seconds * 1e6) / 1000,
  clientIp,
  ...reply.describe?.(),
  ...reply.facts,
  ...outcome?.facts,
});

/** A cause inside the service, or at the provider, is for an operator to look at. */
function chooseLevel(status: number, { logLevel, cause }: ReplyError) {
  if (logLevel !== undefined) return logLevel;
  if (status >= 500 || (status === 200 && cause !== undefined)) return 'error';
  return status === 429 ? 'debug' : 'info';
}

// §21.2: each request as a span, by OpenTelemetry's conventions for HTTP. Never a query or a body: they carry
// codes, states and tokens.

interface TracedService {
  readonly runPipeline: Pipeline;
  readonly logRequest: LogRequest;
}

/** The span of a request ends when its reply has been sent. Probes have none, and so nothing below one. */
export function traceRequests(
  { runPipeline, logRequest }: TracedService,
  tracing: Tracing,
  /** They come every few seconds, and would fill the traces of a quiet gateway. */
  isProbe: (path: string) => boolean,
): TracedService {
  /** Some replies are the same object for many requests. Apart from the request, which is not kept while it runs. */
  const keepTrace = (trace: RequestTrace) => (answer: RoutedReply) => ({
    ...answer,
    reply: { ...answer.reply, trace },
  });

  return {
    runPipeline(received) {
      const { request } = received;
      if (isProbe(request.path)) return runPipeline(received);
      const trace = tracing.startRequest(readTraceContext(request.headers));
      const traced = { ...received, request: { ...request, trace } };
      const answer = runPipeline(traced);
      return answer instanceof Promise ? answer.then(keepTrace(trace)) : keepTrace(trace)(answer);
    },
    logRequest(logged) {
      logRequest(logged);
      const { trace } = logged.reply;
      const span = trace?.getSpan();
      if (trace === undefined || span === undefined) return;
      describe(span, logged);
      trace.end(`${toKnownMethod(logged.method)} ${logged.route}`);
    },
  };
}

function describe(span: Span, { method, path, route, clientIp, reply }: LoggedRequest): void {
  const { status } = reply;
  const known = toKnownMethod(method);
  span.setAttributes({
    'http.request.method': known === 'other' ? '_OTHER' : known,
    'http.response.status_code': status,
    'http.route': route,
    'url.path': truncateForLog(path),
    'client.address': clientIp,
  });
  if (status >= 500) span.fail(String(status));
}

/** The same endpoints: what they find out while they judge belongs to their requests, as what they do later does (pipeline.ts). */
export const tracePublicEndpoints = (endpoints: readonly Endpoint[]): readonly Endpoint[] =>
  endpoints.map((endpoint) =>
    endpoint.kind === 'public'
      ? {
          ...endpoint,
          judge(request, body) {
            const judge = () => endpoint.judge(request, body);
            return request.trace ? request.trace.run(judge) : judge();
          },
        }
      : endpoint,
  );

/** Calls wait in the queue, and run when another request says so: each for the one that it belongs to. */
export const traceRunQueue = (runQueue: RunQueue, tracing: Tracing): RunQueue => ({
  ...runQueue,
  run: (task) => runQueue.run(tracing.bind(task)),
});
