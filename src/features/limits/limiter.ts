// Spec §8, decisions 10: a request is counted by its address, and by what turns out to send it.
import type { Clock } from '../../core/clock.ts';
import type { LimitGroup, LimitRule } from '../../core/config/groups/limits.ts';
import type { Log } from '../../core/log.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';
import type {
  LimitWindow,
  RequestCount,
  SessionLookup,
  Store,
  Verdict,
} from '../../core/store/store.ts';
import { limitHeaders } from './headers.ts';
import { createRefusals } from './refusals.ts';
import { createRefuse } from './refuse.ts';
import {
  addressWindow,
  type Caller,
  callerWindows,
  refusedWindow,
  subOf,
  userWindow,
} from './windows.ts';

/** One request on its way through the windows of its group. */
export interface LimitCheck {
  /**
   * Counts the address before it is known who calls, where finding that out costs something.
   *
   * @throws GatewayError `rate_limit_exceeded`.
   */
  countAddress(): Promise<void>;
  /**
   * What was sent does not hold: it counts for all such requests. Where these are too many, its
   * address is not counted either, so that made-up addresses do not fill the store.
   */
  countRefused(): Promise<void>;
  /**
   * Asked before the body is read.
   *
   * @throws GatewayError `user_rate_limit_exceeded` while a refusal of this user is remembered.
   */
  refuseRemembered(caller: Caller): void;
  /**
   * Counts in the windows that have not counted yet, in all or in none, and reads the session. A
   * refusal takes the address's entry back.
   *
   * @throws GatewayError `rate_limit_exceeded`, `user_rate_limit_exceeded` or
   * `global_rate_limit_exceeded`.
   */
  admit(caller: Caller, sessionId?: string): Promise<SessionLookup>;
  /** `X-RateLimit-*` of the address; none until it was counted, nor after a failure (§8.3, §8.4). */
  headers(): Readonly<Record<string, string>> | undefined;
}

/**
 * Begins the check of one request.
 *
 * @throws GatewayError `rate_limit_exceeded` while a refusal of this address is remembered.
 */
export type Limiter = (group: LimitGroup, clientIp: string) => LimitCheck;

export interface LimiterDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
}

/** What the store said of some windows; no verdict when it could not be asked. */
interface Asked extends Partial<Pick<RequestCount, 'verdict' | 'entry'>> {
  readonly session: SessionLookup;
}

/** With a node of a cluster down some windows fail and some do not: one line, not one each time. */
const RECOVERED_MS = 2000;

/** Spec §8. Fails open, and says so once per outage (§8.4). */
export function createLimiter(
  rules: Readonly<Record<LimitGroup, LimitRule>>,
  { store, clock, metrics, log }: LimiterDeps,
): Limiter {
  const refusals = createRefusals(clock);
  const refuse = createRefuse(clock, metrics, log);
  let failing = false;
  let failedAt = Number.NEGATIVE_INFINITY;

  async function ask(windows: readonly LimitWindow[], sessionId?: string): Promise<Asked> {
    try {
      const { session, limitFailure, ...counted } = await store.countRequestAndReadSession(
        windows,
        sessionId,
      );
      note(limitFailure);
      return { ...counted, session: { record: session } };
    } catch (failure) {
      note(failure);
      return { session: { failure } };
    }
  }

  function note(failure: unknown): void {
    if (failure !== undefined) {
      failedAt = clock.monotonic();
      if (failing) return;
      failing = true;
      log.error(
        'Rate limits are not enforced: the store does not answer. Requests pass until it does.',
        { cause: failure },
      );
    } else if (failing && clock.monotonic() - failedAt > RECOVERED_MS) {
      failing = false;
      log.info('Rate limits are enforced again: the store answers.');
    }
  }

  return function check(group, clientIp) {
    const rule = rules[group];
    const address = addressWindow(rule, clientIp);
    let counted: Verdict | undefined;
    let entry: string | undefined;
    let pending: readonly LimitWindow[] = [address];

    function refuseAgain(window: LimitWindow | undefined, user?: string): void {
      const refusal = window && refusals.find(window.key);
      if (refusal !== undefined) throw refuse(rule, refusal, { clientIp, user });
    }

    /** @throws GatewayError for a refusal, which is remembered where it is one caller's. */
    async function count(windows: readonly LimitWindow[], user?: string, sessionId?: string) {
      const asked = await ask(windows, sessionId);
      const { verdict } = asked;
      if (verdict?.isAdmitted !== false) return asked;
      const window = windows.find(({ scope }) => scope === verdict.scope);
      if (window && window.scope !== 'global') refusals.remember(window.key, verdict);
      await withdraw();
      throw refuse(rule, verdict, { clientIp, user });
    }

    async function withdraw(): Promise<void> {
      if (entry === undefined) return;
      // The window has room again, whatever was remembered of it.
      refusals.forget(address.key);
      // If that fails, the entry leaves the window by itself.
      await store.uncountRequest(address.key, entry).catch(() => {});
    }

    refuseAgain(address);
    return {
      async countAddress() {
        if (pending.length === 0) return;
        const asked = await count(pending);
        pending = [];
        counted = asked.verdict;
        entry = asked.entry;
      },
      async countRefused() {
        const { verdict } = await ask([refusedWindow(rule)]);
        if (verdict?.isAdmitted === false) await withdraw();
        metrics.recordRateLimitCheck(group, false);
      },
      refuseRemembered: (caller) => refuseAgain(userWindow(rule, caller), subOf(caller)),
      async admit(caller, sessionId) {
        const windows = [...pending, ...callerWindows(rule, caller)];
        const { verdict, session } = await count(windows, subOf(caller), sessionId);
        if (pending.length > 0) counted = verdict;
        metrics.recordRateLimitCheck(group, false);
        return session;
      },
      headers: () => counted && limitHeaders(counted),
    };
  };
}

/** `RATE_LIMIT_ENABLED=false` (Spec §8.3): only the session is read. */
export function createUnlimited(store: Store): Limiter {
  const check: LimitCheck = {
    countAddress: async () => {},
    countRefused: async () => {},
    refuseRemembered: () => {},
    async admit(_caller, sessionId) {
      if (sessionId === undefined) return { record: undefined };
      try {
        return { record: await store.readSession(sessionId) };
      } catch (failure) {
        return { failure };
      }
    },
    headers: () => undefined,
  };
  return () => check;
}
