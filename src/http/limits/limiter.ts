// §8: a request is counted by its address, and by who turns out to send it.

import type { LimitGroup, LimitRule } from '../../config/groups/limits.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  type Admission,
  isMissingGrant,
  type LimitWindow,
  NOT_COUNTED,
  type SessionAccess,
  type Windows,
  type WindowVerdict,
} from '../../store/store.ts';
import type { LoginSearch } from '../endpoint/endpoint.ts';
import type { ReplyHeaders } from '../endpoint/message.ts';
import {
  type CountedCaller,
  type CurrentRefusal,
  createAddressWindow,
  createAdmitInStore,
  createCommonWindows,
  createLimitErrors,
  createLimitHeaders,
  createLoginKeys,
  createLoginWindows,
  createNetworkWindow,
  createRememberedRefusals,
  createSpareLookups,
  createUserWindow,
  getUser,
  type LoginWindows,
  toFailedAdmission,
} from './windows.ts';

/** The check of one request against the windows of its group. */
export type LimitCheck = Pick<
  WindowCheck,
  'countAddress' | 'countInvalid' | 'checkRememberedRefusal' | 'admit' | 'headers'
>;

/** A call as limits count it. */
export interface CountedCall {
  readonly caller: CountedCaller;
  readonly access: SessionAccess | undefined;
  /** The key of the caller's grant, where the gateway's own token let it in. */
  readonly grantKey: string | undefined;
}

/** The store's answers about a call that no limit refuses. */
export type AdmittedCall = Pick<Admission, 'session' | 'grant'>;

export interface Limiter {
  /**
   * `search` finds the login that a request belongs to, which is then counted in place of its address.
   *
   * @throws GatewayError `rate_limit_exceeded` while a refusal of this address is remembered,
   * `grant_rate_limit_exceeded` while one of a known login is, unless a login may still be looked up.
   */
  startCheck(group: LimitGroup, clientIp: string, search?: LoginSearch): LimitCheck;
  /** Lists callers whom this process refuses until a time that it knows, for operators. */
  listRefusals(): readonly CurrentRefusal[];
}

/** §8. Fails open (§8.4). */
export function createLimiter(runtime: Runtime): Limiter {
  const { config, store } = runtime;
  if (!config.limits.enabled) return createUnlimitedLimiter(store);
  const rules: Readonly<Record<LimitGroup, LimitRule>> = config.limits.groups;
  const commonWindows = new Map<LimitRule, CommonWindows>();
  const surroundings = createSurroundings(runtime);

  return {
    startCheck(group, clientIp, search) {
      const rule = rules[group];
      const common = commonWindows.get(rule) ?? createCommonWindows(rule);
      commonWindows.set(rule, common);
      const check = new WindowCheck(surroundings, rule, common, clientIp, search);
      check.checkFirst();
      return check;
    },
    listRefusals: surroundings.refusals.list,
  };
}

/** Shared by all checks. */
const createSurroundings = (runtime: Runtime) => ({
  refusals: createRememberedRefusals(runtime.clock),
  takeSpareLookup: createSpareLookups(runtime.clock),
  createLimitError: createLimitErrors(runtime),
  admitInStore: createAdmitInStore(runtime),
  store: runtime.store,
  metrics: runtime.metrics,
});

type CheckSurroundings = ReturnType<typeof createSurroundings>;
type CommonWindows = ReturnType<typeof createCommonWindows>;

/** A class: every request has one, and as closures its functions took 600 bytes. */
class WindowCheck {
  private readonly surroundings: CheckSurroundings;
  private readonly rule: LimitRule;
  private readonly common: CommonWindows;
  private readonly clientIp: string;
  private readonly search: LoginSearch | undefined;
  private firstWindow: LimitWindow;
  private loginWindows: LoginWindows | undefined;
  private addressVerdict: WindowVerdict | undefined;
  private addressEntry: string | undefined;
  private isAddressCounted = false;
  /** The caller that was looked at last, and its window: it is asked for twice, and its key is a hash. */
  private caller: CountedCaller | undefined;
  private userWindow: LimitWindow | undefined;

  constructor(
    surroundings: CheckSurroundings,
    rule: LimitRule,
    common: CommonWindows,
    clientIp: string,
    search: LoginSearch | undefined,
  ) {
    this.surroundings = surroundings;
    this.rule = rule;
    this.common = common;
    this.clientIp = clientIp;
    this.search = search;
    this.firstWindow = createAddressWindow(rule, clientIp);
  }

  /**
   * Before anything is looked up: in the windows of a known login, or that of the address.
   *
   * @throws GatewayError `rate_limit_exceeded` or `grant_rate_limit_exceeded` where nothing more is looked up.
   */
  checkFirst(): void {
    const { refusals, takeSpareLookup, createLimitError } = this.surroundings;
    const { rule, clientIp, search } = this;
    const keys =
      search?.knownId === undefined
        ? [this.firstWindow.key]
        : createLoginKeys(rule, clientIp, search.knownId);
    for (const key of keys) {
      const refusal = refusals.find(key);
      if (refusal === undefined) continue;
      if (search && takeSpareLookup(key, refusal.resetInMs)) continue;
      throw createLimitError(rule, refusal, { clientIp, user: undefined });
    }
  }

  /**
   * Counts the address, or the login in its place, before it is known who calls, where finding that out costs something.
   *
   * @throws GatewayError `rate_limit_exceeded` or `grant_rate_limit_exceeded`.
   */
  async countAddress(): Promise<void> {
    if (this.isAddressCounted) return;
    const { rule, clientIp, search } = this;
    if (search !== undefined) {
      // §8.4: where the store does not tell the login, the address is counted.
      const login = await search.find().catch(() => undefined);
      this.loginWindows = login && createLoginWindows(rule, clientIp, login);
      this.firstWindow = this.loginWindows?.login ?? this.firstWindow;
      this.checkRemembered(this.firstWindow);
      this.checkRemembered(this.loginWindows?.address);
    }
    const windows = [this.firstWindow];
    const { verdict, entry } = await this.surroundings.admitInStore(windows, undefined);
    if (verdict?.isAdmitted === false) return this.refuse(verdict, windows);
    this.isAddressCounted = true;
    this.addressVerdict = verdict;
    this.addressEntry = entry;
  }

  /**
   * Counts what was sent among the invalid requests of all callers. Where these are too many, its
   * address is not counted either, so that made-up addresses do not fill the store.
   */
  async countInvalid(): Promise<void> {
    const { admitInStore, metrics } = this.surroundings;
    const { verdict } = await admitInStore([this.common.invalid], undefined);
    if (verdict?.isAdmitted === false) await this.uncountAddress();
    metrics.recordRateLimitCheck(this.rule.group, false);
  }

  /**
   * Asked before the body is read.
   *
   * @throws GatewayError `user_rate_limit_exceeded` while a refusal of this user is remembered.
   */
  checkRememberedRefusal(caller: CountedCaller): void {
    this.checkRemembered(this.findUserWindow(caller), getUser(caller));
  }

  /**
   * Counts in the windows that have not counted yet, in all or in none; in the same step of the store
   * the session is read, and slid where that is asked for, and it is looked whether the caller's grant is still there.
   * Where it is missing, nothing is counted. A refusal takes the address's entry back. A promise only where the store has
   * to be waited for.
   *
   * @throws GatewayError `rate_limit_exceeded`, `user_rate_limit_exceeded` or
   * `global_rate_limit_exceeded`, by the promise.
   */
  admit(call: CountedCall): AdmittedCall | Promise<AdmittedCall> {
    const { caller, access, grantKey } = call;
    const windows = this.listWindowsLeft(caller);
    const isAsked = windows.length > 0 || access !== undefined || grantKey !== undefined;
    const admission = isAsked
      ? this.surroundings.admitInStore(windows, access, grantKey)
      : NOT_COUNTED;
    return admission instanceof Promise
      ? admission.then((known) => this.conclude(known, windows, call))
      : this.conclude(admission, windows, call);
  }

  /** `X-RateLimit-*` of the address; none until it was counted, nor after a failure (§8.3, §8.4). */
  headers(): ReplyHeaders | undefined {
    return this.addressVerdict && createLimitHeaders(this.addressVerdict);
  }

  private conclude(
    admission: Admission,
    windows: readonly LimitWindow[],
    { caller, grantKey }: CountedCall,
  ): AdmittedCall | Promise<never> {
    const { verdict, grant } = admission;
    if (grantKey !== undefined && isMissingGrant(grant)) return admission;
    if (verdict?.isAdmitted === false) return this.refuse(verdict, windows, getUser(caller));
    if (!this.isAddressCounted) this.addressVerdict = verdict;
    this.surroundings.metrics.recordRateLimitCheck(this.rule.group, false);
    return admission;
  }

  private checkRemembered(window: LimitWindow | undefined, user?: string): void {
    const { refusals, createLimitError } = this.surroundings;
    const refusal = window && refusals.find(window.key);
    if (refusal === undefined) return;
    throw createLimitError(this.rule, refusal, { clientIp: this.clientIp, user });
  }

  /** Remembered where it is one caller's. @throws GatewayError always. */
  private async refuse(
    verdict: WindowVerdict,
    windows: readonly LimitWindow[],
    user?: string,
  ): Promise<never> {
    const { rule, clientIp } = this;
    const { refusals, createLimitError } = this.surroundings;
    const window = windows.find(({ scope }) => scope === verdict.scope);
    if (window && window.scope !== 'global' && window.scope !== 'network') {
      const caller = (window.scope === 'user' ? user : undefined) ?? clientIp;
      refusals.remember(window.key, verdict, { group: rule.group, caller });
    }
    await this.uncountAddress();
    throw createLimitError(rule, verdict, { clientIp, user });
  }

  private findUserWindow(caller: CountedCaller): LimitWindow | undefined {
    if (caller !== this.caller) {
      this.caller = caller;
      this.userWindow = createUserWindow(this.rule, caller);
    }
    return this.userWindow;
  }

  /** Those that have not counted yet. */
  private listWindowsLeft(caller: CountedCaller): readonly LimitWindow[] {
    const { rule, common, clientIp, loginWindows, isAddressCounted } = this;
    // Neither is the provider asked, nor can others be kept out: it does not count in the window of all callers.
    if (isAddressCounted && loginWindows !== undefined && loginWindows.address === undefined)
      return [];
    const first = isAddressCounted ? loginWindows?.address : this.firstWindow;
    const user = this.findUserWindow(caller);
    const network = createNetworkWindow(rule, clientIp, caller);
    const windows = first === undefined ? [] : [first];
    if (user !== undefined) windows.push(user);
    if (network !== undefined) windows.push(network);
    windows.push(caller.kind === 'unauthenticated' ? common.anonymous : common.global);
    return windows;
  }

  private async uncountAddress(): Promise<void> {
    if (this.addressEntry === undefined) return;
    const { key } = this.firstWindow;
    // The window has room again, whatever was remembered of it.
    this.surroundings.refusals.forget(key);
    // If that fails, the entry leaves the window by itself.
    await this.surroundings.store.uncountRequest(key, this.addressEntry).catch(() => {});
  }
}

/** `RATE_LIMIT_ENABLED=false` (§8.3): only the session is read and slid, and the caller's grant looked up. */
function createUnlimitedLimiter(store: Windows): Limiter {
  const check: LimitCheck = {
    countAddress: async () => {},
    countInvalid: async () => {},
    checkRememberedRefusal: () => {},
    admit({ access, grantKey }) {
      if (access === undefined && grantKey === undefined) return NOT_COUNTED;
      const admission = store.admitRequest([], access, grantKey);
      return admission instanceof Promise ? admission.catch(toFailedAdmission) : admission;
    },
    headers: () => undefined,
  };
  return { startCheck: () => check, listRefusals: () => [] };
}
