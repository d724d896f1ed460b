// §7.2: what a refusal says of the limit, and what an operator is told of it.

import { findUserVariable, type LimitGroup, type LimitRule } from '../../config/groups/limits.ts';
import { GatewayError } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { Verdict } from '../../store/store.ts';
import type { LimitScope, Metrics } from '../../telemetry/metrics/metrics.ts';
import { createLimitHeaders } from './windows.ts';

/** The error for a refusal, counted, and warned of where it is the first of its window. */
type CreateLimitError = (rule: LimitRule, verdict: Verdict, caller: RefusedCaller) => GatewayError;

/** For the log. */
interface RefusedCaller {
  readonly clientIp: string;
  readonly user: string | undefined;
}

const ERRORS = {
  ip: 'rate_limit_exceeded',
  user: 'user_rate_limit_exceeded',
  grant: 'grant_rate_limit_exceeded',
  network: 'rate_limit_exceeded',
  global: 'global_rate_limit_exceeded',
} as const;

/** An address that reaches its limit is often many callers. */
function describeUsualCauses(group: LimitGroup): string {
  const userVariable = findUserVariable(group);
  const office =
    userVariable === undefined
      ? ''
      : ` If it is an office, where many users share one address, set ${userVariable}, too.`;
  return ` If this is the address of your proxy, TRUST_PROXY is wrong: all callers are counted as one.${office}`;
}

/** What stands behind a group's prefix in the variable that sets the maximum. */
const VARIABLES: Readonly<Record<LimitScope, string>> = {
  ip: 'RATE_LIMIT_MAX',
  user: 'USER_RATE_LIMIT_MAX',
  grant: 'GRANT_RATE_LIMIT_MAX',
  network: 'RATE_LIMIT_MAX',
  global: 'GLOBAL_RATE_LIMIT_MAX',
};

export function createLimitErrors(clock: Clock, metrics: Metrics, log: Log): CreateLimitError {
  const warnedUntil = new Map<LimitGroup, number>();

  /** One line for a group and window: a flood must not fill the log. */
  function warnOnce(rule: LimitRule, verdict: Verdict, caller: RefusedCaller) {
    const { group, windowMs } = rule;
    const now = clock.monotonic();
    if (now < (warnedUntil.get(group) ?? Number.NEGATIVE_INFINITY)) return;
    warnedUntil.set(group, now + windowMs);
    const variable = nameMaximum(rule, verdict);
    const causes = verdict.scope === 'ip' ? describeUsualCauses(group) : '';
    log.warn(
      `Requests are refused with 429 because ${variable} is reached. If they are wanted, raise it.${causes} Further refusals in this window are logged at debug.`,
      { group, limit: verdict.limit, windowMs, ...caller },
    );
  }

  return function createLimitError(rule, verdict, caller) {
    metrics.recordRateLimitCheck(rule.group, true);
    metrics.recordRateLimitHit(rule.group, verdict.scope);
    warnOnce(rule, verdict, caller);
    const seconds = toRetryAfter(verdict);
    return new GatewayError(ERRORS[verdict.scope], {
      details: `At most ${verdict.limit} requests per ${rule.windowMs / 1000} s are allowed (${nameMaximum(rule, verdict)}). Try again in ${seconds} s.`,
      data: { retryAfter: seconds },
      headers: { ...createLimitHeaders(verdict), 'Retry-After': String(seconds) },
    });
  };
}

/** What sets it: a variable, but for clients of the configuration file that have a limit of their own. */
function nameMaximum({ prefix, max }: LimitRule, { scope, limit }: Verdict): string {
  if (scope === 'user' && limit !== max.user)
    return '"rateLimit" of the client in the configuration file';
  // It has at least what one address has.
  if (scope === 'network' && limit > max.ip)
    return `the tenth of ${prefix}_GLOBAL_RATE_LIMIT_MAX that an IPv6 /48 has`;
  return `${prefix}_${VARIABLES[scope]}`;
}

/** Whole seconds until the oldest entry leaves the window, at least 1. */
const toRetryAfter = ({ resetInMs }: Verdict): number => Math.max(1, Math.ceil(resetInMs / 1000));
