// §8: counts each request against its windows: by its address, and by its caller once that is known.

import type { LimitGroup, LimitRule } from '../../config/groups/limits.ts';
import { findNetwork, toAddressKey } from '../../platform/address.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildLimitKey } from '../../store/keys.ts';
import {
  type Admission,
  isMissingGrant,
  type LimitWindow,
  NOT_COUNTED,
  type SessionAccess,
  type Windows,
  type WindowVerdict,
} from '../../store/store.ts';
import type { LimitScope } from '../../telemetry/metrics/metrics.ts';
import type { KnownLogin, LoginSearch } from '../endpoint/endpoint.ts';
import {
  createLimitErrors,
  createRememberedRefusals,
  createSpareLookups,
  type ListRefusals,
} from './refusals.ts';

/** The check of one request against the windows of its group. */
export type LimitCheck = Pick<
  WindowCheck,
  'countAddress' | 'countInvalid' | 'checkRememberedRefusal' | 'admit' | 'addressVerdict'
>;

/** A call as limits count it. */
export interface CountedCall {
  readonly caller: CountedCaller;
  readonly access: SessionAccess | undefined;
  /** The key of the caller's grant, if the gateway's own token admitted the caller. */
  readonly grantKey: string | undefined;
}

export interface Limiter {
  /**
   * `search` finds the login of a request, which is then counted instead of its address. A request that is neither cheap nor proven
   * also counts for the address once it is admitted, in a separate window (`LoginWindows`).
   *
   * @throws GatewayError `rate_limit_exceeded` while a refusal of this address is remembered,
   * `grant_rate_limit_exceeded` while one of a known login is, unless a login may still be looked up.
   */
  startCheck(group: LimitGroup, clientIp: string, search?: LoginSearch): LimitCheck;
  /** Lists callers that this process refuses until a known time, for operators. */
  readonly listRefusals: ListRefusals;
}

/** §8. Fails open (§8.4). */
export function createLimiter(runtime: Runtime): Limiter {
  const { config, store, clock, metrics } = runtime;
  if (!config.limits.enabled) return createUnlimitedLimiter(store);
  const rules: Readonly<Record<LimitGroup, LimitRule>> = config.limits.groups;
  const groups = new Map<LimitRule, CommonWindows>();
  const refusals = createRememberedRefusals(clock);
  const takeSpareLookup = createSpareLookups(clock);
  const createLimitError = createLimitErrors(runtime);
  const admitInStore = createAdmitInStore(runtime);
  const surroundings = { refusals, createLimitError, admitInStore, store, metrics };

  return {
    startCheck(group, clientIp, search) {
      const rule = rules[group];
      const common = groups.get(rule) ?? createCommonWindows(rule);
      groups.set(rule, common);
      const check = new WindowCheck(surroundings, common, clientIp, search);
      if (refusals.known.size === 0) return check;
      const id = search?.knownId;
      const windows =
        id === undefined
          ? [check.firstWindow]
          : [true, false].map(
              (isCheap) => createLoginWindows(rule, clientIp, { id, isCheap })?.login,
            );
      for (const window of windows) {
        if (window === undefined) continue;
        const { key } = window;
        const refusal = refusals.find(key);
        if (refusal === undefined || (search && takeSpareLookup(key, refusal.resetInMs))) continue;
        throw createLimitError(rule, refusal, { clientIp, user: undefined });
      }
      return check;
    },
    listRefusals: refusals.list,
  };
}

type CommonWindows = ReturnType<typeof createCommonWindows>;

/** Shared by all checks. */
interface CheckSurroundings extends Pick<Runtime, 'store' | 'metrics'> {
  readonly refusals: ReturnType<typeof createRememberedRefusals>;
  readonly createLimitError: ReturnType<typeof createLimitErrors>;
  readonly admitInStore: Windows['admitRequest'];
}

/** A class, since every request has one: as closures its functions took 600 bytes. */
class WindowCheck {
  /** The window of the address; in groups that count logins, that of the login once it is known. */
  firstWindow: LimitWindow;
  private readonly surroundings: CheckSurroundings;
  private readonly common: CommonWindows;
  private readonly clientIp: string;
  private readonly search: LoginSearch | undefined;
  /** Counts all logins of the address; undefined if there is no need. */
  private loginsWindow: LimitWindow | undefined = undefined;
  private hasLogin = false;
  /** For `X-RateLimit-*`; none until the address was counted, nor after a failure (§8.3, §8.4). */
  addressVerdict: WindowVerdict | undefined = undefined;
  private addressEntry: string | undefined = undefined;
  private isAddressCounted = false;
  /** The last caller and its window, which is needed twice, and whose key is a hash. */
  private caller: CountedCaller | undefined = undefined;
  private userWindow: LimitWindow | undefined = undefined;

  constructor(
    surroundings: CheckSurroundings,
    common: CommonWindows,
    clientIp: string,
    search: LoginSearch | undefined,
  ) {
    const { rule } = common;
    this.firstWindow = createWindow(rule, 'ip', rule.max.ip, toAddressKey(clientIp));
    this.surroundings = surroundings;
    this.common = common;
    this.clientIp = clientIp;
    this.search = search;
  }

  /**
   * Counts the address, or the login instead, before the caller is known, if finding the caller is expensive.
   *
   * @throws GatewayError `rate_limit_exceeded` or `grant_rate_limit_exceeded`.
   */
  async countAddress(): Promise<void> {
    if (this.isAddressCounted) return;
    const { clientIp, search } = this;
    if (search !== undefined) {
      // §8.4: if the store does not return the login, the address is counted.
      const login = await search.find().catch(() => undefined);
      const windows = login && createLoginWindows(this.common.rule, clientIp, login);
      if (windows !== undefined) {
        this.firstWindow = windows.login;
        this.loginsWindow = windows.address;
        this.hasLogin = true;
      }
      this.checkRemembered(this.firstWindow);
      if (this.loginsWindow !== undefined) this.checkRemembered(this.loginsWindow);
    }
    const windows = [this.firstWindow];
    const { verdict, entry } = await this.surroundings.admitInStore(windows, undefined);
    if (verdict?.isAdmitted === false) return this.refuse(verdict, windows);
    this.isAddressCounted = true;
    this.addressVerdict = verdict;
    this.addressEntry = entry;
  }

  /**
   * Counts what was sent among the invalid requests of all callers. If these are too many, the address is not counted either,
   * so that forged addresses do not fill the store.
   */
  async countInvalid(): Promise<void> {
    const { admitInStore, metrics } = this.surroundings;
    const { verdict } = await admitInStore([this.common.invalid], undefined);
    if (verdict?.isAdmitted === false) await this.uncountAddress();
    metrics.recordRateLimitCheck(this.common.rule.group, false);
  }

  /**
   * Called before the body is read.
   *
   * @throws GatewayError `user_rate_limit_exceeded` while a refusal of this user is remembered.
   */
  checkRememberedRefusal(caller: CountedCaller): void {
    this.caller = caller;
    this.userWindow = createUserWindow(this.common.rule, caller);
    if (this.userWindow !== undefined) this.checkRemembered(this.userWindow, caller.user);
  }

  /**
   * Counts the request in the windows that have not counted it yet, in all or in none. The same step of the store (several on a
   * Redis cluster) reads the session, slides it on request, and looks up the caller's grant: if that is missing, nothing is
   * counted. A refusal takes the address's entry back.
   *
   * @throws GatewayError `rate_limit_exceeded`, `user_rate_limit_exceeded` or `global_rate_limit_exceeded`.
   */
  async admit({
    caller,
    access,
    grantKey,
  }: CountedCall): Promise<Pick<Admission, 'session' | 'grant'>> {
    const { common, clientIp, isAddressCounted, loginsWindow } = this;
    const windows: LimitWindow[] = [];
    // A login that neither costs the provider anything nor keeps others out does not count in the window of all callers.
    if (!(isAddressCounted && this.hasLogin && loginsWindow === undefined)) {
      if (!isAddressCounted) windows.push(this.firstWindow);
      else if (loginsWindow !== undefined) windows.push(loginsWindow);
      const user = caller === this.caller ? this.userWindow : createUserWindow(common.rule, caller);
      if (user !== undefined) windows.push(user);
      const network = createIpv6NetworkWindow(common.rule, clientIp, caller);
      if (network !== undefined) windows.push(network);
      windows.push(caller.kind === 'unauthenticated' ? common.anonymous : common.global);
    }
    const { admitInStore, metrics } = this.surroundings;
    const isAsked = windows.length > 0 || access !== undefined || grantKey !== undefined;
    const admission = isAsked ? await admitInStore(windows, access, grantKey) : NOT_COUNTED;
    const { verdict, grant } = admission;
    if (grantKey !== undefined && isMissingGrant(grant)) return admission;
    if (verdict?.isAdmitted === false) return this.refuse(verdict, windows, caller.user);
    if (!isAddressCounted) this.addressVerdict = verdict;
    metrics.recordRateLimitCheck(common.rule.group, false);
    return admission;
  }

  private checkRemembered({ key }: LimitWindow, user?: string) {
    const { refusals, createLimitError } = this.surroundings;
    const refusal = refusals.known.size === 0 ? undefined : refusals.find(key);
    if (refusal === undefined) return;
    throw createLimitError(this.common.rule, refusal, { clientIp: this.clientIp, user });
  }

  /** Remembers the refusal of a single caller. @throws GatewayError always. */
  private async refuse(
    verdict: WindowVerdict,
    windows: readonly LimitWindow[],
    user?: string,
  ): Promise<never> {
    const { clientIp } = this;
    const { rule } = this.common;
    const { refusals, createLimitError } = this.surroundings;
    const window = windows.find(({ scope }) => scope === verdict.scope);
    if (window && window.scope !== 'global' && window.scope !== 'network') {
      const caller = (window.scope === 'user' ? user : undefined) ?? clientIp;
      refusals.remember(window.key, verdict, { group: rule.group, caller });
    }
    await this.uncountAddress();
    throw createLimitError(rule, verdict, { clientIp, user });
  }

  private async uncountAddress() {
    if (this.addressEntry === undefined) return;
    const { key } = this.firstWindow;
    // The window has room again, whatever is remembered about it.
    this.surroundings.refusals.forget(key);
    // If that fails, the entry leaves the window by itself.
    await this.surroundings.store.uncountRequest(key, this.addressEntry).catch(() => {});
  }
}

/** `RATE_LIMIT_ENABLED=false` (§8.3): only reads and slides the session, and looks up the caller's grant. */
function createUnlimitedLimiter(store: Windows): Limiter {
  const check: LimitCheck = {
    countAddress: async () => {},
    countInvalid: async () => {},
    checkRememberedRefusal: () => {},
    async admit({ access, grantKey }) {
      if (access === undefined && grantKey === undefined) return NOT_COUNTED;
      try {
        return await store.admitRequest([], access, grantKey);
      } catch (failure) {
        return toFailedAdmission(failure);
      }
    },
    addressVerdict: undefined,
  };
  return { startCheck: () => check, listRefusals: () => [] };
}

// The windows that count a request.

/** The sender of a request, as far as its checks have found out. */
export type CountedCaller =
  /** By a valid token, if one is required, or because the request is valid. `user` (`nameOwner`) is that of the token. */
  | {
      readonly kind: 'accepted';
      readonly user: string | undefined;
      /** The most requests of this user; overrides the rule. */
      readonly userMax?: number | undefined;
    }
  /** Without a valid token: counted separately, so that such callers cannot lock out others. */
  | { readonly kind: 'unauthenticated'; readonly user?: undefined; readonly userMax?: undefined };

export const UNAUTHENTICATED: CountedCaller = { kind: 'unauthenticated' };

/** Windows that replace that of the address, in groups whose requests are counted by login. */
interface LoginWindows {
  readonly login: LimitWindow;
  /** Counts all logins of the address, apart from its callers without a known login; undefined if there is no need. */
  readonly address: LimitWindow | undefined;
}

/** For cheap requests: in proxy mode those that get an earlier answer again, in broker mode those of known logins. */
const CHEAP_FACTOR = 100;

function createLoginWindows(
  rule: LimitRule,
  clientIp: string,
  { id, isCheap, isProven }: KnownLogin,
): LoginWindows | undefined {
  const { grant: max } = rule.max;
  if (max === undefined) return undefined;
  if (isCheap) {
    const login = createWindow(rule, 'grant', max * CHEAP_FACTOR, `answered:${id}`);
    return { login, address: undefined };
  }
  return {
    login: createWindow(rule, 'grant', max, `grant:${id}`),
    address: isProven
      ? undefined
      : createWindow(rule, 'ip', rule.max.ip, `logins:${toAddressKey(clientIp)}`),
  };
}

/** Undefined without a maximum (by default: `…_USER_RATE_LIMIT_MAX` is unset), and for callers that are not users. */
function createUserWindow(
  rule: LimitRule,
  { user, userMax: max = rule.max.user }: CountedCaller,
): LimitWindow | undefined {
  if (user === undefined || max === undefined) return undefined;
  return createWindow(rule, 'user', max, `user:${hashSha256(user)}`);
}

/** An IPv6 network gets at most a tenth of the window of all callers, but at least as much as one address. */
const NETWORK_SHARE = 0.1;

/** The /48 of the address. Undefined but for IPv6: no client gets thousands of IPv4 addresses for free. */
function createIpv6NetworkWindow(
  rule: LimitRule,
  clientIp: string,
  { kind }: CountedCaller,
): LimitWindow | undefined {
  const network = findNetwork(clientIp, 48);
  if (network === undefined) return undefined;
  const max = Math.max(rule.max.ip, Math.ceil(rule.max.global * NETWORK_SHARE));
  return createWindow(rule, 'network', max, kind === 'accepted' ? network : `anonymous:${network}`);
}

/** Windows of a rule that count many callers together: created once. */
const createCommonWindows = (rule: LimitRule) => ({
  rule,
  /** Accepted callers. */
  global: createWindow(rule, 'global', rule.max.global, 'global'),
  /** Callers without a valid token or a session of the gateway's pages, and unknown tokens and codes. */
  anonymous: createWindow(rule, 'global', rule.max.global, 'anonymous'),
  /** Invalid requests of all callers. Refuses no request: what it counts has already been refused. */
  invalid: createWindow(rule, 'global', rule.max.global, 'refused'),
});

const createWindow = (
  { group, windowMs }: LimitRule,
  scope: LimitScope,
  max: number,
  counted: string,
): LimitWindow => ({ scope, key: buildLimitKey(group, counted), windowMs, max });

// §8.4: counting fails open.

/** If one node of a cluster is down, some windows fail and some do not: one log line for all. */
const RECOVERED_MS = 2000;

/**
 * Creates an `admitRequest` that never fails. It logs once that limits are not enforced, and once that they are again. A
 * promise only if the store has to be waited for.
 */
function createAdmitInStore({ store, clock, log }: Runtime): Windows['admitRequest'] {
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
const toFailedAdmission = (failure: unknown): Admission => ({
  verdict: undefined,
  entry: undefined,
  limitFailure: failure,
  session: { failure },
  grant: { failure },
});
