// §2.1, §3.1: sessions, active while their record is in the store.
import type { Clock } from '../../../core/clock.ts';
import type { SessionsConfig } from '../../../core/config/groups/mcp.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import { generateSessionId, isSessionId } from '../../../core/ids.ts';
import type { Log } from '../../../core/log.ts';
import type { Metrics } from '../../../core/metrics/metrics.ts';
import type { SessionLookup, SessionRecord, Store } from '../../../core/store/store.ts';
import type { UserContext } from '../../../core/user-context.ts';
import type { LogSeverity } from '../catalog/catalog.ts';

type User = UserContext | undefined;

export interface NewSession {
  readonly protocolVersion: string;
  /** What the client can be asked, as JSON text. */
  readonly clientCapabilities: string;
  /** `clientInfo` as JSON text. */
  readonly clientInfo?: string;
}

export interface CreatedSession {
  readonly sessionId: string;
  /** Other sessions of the user that were ended for it. */
  readonly endedIds: readonly string[];
}

export interface CallInSession {
  readonly user: User;
  /** What the store said of the session, when it counted the request. */
  readonly session: SessionLookup;
}

export interface Sessions {
  /** Where the user has too many then, those that expire first are ended. */
  create(user: User, session: NewSession): Promise<CreatedSession>;
  /**
   * The record of the session that a call names, where it is active and its user's; counts one that
   * has expired.
   *
   * @throws GatewayError `internal_error` when the store did not answer: that is never "not found".
   */
  read(id: string, call: CallInSession): Promise<SessionRecord | undefined>;
  /** Slides the session, and notes a log level. False when it ended meanwhile. */
  touch(id: string, user: User, logLevel?: LogSeverity): Promise<boolean>;
  /** Ends the user's session. False when there is none. */
  end(id: string, user: User): Promise<boolean>;
  /** When a session that is touched now expires, for `X-Session-Expires-At`: ISO 8601, UTC. */
  getExpiry(): string;
  /** Live sessions in the store (the gauge). */
  countActive(): Promise<number>;
  /** Sweeps until stopped; returns the stop. */
  startSweeping(): () => void;
}

export interface SessionsDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
}

const SWEEP_INTERVAL_MS = 60_000;

export function createSessions(
  { ttlSeconds, maxPerUser }: Pick<SessionsConfig, 'ttlSeconds' | 'maxPerUser'>,
  { store, clock, metrics, log }: SessionsDeps,
): Sessions {
  async function sweep(): Promise<void> {
    metrics.recordSessions('expired', await store.sweepSessions());
  }

  return {
    async create(user, session) {
      const sessionId = generateSessionId();
      const now = clock.now();
      const owner = user && { userId: user.sub };
      const record = { sessionId, createdAt: now, lastAccessedAt: now, ...owner, ...session };
      const endedIds = await store.createSession(record, ttlSeconds, maxPerUser);
      metrics.recordSessions('created');
      metrics.recordSessions('terminated', endedIds.length);
      return { sessionId, endedIds };
    },

    async read(id, { session, user }) {
      if ('failure' in session) fail('internal_error', { cause: session.failure });
      const { record } = session;
      if (record !== undefined) return record.userId === user?.sub ? record : undefined;
      if (!isSessionId(id)) return undefined;
      if (await store.claimExpiredSession(id)) metrics.recordSessions('expired');
      return undefined;
    },

    touch: (id, user, logLevel) =>
      store.touchSession(
        id,
        user?.sub,
        { lastAccessedAt: clock.now(), ...(logLevel && { logLevel }) },
        ttlSeconds,
      ),

    async end(id, user) {
      const hasEnded = isSessionId(id) && (await store.endSession(id, user?.sub));
      if (hasEnded) metrics.recordSessions('terminated');
      return hasEnded;
    },

    getExpiry: () => new Date(clock.now() + ttlSeconds * 1000).toISOString(),

    async countActive() {
      await sweep();
      return store.countSessions();
    },

    startSweeping() {
      let cancel = () => {};
      const schedule = () => {
        cancel = clock.after(SWEEP_INTERVAL_MS, () => {
          schedule();
          sweep().catch((cause: unknown) =>
            log.debug('Expired sessions could not be removed. The next sweep tries again.', {
              cause,
            }),
          );
        });
      };
      schedule();
      return () => cancel();
    },
  };
}
