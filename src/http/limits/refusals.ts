// §8: refusals: those that are remembered, and the errors of limits.

import { findUserVariable, type LimitGroup, type LimitRule } from '../../config/groups/limits.ts';
import { GatewayError } from '../../errors/gateway-error.ts';
import { createBoundedMap, createExpiringMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { WindowVerdict } from '../../store/store.ts';
import type { LimitScope } from '../../telemetry/metrics/metrics.ts';
import { createLimitHeaders } from '../endpoint/message.ts';

// A refusal by address, login or user is remembered until its reset time (§11). Entries of a window only age, so it stays true.
// During a flood by an address no token is read, during one by a user no body, and the store in neither. If processes lease parts
// of windows (RATE_LIMIT_COUNTING=leased), a part may be returned, so the store is queried again soon.

/** The limit that refuses, and the caller that is refused. */
interface RefusedBy {
  readonly group: LimitGroup;
  /** An address, or a user (`nameOwner`). */
  readonly caller: string;
}

interface CurrentRefusal extends RefusedBy {
  readonly refusal: WindowVerdict;
}

interface Remembered extends CurrentRefusal {
  /** Monotonic milliseconds when the window certainly has room. */
  readonly resetAt: number;
  /** Monotonic milliseconds when the store is queried again. */
  readonly until: number;
}

/** Lists the refusals currently in force. */
export type ListRefusals = ReturnType<typeof createRememberedRefusals>['list'];

export function createRememberedRefusals(clock: Clock) {
  const known = createBoundedMap<string, Remembered>('refusals');

  return {
    /** Includes those no longer in force. */
    known,
    /** Returns the current refusal of this window; undefined if the window may admit again. */
    find(key: string): WindowVerdict | undefined {
      const remembered = known.get(key);
      if (remembered === undefined) return undefined;
      const refusal = findCurrent(remembered);
      if (refusal === undefined) known.delete(key);
      return refusal;
    },
    /** Forgets a refusal whose window has room earlier than expected. */
    forget: (key: string): void => void known.delete(key),
    /** Lists the refusals currently in force. */
    list: (): readonly CurrentRefusal[] =>
      [...known.values()].flatMap((remembered) => {
        const { group, caller } = remembered;
        const refusal = findCurrent(remembered);
        return refusal === undefined ? [] : [{ group, caller, refusal }];
      }),
    remember(key: string, refusal: WindowVerdict, about: RefusedBy): void {
      const { resetInMs, holdsForMs = resetInMs } = refusal;
      const now = clock.monotonic();
      const until = now + Math.min(resetInMs, holdsForMs);
      known.set(key, { ...about, refusal, resetAt: now + resetInMs, until });
    },
  };

  function findCurrent({ refusal, resetAt, until }: Remembered): WindowVerdict | undefined {
    const now = clock.monotonic();
    return now < until ? { ...refusal, resetInMs: resetAt - now } : undefined;
  }
}

// §8: a refused address may be shared by others, and a login may ask for something that costs nothing. A few requests are
// still looked up: a flood costs no further reads of the store.

const MAX_LOOKUPS = 30;

export function createSpareLookups(clock: Clock) {
  const byKey = createExpiringMap<{ taken: number }>('spareLookups', clock.monotonic);

  /** Returns true if a lookup is left for this window until its refusal ends. */
  return function takeSpareLookup(key: string, resetInMs: number): boolean {
    const current = byKey.get(key);
    if (current !== undefined) {
      current.taken += 1;
      return current.taken <= MAX_LOOKUPS;
    }
    byKey.set(key, { taken: 1 }, clock.monotonic() + resetInMs);
    return true;
  };
}

// §7.2: errors of refusals, and the warning for operators.

/** The caller as the log names it. */
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

/** An address that reaches its limit is often shared by many callers. */
function describeUsualCauses(group: LimitGroup) {
  const userVariable = findUserVariable(group);
  const office =
    userVariable === undefined
      ? ''
      : ` If it is an office, where many users share one address, set ${userVariable}, too.`;
  return ` If this is the address of your proxy, TRUST_PROXY is wrong: all callers are counted as one.${office}`;
}

/** Suffixes of the variables that set the maximum; the prefix depends on the group. */
const VARIABLES: Readonly<Record<LimitScope, string>> = {
  ip: 'RATE_LIMIT_MAX',
  user: 'USER_RATE_LIMIT_MAX',
  grant: 'GRANT_RATE_LIMIT_MAX',
  network: 'RATE_LIMIT_MAX',
  global: 'GLOBAL_RATE_LIMIT_MAX',
};

export function createLimitErrors({ clock, metrics, log }: Runtime) {
  const warnedUntil = new Map<LimitGroup, number>();

  /** Logs one line per group and window: a flood must not fill the log. */
  function warnOnce(rule: LimitRule, verdict: WindowVerdict, caller: RefusedCaller) {
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

  /** Creates the error of a refusal, counts it, and warns if it is the first of its window. */
  return function createLimitError(
    rule: LimitRule,
    verdict: WindowVerdict,
    caller: RefusedCaller,
  ): GatewayError {
    metrics.recordRateLimitCheck(rule.group, true);
    metrics.recordRateLimitHit(rule.group, verdict.scope);
    warnOnce(rule, verdict, caller);
    // Whole seconds until the oldest entry leaves the window, at least 1.
    const seconds = Math.max(1, Math.ceil(verdict.resetInMs / 1000));
    return new GatewayError(ERRORS[verdict.scope], {
      details: `At most ${verdict.limit} requests per ${rule.windowMs / 1000} s are allowed (${nameMaximum(rule, verdict)}). Try again in ${seconds} s.`,
      data: { retryAfter: seconds },
      headers: { ...createLimitHeaders(verdict), 'Retry-After': String(seconds) },
    });
  };
}

/** Names the setting of a maximum: a variable, or the member of the configuration file for clients with their own limit. */
function nameMaximum({ prefix, max }: LimitRule, { scope, limit }: WindowVerdict) {
  if (scope === 'user' && limit !== max.user)
    return '"rateLimit" of the client in the configuration file';
  // It is at least that of one address.
  if (scope === 'network' && limit > max.ip)
    return `the tenth of ${prefix}_GLOBAL_RATE_LIMIT_MAX that an IPv6 /48 has`;
  return `${prefix}_${VARIABLES[scope]}`;
}
