// §8: a request is counted by its address, and by who turns out to send it.

import type { LimitGroup, LimitRule } from '../../config/groups/limits.ts';
import type { LoginSearch } from '../../endpoint/endpoint.ts';
import type { ReplyHeaders } from '../../endpoint/message.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import {
  type Admission,
  isMissingGrant,
  type LimitWindow,
  NO_GRANT,
  NO_SESSION,
  type SessionAccess,
  type Verdict,
  type Windows,
} from '../../store/store.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import { createLimitErrors } from './limit-errors.ts';
import {
  type Caller,
  type CurrentRefusal,
  createAddressWindow,
  createAdmitInStore,
  createCallerWindows,
  createInvalidWindow,
  createLimitHeaders,
  createLoginKeys,
  createLoginWindows,
  createRememberedRefusals,
  createSpareLookups,
  createUserWindow,
  getUser,
  type LoginWindows,
  toFailedAdmission,
} from './windows.ts';

/** The check of one request against the windows of its group. */
export interface LimitCheck {
  /**
   * Counts the address, or the login in its place, before it is known who calls, where finding that out costs something.
   *
   * @throws GatewayError `rate_limit_exceeded` or `grant_rate_limit_exceeded`.
   */
  countAddress(): Promise<void>;
  /**
   * Counts what was sent among the invalid requests of all callers. Where these are too many, its
   * address is not counted either, so that made-up addresses do not fill the store.
   */
  countInvalid(): Promise<void>;
  /**
   * Asked before the body is read.
   *
   * @throws GatewayError `user_rate_limit_exceeded` while a refusal of this user is remembered.
   */
  checkRememberedRefusal(caller: Caller): void;
  /**
   * Counts in the windows that have not counted yet, in all or in none; in the same step of the store
   * the session is read, and slid where that is asked for, and it is looked whether the caller's grant is still there.
   * Where it is missing, nothing is counted. A refusal takes the address's entry back.
   *
   * @throws GatewayError `rate_limit_exceeded`, `user_rate_limit_exceeded` or
   * `global_rate_limit_exceeded`.
   */
  admit(
    caller: Caller,
    access: SessionAccess | undefined,
    grantKey: string | undefined,
  ): Promise<AdmittedCall>;
  /** `X-RateLimit-*` of the address; none until it was counted, nor after a failure (§8.3, §8.4). */
  headers(): ReplyHeaders | undefined;
}

/** What the store said of a call that no limit refuses. */
export type AdmittedCall = Pick<Admission, 'session' | 'grant'>;

export interface Limiter {
  /**
   * `search` finds the login that a request belongs to, which is then counted in place of its address.
   *
   * @throws GatewayError `rate_limit_exceeded` while a refusal of this address is remembered,
   * `grant_rate_limit_exceeded` while one of a known login is, unless a login may still be looked up.
   */
  startCheck(group: LimitGroup, clientIp: string, search?: LoginSearch): LimitCheck;
  /** Whom this process refuses until a time that it knows, for operators. */
  listRefusals(): readonly CurrentRefusal[];
}

export interface LimiterDeps {
  readonly store: Windows;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
}

const NO_SEARCH = { knownId: undefined };

const NOTHING_COUNTED: Admission = {
  verdict: undefined,
  entry: undefined,
  session: NO_SESSION,
  grant: NO_GRANT,
};

/** §8. Fails open (§8.4). */
export function createLimiter(
  rules: Readonly<Record<LimitGroup, LimitRule>>,
  { store, clock, metrics, log }: LimiterDeps,
): Limiter {
  const refusals = createRememberedRefusals(clock);
  const spareLookups = createSpareLookups(clock);
  const createLimitError = createLimitErrors(clock, metrics, log);
  const admitInStore = createAdmitInStore(store, clock, log);

  return {
    startCheck(group, clientIp, search) {
      const rule = rules[group];
      let firstWindow = createAddressWindow(rule, clientIp);
      let loginWindows: LoginWindows | undefined;
      let addressVerdict: Verdict | undefined;
      let addressEntry: string | undefined;
      let isAddressCounted = false;

      function checkRemembered(window: LimitWindow | undefined, user?: string): void {
        const refusal = window && refusals.find(window.key);
        if (refusal !== undefined) throw createLimitError(rule, refusal, { clientIp, user });
      }

      /** Remembered where it is one caller's. @throws GatewayError always. */
      async function refuse(
        verdict: Verdict,
        windows: readonly LimitWindow[],
        user?: string,
      ): Promise<never> {
        const window = windows.find(({ scope }) => scope === verdict.scope);
        if (window && window.scope !== 'global') {
          const caller = (window.scope === 'user' ? user : undefined) ?? clientIp;
          refusals.remember(window.key, verdict, { group, caller });
        }
        await uncountAddress();
        throw createLimitError(rule, verdict, { clientIp, user });
      }

      /** Those that have not counted yet. */
      function listWindowsLeft(caller: Caller): readonly LimitWindow[] {
        const callerWindows = createCallerWindows(rule, caller);
        if (!isAddressCounted) return [firstWindow, ...callerWindows];
        if (loginWindows === undefined) return callerWindows;
        // Neither is the provider asked, nor can others be kept out: it does not count in the window of all callers.
        return loginWindows.address ? [loginWindows.address, ...callerWindows] : [];
      }

      async function uncountAddress(): Promise<void> {
        if (addressEntry === undefined) return;
        // The window has room again, whatever was remembered of it.
        refusals.forget(firstWindow.key);
        // If that fails, the entry leaves the window by itself.
        await store.uncountRequest(firstWindow.key, addressEntry).catch(() => {});
      }

      /** Before anything is looked up: those of a known login, or that of the address. */
      const listFirstKeys = ({ knownId }: Pick<LoginSearch, 'knownId'>): readonly string[] =>
        knownId === undefined ? [firstWindow.key] : createLoginKeys(rule, clientIp, knownId);

      /** @throws GatewayError `rate_limit_exceeded` or `grant_rate_limit_exceeded` where nothing more is looked up. */
      function checkFirst(): void {
        for (const key of listFirstKeys(search ?? NO_SEARCH)) {
          const refusal = refusals.find(key);
          if (refusal === undefined) continue;
          if (search && spareLookups.take(key, refusal.resetInMs)) continue;
          throw createLimitError(rule, refusal, { clientIp, user: undefined });
        }
      }

      checkFirst();
      return {
        async countAddress() {
          if (isAddressCounted) return;
          if (search !== undefined) {
            // §8.4: where the store does not tell the login, the address is counted.
            const login = await search.find().catch(() => undefined);
            loginWindows = login && createLoginWindows(rule, clientIp, login);
            firstWindow = loginWindows?.login ?? firstWindow;
            checkRemembered(firstWindow);
            checkRemembered(loginWindows?.address);
          }
          const windows = [firstWindow];
          const { verdict, entry } = await admitInStore(windows, undefined);
          if (verdict?.isAdmitted === false) return refuse(verdict, windows);
          isAddressCounted = true;
          addressVerdict = verdict;
          addressEntry = entry;
        },
        async countInvalid() {
          const { verdict } = await admitInStore([createInvalidWindow(rule)], undefined);
          if (verdict?.isAdmitted === false) await uncountAddress();
          metrics.recordRateLimitCheck(group, false);
        },
        checkRememberedRefusal: (caller) =>
          checkRemembered(createUserWindow(rule, caller), getUser(caller)),
        async admit(caller, access, grantKey) {
          const windows = listWindowsLeft(caller);
          const isAsked = windows.length > 0 || access !== undefined || grantKey !== undefined;
          const { verdict, session, grant } = isAsked
            ? await admitInStore(windows, access, grantKey)
            : NOTHING_COUNTED;
          if (grantKey !== undefined && isMissingGrant(grant)) return { session, grant };
          if (verdict?.isAdmitted === false) return refuse(verdict, windows, getUser(caller));
          if (!isAddressCounted) addressVerdict = verdict;
          metrics.recordRateLimitCheck(group, false);
          return { session, grant };
        },
        headers: () => addressVerdict && createLimitHeaders(addressVerdict),
      };
    },
    listRefusals: refusals.list,
  };
}

/** `RATE_LIMIT_ENABLED=false` (§8.3): only the session is read and slid, and the caller's grant looked up. */
export function createUnlimitedLimiter(store: Windows): Limiter {
  const check: LimitCheck = {
    countAddress: async () => {},
    countInvalid: async () => {},
    checkRememberedRefusal: () => {},
    async admit(_caller, access, grantKey) {
      if (access === undefined && grantKey === undefined) return NOTHING_COUNTED;
      return store.admitRequest([], access, grantKey).catch(toFailedAdmission);
    },
    headers: () => undefined,
  };
  return { startCheck: () => check, listRefusals: () => [] };
}
