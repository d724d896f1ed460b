// §8: in which windows a request is counted.

import { findUserVariable, type LimitGroup, type LimitRule } from '../../config/groups/limits.ts';
import type { KnownLogin } from '../../endpoint/endpoint.ts';
import { GatewayError } from '../../errors/gateway-error.ts';
import { toAddressKey } from '../../platform/address.ts';
import type { Clock } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { Log } from '../../platform/log.ts';
import { buildLimitKey } from '../../store/keys.ts';
import type { LimitWindow, Verdict } from '../../store/store.ts';
import type { LimitScope, Metrics } from '../../telemetry/metrics/metrics.ts';

/** Who turned out to send a request, once it was judged. */
export type Caller =
  /** Let in, by a valid token or because what was sent is valid. `sub` where users are counted. */
  | { readonly kind: 'admitted'; readonly sub: string | undefined }
  /** Without a valid token: counted apart, so that such callers lock nobody out. */
  | { readonly kind: 'unauthenticated' };

export const UNAUTHENTICATED: Caller = { kind: 'unauthenticated' };

export const createAddressWindow = (rule: LimitRule, clientIp: string): LimitWindow =>
  createWindow(rule, 'ip', rule.max.ip, toAddressKey(clientIp));

/** In place of the address, where requests of the group are counted by login. */
export interface LoginWindows {
  readonly login: LimitWindow;
  /** Of all logins behind the address, apart from its callers of no known login; undefined where there is no need. */
  readonly address: LimitWindow | undefined;
}

/** An answer that is there already costs next to nothing. */
const ANSWERED_FACTOR = 100;

export function createLoginWindows(
  rule: LimitRule,
  clientIp: string,
  { id, isAnswered }: KnownLogin,
): LoginWindows | undefined {
  const { grant: max } = rule.max;
  if (max === undefined) return undefined;
  if (isAnswered) {
    const login = createWindow(rule, 'grant', max * ANSWERED_FACTOR, `answered:${id}`);
    return { login, address: undefined };
  }
  return {
    login: createWindow(rule, 'grant', max, `grant:${id}`),
    address: createWindow(rule, 'ip', rule.max.ip, `logins:${toAddressKey(clientIp)}`),
  };
}

/** In which of its windows a login may be refused, whatever it asks for. */
export const createLoginKeys = (rule: LimitRule, clientIp: string, id: string): readonly string[] =>
  [true, false].flatMap((isAnswered) => {
    const windows = createLoginWindows(rule, clientIp, { id, isAnswered });
    return windows === undefined ? [] : [windows.login.key];
  });

/** Undefined where users are not counted, and for callers that are none. */
export function createUserWindow(rule: LimitRule, caller: Caller): LimitWindow | undefined {
  const { user: max } = rule.max;
  const sub = getSub(caller);
  if (sub === undefined || max === undefined) return undefined;
  return createWindow(rule, 'user', max, `user:${hashSha256(sub)}`);
}

/** Those that count beside the address, in their order. */
export function createCallerWindows(rule: LimitRule, caller: Caller): readonly LimitWindow[] {
  const user = createUserWindow(rule, caller);
  const counted = caller.kind === 'unauthenticated' ? 'anonymous' : 'global';
  const all = createWindow(rule, 'global', rule.max.global, counted);
  return user === undefined ? [all] : [user, all];
}

/** Invalid requests of all callers. It refuses nobody: what it counts is refused already. */
export const createInvalidWindow = (rule: LimitRule): LimitWindow =>
  createWindow(rule, 'global', rule.max.global, 'refused');

export const getSub = (caller: Caller): string | undefined =>
  caller.kind === 'admitted' ? caller.sub : undefined;

const createWindow = (
  { group, windowMs }: LimitRule,
  scope: LimitScope,
  max: number,
  counted: string,
): LimitWindow => ({ scope, key: buildLimitKey(group, counted), windowMs, max });

// §4.12, §7.2: what a response says of the limits, and what an operator is told of a refusal.

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
  global: 'GLOBAL_RATE_LIMIT_MAX',
};

export function createLimitErrors(clock: Clock, metrics: Metrics, log: Log): CreateLimitError {
  const warnedUntil = new Map<LimitGroup, number>();

  /** One line for a group and window: a flood must not fill the log. */
  function warnOnce(
    { group, prefix, windowMs }: LimitRule,
    verdict: Verdict,
    caller: RefusedCaller,
  ) {
    const now = clock.monotonic();
    if (now < (warnedUntil.get(group) ?? Number.NEGATIVE_INFINITY)) return;
    warnedUntil.set(group, now + windowMs);
    const variable = buildVariable(prefix, verdict.scope);
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
      details: `At most ${verdict.limit} requests per ${rule.windowMs / 1000} s are allowed (${buildVariable(rule.prefix, verdict.scope)}). Try again in ${seconds} s.`,
      data: { retryAfter: seconds },
      headers: { ...createLimitHeaders(verdict), 'Retry-After': String(seconds) },
    });
  };
}

const buildVariable = (prefix: string, scope: LimitScope): string =>
  `${prefix}_${VARIABLES[scope]}`;

/** `X-RateLimit-*`. */
export const createLimitHeaders = ({ limit, remaining, resetAt }: Verdict) => ({
  'X-RateLimit-Limit': String(limit),
  'X-RateLimit-Remaining': String(remaining),
  // Rounded up: at that second the entry is gone for certain.
  'X-RateLimit-Reset': String(Math.ceil(resetAt / 1000)),
});

/** Whole seconds until the oldest entry leaves the window, at least 1. */
const toRetryAfter = ({ resetInMs }: Verdict): number => Math.max(1, Math.ceil(resetInMs / 1000));
