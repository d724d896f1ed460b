// §18.6, RFC 8693: `token-exchange`: for the caller's token, the provider makes one for the server.
import type { Clock } from '../../../core/clock.ts';
import type { Log } from '../../../core/log.ts';
import { createWarnThrottle } from '../../../core/log-throttle.ts';
import { hashSha256 } from '../../../core/sha256.ts';
import type { UserContext } from '../../../core/user-context.ts';
import type { ExchangeToken, TokenExchangeResult } from '../../oauth/provider/exchange-token.ts';
import { UpstreamError } from '../upstream.ts';
import type { GetToken } from './get-headers.ts';
import { createTokenMemory } from './token-memory.ts';

export interface TokenExchangeConfig {
  readonly server: string;
  readonly audience: string;
  readonly scope?: string;
}

export interface TokenExchangeDeps {
  readonly exchangeToken: ExchangeToken;
  readonly clock: Clock;
  readonly log: Log;
}

type Outcome = { readonly token: string } | { readonly error: UpstreamError };

/** Tokens of one server; some 2 KB each. */
const MAX_TOKENS = 2000;
/** A token must still be good when it arrives. */
const RESERVE_MS = 5000;
/** Where the provider does not say how long its token lives. */
const UNKNOWN_LIFETIME_SECONDS = 60;
/** A model tries again at once: the provider must not hear of each try. */
const FAILURE_MS = 3000;

export function createTokenExchange(
  { server, audience, scope }: TokenExchangeConfig,
  { exchangeToken, clock, log }: TokenExchangeDeps,
): GetToken {
  const memory = createTokenMemory<Outcome>(MAX_TOKENS, clock);
  const running = new Map<string, Promise<Outcome>>();
  const warn = createWarnThrottle(clock, (reason: string) =>
    log.warn('The provider made no token for a server. Check its client, audience and scope.', {
      server,
      audience,
      reason,
    }),
  );

  return async function getToken({ user }) {
    if (user === undefined) return undefined;
    const hash = hashSha256(user.token);
    const outcome = memory.get(hash) ?? (await exchangeOnce(hash, user));
    if ('error' in outcome) throw outcome.error;
    return outcome.token;
  };

  function exchangeOnce(hash: string, user: UserContext): Promise<Outcome> {
    const known = running.get(hash);
    if (known !== undefined) return known;
    const started = exchangeAndRemember(hash, user).finally(() => running.delete(hash));
    running.set(hash, started);
    return started;
  }

  async function exchangeAndRemember(hash: string, { token, claims }: UserContext) {
    const startedAt = clock.now();
    const { outcome, endsAt } = await exchange(token, startedAt);
    const callerEndsAt = typeof claims.exp === 'number' ? claims.exp * 1000 : startedAt;
    memory.set(hash, outcome, Math.min(endsAt, callerEndsAt));
    return outcome;
  }

  async function exchange(subjectToken: string, startedAt: number) {
    const failAs = (advice: string, reason: string) => {
      warn(reason);
      const error = new UpstreamError('unavailable', advice, {
        cause: new Error(reason),
      });
      return { outcome: { error }, endsAt: clock.now() + FAILURE_MS };
    };
    let result: TokenExchangeResult;
    try {
      result = await exchangeToken({ subjectToken, audience, scope });
    } catch (error) {
      return failAs(UNREACHABLE, describeCause(error));
    }
    if (result.kind === 'refused') return failAs(REFUSED, result.reason);
    const seconds = result.expiresInSeconds ?? UNKNOWN_LIFETIME_SECONDS;
    return { outcome: { token: result.token }, endsAt: startedAt + seconds * 1000 - RESERVE_MS };
  }
}

const UNREACHABLE = 'the identity provider could not be asked for access to it';

const REFUSED =
  'the identity provider gives this login no access to it; only the operator of this service can change that';

/** What happened, with what lies beneath: a message names no token. */
function describeCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error
    ? `${error.message} (${describeCause(error.cause)})`
    : error.message;
}
