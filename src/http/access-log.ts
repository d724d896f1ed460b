// §4.11: one log line and one count per request, after its reply.
import type { Clock } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { createLogThrottle } from '../core/log-throttle.ts';
import type { Reply } from '../core/message.ts';
import type { Metrics } from '../core/metrics/metrics.ts';

export interface AnsweredRequest {
  readonly method: string;
  readonly path: string;
  readonly clientIp: string;
  readonly route: string;
  readonly reply: Reply;
  /** Seconds from the request's head to the end of its reply. */
  readonly seconds: number;
}

export type LogRequest = (answered: AnsweredRequest) => void;

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Never logs a query, a header or a body: they carry codes, states and tokens. */
export function createAccessLog(log: Log, metrics: Metrics, clock: Clock): LogRequest {
  const throttle = createLogThrottle(clock, (error, leftOut) =>
    log.info(
      'Further requests were refused for the same reason in the last minute; LOG_LEVEL=debug shows all of them.',
      { error, leftOut },
    ),
  );

  return function logRequest({ method, path, clientIp, route, reply, seconds }) {
    const { status } = reply;
    const outcome = reply.outcome?.();
    const error = reply.error ?? outcome?.error;
    metrics.recordHttpRequest(METHODS.has(method) ? method : 'other', route, status, seconds);
    const facts = {
      method,
      path: path.slice(0, 200),
      status,
      ms: Math.round(seconds * 1e6) / 1000,
      clientIp,
      ...reply.facts,
      ...outcome?.facts,
    };
    if (error === undefined) {
      log.debug('Answered.', facts);
      return;
    }
    const usualLevel = chooseLevel(status, error);
    const isLogged = usualLevel === 'debug' || throttle.shouldLog(error.key);
    const level = isLogged ? usualLevel : 'debug';
    log[level](usualLevel === 'error' ? 'Failed.' : 'Refused.', {
      ...facts,
      error: error.key,
      details: error.message,
      cause: error.cause,
    });
  };
}

/** Every client asks for a stream when it connects, and scanners ask for paths that are not there. */
const EVERYDAY = new Set(['method_not_allowed', 'not_found']);

/** Comes again with every try until an operator changes a setting here or at the provider. */
const MISCONFIGURED = new Set([
  'service_refused_by_provider',
  'gateway_refused_by_provider',
  'gateway_request_refused',
  'unusable_access_token',
]);

/** What has a cause inside the service, or at the provider, is for an operator to look at. */
function chooseLevel(status: number, { key, cause }: NonNullable<Reply['error']>) {
  if (MISCONFIGURED.has(key)) return 'warn';
  if (status >= 500 || (status === 200 && cause !== undefined)) return 'error';
  return status === 429 || EVERYDAY.has(key) ? 'debug' : 'info';
}
