// §4.11, §21.2: each request in the log and the metrics, after its reply; and as a span.
import { truncateForLog } from '../../platform/log.ts';
import { createLogThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Reply, ReplyError } from '../endpoint/message.ts';

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
const toKnownMethod = (method: string) => (METHODS.has(method) ? method : 'other');

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
    writeLine(request);
    endTrace(request);
  };

  function writeLine(request: LoggedRequest) {
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
  }
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

/**
 * §21.2: the span of a request, by OpenTelemetry's conventions for HTTP. Never a query or a body: they carry codes, states
 * and tokens.
 */
function endTrace({ method, path, route, clientIp, reply }: LoggedRequest) {
  const { status, trace } = reply;
  const span = trace?.getSpan();
  if (trace === undefined || span === undefined) return;
  const known = toKnownMethod(method);
  span.setAttributes({
    'http.request.method': known === 'other' ? '_OTHER' : known,
    'http.response.status_code': status,
    'http.route': route,
    'url.path': truncateForLog(path),
    'client.address': clientIp,
  });
  if (status >= 500) span.fail(String(status));
  trace.end(`${known} ${route}`);
}
