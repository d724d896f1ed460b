// §8: the windows in which a request counts, remembered refusals, and the errors and headers of limits.

import { findUserVariable, type LimitGroup, type LimitRule } from '../../config/groups/limits.ts';
import { GatewayError } from '../../errors/gateway-error.ts';
import { findNetwork, toAddressKey } from '../../platform/address.ts';
import { createBoundedMap, createExpiringMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildLimitKey } from '../../store/keys.ts';
import type { Admission, LimitWindow, Windows, WindowVerdict } from '../../store/store.ts';
import type { LimitScope } from '../../telemetry/metrics/metrics.ts';
import type { KnownLogin } from '../endpoint/endpoint.ts';

/** The sender of a request, as far as its checks have found out. */
export type CountedCaller =
  /** Admitted, by a valid token or because the request is valid. `user` (`nameOwner`) if users are counted. */
  | {
      readonly kind: 'admitted';
      readonly user: string | undefined;
      /** The most requests of this user; overrides the rule. */
      readonly userMax?: number | undefined;
    }
  /** Without a valid token: counted apart, so that such callers cannot lock out others. */
  | { readonly kind: 'unauthenticated'; readonly user?: undefined; readonly userMax?: undefined };

export const UNAUTHENTICATED: CountedCaller = { kind: 'unauthenticated' };

export const createAddressWindow = (rule: LimitRule, clientIp: string): LimitWindow =>
  createWindow(rule, 'ip', rule.max.ip, toAddressKey(clientIp));

/** Windows that replace that of the address, in groups whose requests are counted by login. */
interface LoginWindows {
  readonly login: LimitWindow;
  /** Counts all logins of the address, apart from its callers without a known login; undefined if there is no need. */
  readonly address: LimitWindow | undefined;
}

/** Repeating an earlier answer costs next to nothing. */
const ANSWERED_FACTOR = 100;

export function createLoginWindows(
  rule: LimitRule,
  clientIp: string,
  { id, isAnswered, isProven }: KnownLogin,
): LoginWindows | undefined {
  const { grant: max } = rule.max;
  if (max === undefined) return undefined;
  if (isAnswered) {
    const login = createWindow(rule, 'grant', max * ANSWERED_FACTOR, `answered:${id}`);
    return { login, address: undefined };
  }
  return {
    login: createWindow(rule, 'grant', max, `grant:${id}`),
    address: isProven
      ? undefined
      : createWindow(rule, 'ip', rule.max.ip, `logins:${toAddressKey(clientIp)}`),
  };
}

/** Lists the keys of the windows in which a login may be refused. */
export const createLoginKeys = (rule: LimitRule, clientIp: string, id: string): readonly string[] =>
  [true, false].flatMap((isAnswered) => {
    const windows = createLoginWindows(rule, clientIp, { id, isAnswered });
    return windows === undefined ? [] : [windows.login.key];
  });

/** Undefined if users are not counted, and for callers that are not users. */
export function createUserWindow(
  rule: LimitRule,
  { user, userMax: max = rule.max.user }: CountedCaller,
): LimitWindow | undefined {
  if (user === undefined || max === undefined) return undefined;
  return createWindow(rule, 'user', max, `user:${hashSha256(user)}`);
}

/** An IPv6 network gets at most a tenth of the window of all callers, but at least as much as one address. */
const NETWORK_SHARE = 0.1;

/** Undefined for IPv4 addresses: no client gets thousands of them for free. */
export function createNetworkWindow(
  rule: LimitRule,
  clientIp: string,
  { kind }: CountedCaller,
): LimitWindow | undefined {
  const network = findNetwork(clientIp, 48);
  if (network === undefined) return undefined;
  const max = Math.max(rule.max.ip, Math.ceil(rule.max.global * NETWORK_SHARE));
  return createWindow(rule, 'network', max, kind === 'admitted' ? network : `anonymous:${network}`);
}

/** Windows of a rule that count many callers together: created once. */
export const createCommonWindows = (rule: LimitRule) => ({
  rule,
  /** Callers that were admitted. */
  global: createWindow(rule, 'global', rule.max.global, 'global'),
  /** Callers without a valid token or a session of the gateway's pages, and tokens that may be revoked. */
  anonymous: createWindow(rule, 'global', rule.max.global, 'anonymous'),
  /** Invalid requests of all callers. Refuses no request: what it counts is refused already. */
  invalid: createWindow(rule, 'global', rule.max.global, 'refused'),
});

const createWindow = (
  { group, windowMs }: LimitRule,
  scope: LimitScope,
  max: number,
  counted: string,
): LimitWindow => ({ scope, key: buildLimitKey(group, counted), windowMs, max });

/** §4.12: `X-RateLimit-*`. */
export const createLimitHeaders = ({ limit, remaining, resetAt }: WindowVerdict) => ({
  'X-RateLimit-Limit': String(limit),
  'X-RateLimit-Remaining': String(remaining),
  // Rounded up: at that second the entry has certainly left the window.
  'X-RateLimit-Reset': String(Math.ceil(resetAt / 1000)),
});

// §8.4: counting fails open.

/** If one node of a cluster is down, some windows fail and some do not: one log line for all. */
const RECOVERED_MS = 2000;

/**
 * Creates an `admitRequest` that never fails. It logs once that limits are not enforced, and once that they are again. A
 * promise only if the store has to be waited for.
 */
export function createAdmitInStore({ store, clock, log }: Runtime): Windows['admitRequest'] {
  let isFailing = false;
  let failedAt = Number.NEGATIVE_INFINITY;

  return function admitInStore(windows, access, grantKey) {
    const admitting = store.admitRequest(windows, access, grantKey);
    return admitting instanceof Promise
      ? admitting.then(report, (failure: unknown) => report(toFailedAdmission(failure)))
      : report(admitting);
  };

  function report(admission: Admission): Admission {
    const { limitFailure: cause } = admission;
    if (cause !== undefined) {
      failedAt = clock.monotonic();
      if (isFailing) return admission;
      isFailing = true;
      log.error(
        'Rate limits are not enforced: the store does not answer. Requests pass until it does.',
        { cause },
      );
    } else if (isFailing && clock.monotonic() - failedAt > RECOVERED_MS) {
      isFailing = false;
      log.info('Rate limits are enforced again: the store answers.');
    }
    return admission;
  }
}

/** Counts nothing, and passes the failure to calls that need their session or their caller's grant. */
export const toFailedAdmission = (failure: unknown): Admission => ({
  verdict: undefined,
  entry: undefined,
  limitFailure: failure,
  session: { failure },
  grant: { failure },
});

// A refusal by address or user is remembered until its reset time (§11). Entries of a window only age, so it stays true, and
// during a flood neither tokens nor bodies nor the store are read. If processes lease parts of windows
// (RATE_LIMIT_COUNTING=leased), a part may be returned: then the store is asked again soon.

/** The limit that refuses, and the caller that is refused. */
interface RefusedBy {
  readonly group: LimitGroup;
  /** An address, or a user (`nameOwner`). */
  readonly caller: string;
}

export interface CurrentRefusal extends RefusedBy {
  readonly refusal: WindowVerdict;
}

interface Remembered extends CurrentRefusal {
  /** Monotonic milliseconds at which the window certainly has room. */
  readonly resetAt: number;
  /** Monotonic milliseconds at which the store is asked again. */
  readonly until: number;
}

export function createRememberedRefusals(clock: Clock) {
  const byKey = createBoundedMap<string, Remembered>('refusals');

  return {
    /** Returns the current refusal of this window; undefined if the window may admit again. */
    find(key: string): WindowVerdict | undefined {
      const remembered = byKey.get(key);
      if (remembered === undefined) return undefined;
      const refusal = findCurrent(remembered);
      if (refusal === undefined) byKey.delete(key);
      return refusal;
    },
    /** Forgets a refusal whose window has room before its time. */
    forget: (key: string): void => void byKey.delete(key),
    /** Lists the refusals that hold now. */
    list: (): readonly CurrentRefusal[] =>
      [...byKey.values()].flatMap((remembered) => {
        const { group, caller } = remembered;
        const refusal = findCurrent(remembered);
        return refusal === undefined ? [] : [{ group, caller, refusal }];
      }),
    remember(key: string, refusal: WindowVerdict, about: RefusedBy): void {
      const { resetInMs, holdsForMs = resetInMs } = refusal;
      const now = clock.monotonic();
      const until = now + Math.min(resetInMs, holdsForMs);
      byKey.set(key, { ...about, refusal, resetAt: now + resetInMs, until });
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
function describeUsualCauses(group: LimitGroup): string {
  const userVariable = findUserVariable(group);
  const office =
    userVariable === undefined
      ? ''
      : ` If it is an office, where many users share one address, set ${userVariable}, too.`;
  return ` If this is the address of your proxy, TRUST_PROXY is wrong: all callers are counted as one.${office}`;
}

/** Suffixes of the variables that set the maximum; the prefix is that of the group. */
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

/** Names the setting of a maximum: a variable, or the member of the configuration file for clients with a limit of their own. */
function nameMaximum({ prefix, max }: LimitRule, { scope, limit }: WindowVerdict): string {
  if (scope === 'user' && limit !== max.user)
    return '"rateLimit" of the client in the configuration file';
  // It is at least that of one address.
  if (scope === 'network' && limit > max.ip)
    return `the tenth of ${prefix}_GLOBAL_RATE_LIMIT_MAX that an IPv6 /48 has`;
  return `${prefix}_${VARIABLES[scope]}`;
}
