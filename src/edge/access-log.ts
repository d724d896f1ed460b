// §4.11: one log line and one count per request, after its reply.

import type { Reply, ReplyError } from '../endpoint/message.ts';
import type { Clock } from '../platform/clock.ts';
import { type Log, truncateForLog } from '../platform/log.ts';
import { createLogThrottle } from '../platform/log-throttle.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';

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
export const toKnownMethod = (method: string): string => (METHODS.has(method) ? method : 'other');

/** Never logs a query, a header or a body: they carry codes, states and tokens. */
export function createAccessLog(log: Log, metrics: Metrics, clock: Clock): LogRequest {
  const throttle = createLogThrottle(clock, (error, leftOut) =>
    log.info(
      'Further requests were refused for the same reason in the last minute; LOG_LEVEL=debug shows all of them.',
      { error, leftOut },
    ),
  );

  return function logRequest(request) {
    const { method, route, reply, seconds } = request;
    const { status } = reply;
    const outcome = reply.outcome?.();
    const error = reply.error ?? outcome?.error;
    metrics.recordHttpRequest(toKnownMethod(method), route, status, seconds);
    if (error === undefined) {
      // Most levels do not write this line: then its facts need not be gathered.
      if (log.isWritten('debug')) log.debug('Answered.', describeRequest(request, outcome));
      return;
    }
    const usualLevel = chooseLevel(status, error);
    const isLogged = usualLevel === 'debug' || throttle.countLine(error.key);
    const level = isLogged ? usualLevel : 'debug';
    if (!log.isWritten(level)) return;
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
  ...reply.facts,
  ...outcome?.facts,
});

/** What has a cause inside the service, or at the provider, is for an operator to look at. */
function chooseLevel(status: number, { logLevel, cause }: ReplyError) {
  if (logLevel !== undefined) return logLevel;
  if (status >= 500 || (status === 200 && cause !== undefined)) return 'error';
  return status === 429 ? 'debug' : 'info';
}
