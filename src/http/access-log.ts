// Spec §4.11: one log line and one count per request, after its reply.
import type { Log } from '../core/log.ts';
import type { Reply } from '../core/message.ts';
import type { Metrics } from '../core/metrics/metrics.ts';

export interface Served {
  readonly method: string;
  readonly path: string;
  readonly clientIp: string;
  readonly route: string;
  readonly reply: Reply;
  /** Seconds from the request's head to the end of its reply. */
  readonly seconds: number;
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Never logs a query, a header or a body: they carry codes, states and tokens. */
export function createAccessLog(log: Log, metrics: Metrics): (served: Served) => void {
  return function record({ method, path, clientIp, route, reply, seconds }) {
    const { status, error } = reply;
    metrics.httpRequest(METHODS.has(method) ? method : 'other', route, status, seconds);
    const facts = {
      method,
      path: path.slice(0, 200),
      status,
      ms: Math.round(seconds * 1e6) / 1000,
      clientIp,
    };
    if (error === undefined) log.debug('Answered.', facts);
    else
      log[levelOf(status, error)]('Refused.', {
        ...facts,
        error: error.key,
        details: error.message,
        cause: error.cause,
      });
  };
}

/** A flood must not fill the disk; what has a cause inside the service is an operator's matter. */
function levelOf(status: number, { cause }: NonNullable<Reply['error']>) {
  if (status >= 500 || (status === 200 && cause !== undefined)) return 'error';
  return status === 429 ? 'debug' : 'info';
}
