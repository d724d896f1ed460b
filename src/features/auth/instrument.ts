// §4.11: how long the check of a token takes, and what it comes to.
import type { Clock } from '../../core/clock.ts';
import { toGatewayError } from '../../core/errors/gateway-error.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';
import type { UserContext } from '../../core/user-context.ts';
import type { Authenticate } from './bearer.ts';

export function instrumentAuthenticate(
  authenticate: Authenticate,
  metrics: Metrics,
  clock: Clock,
): Authenticate {
  return function authenticateAndRecord(request, beforeFetch) {
    const startedAt = clock.monotonic();
    const record = (result: string) =>
      metrics.recordAuthAttempt(result, (clock.monotonic() - startedAt) / 1000);

    function recordSuccess(user: UserContext): UserContext {
      record('success');
      return user;
    }

    function recordRefusal(thrown: unknown): never {
      const { row, key } = toGatewayError(thrown);
      // 429: a limit was reached before the token was checked, so this says nothing about the token.
      if (row.status !== 429) record(row.jsonrpc?.reason ?? key);
      throw thrown;
    }

    try {
      const user = authenticate(request, beforeFetch);
      return user instanceof Promise
        ? user.then(recordSuccess, recordRefusal)
        : recordSuccess(user);
    } catch (thrown) {
      return recordRefusal(thrown);
    }
  };
}
