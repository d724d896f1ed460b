// Spec §7.2, decisions 10: what a refused request gets, and what an operator hears of it.
import type { Clock } from '../../core/clock.ts';
import type { LimitGroup, LimitRule } from '../../core/config/groups/limits.ts';
import { GatewayError } from '../../core/errors/gateway-error.ts';
import type { Log } from '../../core/log.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';
import type { LimitScope, Verdict } from '../../core/store/store.ts';
import { limitHeaders, retryAfter } from './headers.ts';

/** The error for a refusal, counted, and warned of where it is the first of its window. */
export type Refuse = (rule: LimitRule, verdict: Verdict, from: RefusedCaller) => GatewayError;

/** For the log. */
export interface RefusedCaller {
  readonly clientIp: string;
  readonly user: string | undefined;
}

const ERRORS = {
  ip: 'rate_limit_exceeded',
  user: 'user_rate_limit_exceeded',
  global: 'global_rate_limit_exceeded',
} as const;

/** An address that reaches its limit is often many callers. */
const USUAL_CAUSES =
  ' If this is the address of your proxy, TRUST_PROXY is wrong: all callers are counted as one. If it is an office, where many users share one address, set MCP_USER_RATE_LIMIT_MAX, too.';

/** What stands behind a group's prefix in the variable that sets the maximum. */
const VARIABLES: Readonly<Record<LimitScope, string>> = {
  ip: 'RATE_LIMIT_MAX',
  user: 'USER_RATE_LIMIT_MAX',
  global: 'GLOBAL_RATE_LIMIT_MAX',
};

export function createRefuse(clock: Clock, metrics: Metrics, log: Log): Refuse {
  const warnedUntil = new Map<LimitGroup, number>();

  /** One line for a group and window: a flood must not fill the log. */
  function warnOnce({ group, prefix, windowMs }: LimitRule, verdict: Verdict, from: RefusedCaller) {
    const now = clock.monotonic();
    if (now < (warnedUntil.get(group) ?? Number.NEGATIVE_INFINITY)) return;
    warnedUntil.set(group, now + windowMs);
    const variable = `${prefix}_${VARIABLES[verdict.scope]}`;
    const causes = verdict.scope === 'ip' ? USUAL_CAUSES : '';
    log.warn(
      `Requests are refused with 429 because ${variable} is reached. If they are wanted, raise it.${causes} Further refusals in this window are logged at debug.`,
      { group, limit: verdict.limit, windowMs, ...from },
    );
  }

  return function refuse(rule, verdict, from) {
    metrics.recordRateLimitCheck(rule.group, true);
    metrics.recordRateLimitHit(rule.group, verdict.scope);
    warnOnce(rule, verdict, from);
    const seconds = retryAfter(verdict);
    return new GatewayError(ERRORS[verdict.scope], {
      details: `At most ${verdict.limit} requests per ${rule.windowMs / 1000} s are allowed; try again in ${seconds} s.`,
      data: { retryAfter: seconds },
      headers: { ...limitHeaders(verdict), 'Retry-After': String(seconds) },
    });
  };
}
