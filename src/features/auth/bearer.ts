// §5.1, §5.6, RFC 6750 §2.1: the Authorization header.
import { readBearerToken } from '../../core/bearer-token.ts';
import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config/config.ts';
import { fail, GatewayError, toGatewayError } from '../../core/errors/gateway-error.ts';
import { type GatewayRequest, getHeader } from '../../core/message.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';
import type { UserContext } from '../../core/user-context.ts';
import type { TokenVerifier } from './token-verifier.ts';

/** Headers of a 401. */
export type Challenge = Readonly<Record<'WWW-Authenticate', string>>;

export interface BearerDeps {
  readonly verify: TokenVerifier['verify'];
  readonly challenge: Challenge;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/**
 * `beforeFetch` is called where a key has to be fetched first; what it throws ends the check.
 *
 * @throws GatewayError with a reason of §7.1 and the challenge, or `key_set_unavailable`.
 */
export type Authenticate = (
  request: Pick<GatewayRequest, 'headers'>,
  beforeFetch?: () => Promise<void>,
) => Promise<UserContext>;

/**
 * §5.6, RFC 9728 §5.1: where a client finds out how to log in. In broker mode it is the document
 * whose `resource` is the URL that was called: some clients compare them (RFC 9728 §3.3).
 */
export const createChallenge = (baseUrl: string, mode: Config['oauth']['mode']): Challenge => ({
  'WWW-Authenticate': `Bearer resource_metadata="${baseUrl}/.well-known/oauth-protected-resource${mode === 'broker' ? '/mcp' : ''}"`,
});

export function createAuthenticate(deps: BearerDeps): Authenticate {
  const { verify, challenge: headers, metrics, clock } = deps;

  return async function authenticate(request, beforeFetch) {
    const started = clock.monotonic();
    const record = (result: string) =>
      metrics.recordAuthAttempt(result, (clock.monotonic() - started) / 1000);
    try {
      const user = await verify(requireToken(getHeader(request, 'authorization')), beforeFetch);
      record('success');
      return user;
    } catch (thrown) {
      const error = toGatewayError(thrown);
      // A limit was reached: of the token nothing is known.
      if (error.row.status === 429) throw error;
      record(error.row.jsonrpc?.reason ?? error.key);
      if (error.row.status !== 401) throw error;
      throw new GatewayError(error.key, { ...error.failure, headers });
    }
  };
}

function requireToken(authorization: string | undefined): string {
  if (authorization === undefined) fail('missing_token');
  const token = readBearerToken(authorization);
  // No JWT has a comma: it stands between two headers that were joined.
  return token === undefined || token.includes(',') ? fail('invalid_format') : token;
}
