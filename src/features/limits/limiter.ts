// Spec §8: per client IP and globally, with the session's record read in the same round trip.
import { fail } from '../../core/errors/gateway-error.ts';
import type { Log } from '../../core/log.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';
import { limitKey } from '../../core/store/keys.ts';
import type {
  Admission,
  LimitWindow,
  SessionRecord,
  Store,
  Verdict,
} from '../../core/store/store.ts';
import { limitHeaders, retryAfter } from './headers.ts';
import type { LimitGroup, LimitRule } from './rules.ts';

/** What is known of a request that no limit refused. */
export interface Admitted {
  /** `X-RateLimit-*`; absent when nothing was counted (Spec §8.3, §8.4). */
  readonly headers?: Readonly<Record<string, string>>;
  readonly session: SessionLookup;
}

/** The session's record as read beside the limits; a store failure is not "not found". */
export type SessionLookup =
  | { readonly record: SessionRecord | undefined }
  | { readonly failure: unknown };

/** @throws GatewayError `rate_limit_exceeded` or `global_rate_limit_exceeded`. */
export type Limiter = (
  group: LimitGroup,
  clientIp: string,
  sessionId: string | undefined,
) => Promise<Admitted>;

export interface LimiterDeps {
  readonly store: Store;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** Spec §8. Fails open, and says so once per outage (§8.4). */
export function createLimiter(
  rules: Readonly<Record<LimitGroup, LimitRule>>,
  { store, metrics, log }: LimiterDeps,
): Limiter {
  let failing = false;

  return async function admit(group, clientIp, sessionId) {
    let admission: Admission;
    try {
      admission = await store.admit(windowsOf(group, rules[group], clientIp), sessionId);
    } catch (cause) {
      return openly(group, { failure: cause }, cause);
    }
    const session = { record: admission.session };
    if (admission.verdict === undefined) return openly(group, session, admission.limitFailure);
    if (failing) log.info('Rate limits are enforced again: the store answers.');
    failing = false;
    return judge(group, admission.verdict, session);
  };

  function judge(group: LimitGroup, verdict: Verdict, session: SessionLookup): Admitted {
    metrics.rateLimitRequest(group, !verdict.admitted);
    const headers = limitHeaders(verdict);
    if (verdict.admitted) return { headers, session };
    metrics.rateLimitHit(group, verdict.scope);
    const seconds = retryAfter(verdict);
    return fail(verdict.scope === 'ip' ? 'rate_limit_exceeded' : 'global_rate_limit_exceeded', {
      details: `At most ${verdict.limit} requests per ${rules[group].windowMs / 1000} s are allowed; try again in ${seconds} s.`,
      data: { retryAfter: seconds },
      headers: { ...headers, 'Retry-After': String(seconds) },
    });
  }

  function openly(group: LimitGroup, session: SessionLookup, cause: unknown): Admitted {
    metrics.rateLimitRequest(group, false);
    if (!failing) {
      log.error(
        'Rate limits are not enforced: the store does not answer. Requests pass until it does.',
        { cause },
      );
    }
    failing = true;
    return { session };
  }
}

/** `RATE_LIMIT_ENABLED=false` (Spec §8.3): only the session is read. */
export const createUnlimited =
  (read: ReadSession): Limiter =>
  async (_group, _clientIp, sessionId) => ({ session: await read(sessionId) });

/** The session alone, nothing counted. */
export type ReadSession = (sessionId: string | undefined) => Promise<SessionLookup>;

export const createReadSession =
  (store: Store): ReadSession =>
  async (sessionId) => {
    if (sessionId === undefined) return { record: undefined };
    try {
      return { record: (await store.admit([], sessionId)).session };
    } catch (failure) {
      return { failure };
    }
  };

const windowsOf = (group: LimitGroup, rule: LimitRule, clientIp: string): LimitWindow[] => [
  {
    scope: 'ip',
    key: limitKey(group, 'ip', clientIp),
    windowMs: rule.windowMs,
    max: rule.perIp,
  },
  {
    scope: 'global',
    key: limitKey(group, 'global', clientIp),
    windowMs: rule.windowMs,
    max: rule.global,
  },
];
