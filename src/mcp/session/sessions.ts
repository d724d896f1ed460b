// §2.1, §3.1: sessions, active while their record is in the store.

import { randomUUID } from 'node:crypto';
import type { ErrorKey } from '../../errors/catalogue.ts';
import { fail, failInternal } from '../../errors/gateway-error.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { isSessionId } from '../../platform/ids.ts';
import { freezeDeep, isObject, parseObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { readOwner } from '../../store/keys.ts';
import type { Replicas } from '../../store/replicas/replicas.ts';
import type { Owner, SessionAccess, SessionLookup, SessionRecord } from '../../store/store.ts';
import type { Call, Callers } from '../calls/call.ts';
import type { ClientCapabilities } from '../catalog/client-requests.ts';
import { isLogSeverity, type LogSeverity } from '../protocol/methods.ts';
import { readClientExtensions } from '../protocol/revisions.ts';

type User = UserContext | undefined;
type SessionCall = Pick<Call, 'session' | 'user' | 'catalog'>;

const SWEEP_INTERVAL_MS = 60_000;

export type ClientSessions = ReturnType<typeof createSessions>;

export function createSessions(
  { config, store, clock, metrics, log }: Runtime,
  sealPerson: Callers['sealPerson'],
) {
  const { ttlSeconds, maxPerUser } = config.mcp.sessions;
  const defaultIssuer = config.oauth.provider?.issuer;
  /** Caches the last text: calls of the same millisecond share it. */
  let expiresAt = 0;
  let expiry = new Date(expiresAt).toISOString();

  /** The stored owner names its issuer, so that sessions keep their owner when `OIDC_ISSUER` changes. */
  const toOwner = (user: Owner | undefined): Owner | undefined =>
    user && { sub: user.sub, issuer: user.issuer ?? defaultIssuer };

  const isOwn = (record: SessionRecord, user: Owner | undefined) =>
    record.userId === user?.sub && record.userIssuer === (user && (user.issuer ?? defaultIssuer));

  async function sweep() {
    metrics.recordSessions('expired', await store.sweepSessions());
  }

  async function readRecord(id: string): Promise<SessionRecord | undefined> {
    const access = { sessionId: id, owner: undefined, slideSeconds: undefined };
    const { session } = await store.admitRequest([], access);
    if ('failure' in session) throw session.failure;
    return session.record;
  }

  async function end(id: string, owner: Owner | undefined) {
    const hasEnded = await store.endSession(id, owner);
    if (hasEnded) metrics.recordSessions('terminated');
    return hasEnded;
  }

  return {
    /** Evicts the sessions that expire first if the user has too many then; returns their ids as well. */
    async create(
      user: User,
      session: Pick<
        SessionRecord,
        'protocolVersion' | 'clientCapabilities' | 'clientInfo' | 'server'
      >,
    ) {
      // §2.1: a random UUID (version 4).
      const sessionId: string = randomUUID();
      const now = clock.now();
      const owner = toOwner(user);
      const person = user && (await sealPerson?.(user, sessionId));
      const record: SessionRecord = {
        sessionId,
        createdAt: now,
        lastAccessedAt: now,
        ...(owner && { userId: owner.sub, userIssuer: owner.issuer }),
        ...(person !== undefined && { person }),
        ...session,
      };
      const endedIds = await store.createSession(record, ttlSeconds, maxPerUser);
      metrics.recordSessions('created');
      metrics.recordSessions('terminated', endedIds.length);
      return { session: record, endedIds };
    },

    /**
     * The store access for the session that a request names: reads it, or slides its expiry. Undefined for an invalid session ID,
     * which never reaches the store.
     */
    toAccess(
      id: string | undefined,
      user: User,
      purpose: 'read' | 'slide',
    ): SessionAccess | undefined {
      if (id === undefined || !isSessionId(id)) return undefined;
      const slideSeconds = purpose === 'slide' ? ttlSeconds : undefined;
      return { sessionId: id, owner: toOwner(user), slideSeconds };
    },

    /**
     * The record that `toAccess` led to, if the session is active, of this user and opened on this path: `record.server` may be the
     * name of a view.
     *
     * @throws GatewayError `store_unavailable` if the store did not answer: that is never "not found".
     */
    selectOwn({ session, user, catalog }: SessionCall): SessionRecord | undefined {
      if ('failure' in session) return failInternal(session.failure);
      const { record } = session;
      return record && isOwn(record, user) && record.server === catalog.name ? record : undefined;
    },

    /** Refuses a call whose session `selectOwn` has not found, and counts the session if it has expired. @throws GatewayError always. */
    async failNotFound(
      id: string,
      session: SessionLookup,
      key: ErrorKey,
      details?: string,
    ): Promise<never> {
      const isMissing = 'record' in session && session.record === undefined && isSessionId(id);
      if (isMissing && (await store.claimExpiredSession(id))) metrics.recordSessions('expired');
      return fail(key, details === undefined ? {} : { details });
    },

    /**
     * Stores the client's log level.
     *
     * @throws GatewayError `session_not_found` if the session ended in the meantime.
     */
    async setLogLevel(id: string, user: User, logLevel: LogSeverity): Promise<void> {
      const isSet = await store.setSessionLogLevel(id, toOwner(user), logLevel);
      if (!isSet) fail('session_not_found');
    },

    /** The current log level of the user's session; undefined once it has ended. */
    async readLogLevel(id: string, owner: Owner | undefined): Promise<LogSeverity | undefined> {
      const record = await readRecord(id);
      return record && isOwn(record, owner) ? readLogLevel(record.logLevel) : undefined;
    },

    /** Ends the user's session. False if there is none. */
    async end(id: string, user: User): Promise<boolean> {
      return isSessionId(id) && end(id, toOwner(user));
    },

    /** Ends a session of any user. False if there is none. */
    async endAnybodys(id: string): Promise<boolean> {
      const record = await readRecord(id);
      return record !== undefined && end(id, readOwner(record));
    },

    /** The stored expiry of a session, for `X-Session-Expires-At`: ISO 8601, UTC. */
    getExpiry({ lastAccessedAt }: SessionRecord): string {
      const time = lastAccessedAt + ttlSeconds * 1000;
      if (time !== expiresAt) {
        expiresAt = time;
        expiry = new Date(time).toISOString();
      }
      return expiry;
    },

    /** Live sessions in the store (the gauge). */
    async countActive(): Promise<number> {
      await sweep();
      return store.countSessions();
    },

    /** Sweeps periodically, until the returned function is called. */
    startSweeping(): () => void {
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

// MCP "Logging": the log level of a session.

/** The server's default, until the client sets a level. */
export const readLogLevel = (stored: string | undefined): LogSeverity =>
  stored !== undefined && isLogSeverity(stored) ? stored : 'info';

/** Reads the capabilities that `initialize` stored. */
export function readStoredCapabilities(clientCapabilities: string): ClientCapabilities {
  const known = knownCapabilities.get(clientCapabilities);
  if (known !== undefined) return known;
  const stored = parseObject(clientCapabilities) ?? {};
  const extensions = readClientExtensions(stored.extensions);
  const read: ClientCapabilities = freezeDeep({
    elicitation: stored.elicitation === true,
    ...(stored.elicitationUrl === true && { elicitationUrl: true }),
    sampling: stored.sampling === true,
    ...(stored.samplingTools === true && { samplingTools: true }),
    roots: stored.roots === true,
    ...(extensions && { extensions }),
  });
  knownCapabilities.set(clientCapabilities, read);
  return read;
}

const knownCapabilities = createBoundedMap<string, ClientCapabilities>('clientCapabilities');

// Messages between the replicas of this feature (store/replicas).

export type McpReplicas = Replicas<ReplicaMessage>;

/** Each concerns one session; `id` is the ID of a JSON-RPC request in it. */
type ReplicaMessage =
  | {
      readonly about: 'answer';
      readonly sessionId: string;
      readonly id: string;
      readonly result?: unknown;
      readonly error?: unknown;
    }
  | { readonly about: 'cancelled'; readonly sessionId: string; readonly id: string | number }
  /** The session has a new stream, or has ended: its other streams end. */
  | { readonly about: 'stream'; readonly sessionId: string; readonly id: string }
  /** The sender reads a stream that began at the receiver. */
  | {
      readonly about: 'resume';
      readonly sessionId: string;
      readonly stream: string;
      readonly replica: string;
    }
  /** The answer: news in the store, the stream is gone, or it is now being read elsewhere. */
  | {
      readonly about: 'resumed';
      readonly sessionId: string;
      readonly stream: string;
      readonly news: 'news' | 'gone' | 'taken';
    };

const TOPICS = new Set<unknown>(['answer', 'cancelled', 'stream', 'resume', 'resumed']);

export const isReplicaMessage = (value: unknown): value is ReplicaMessage =>
  isObject(value) && TOPICS.has(value.about) && typeof value.sessionId === 'string';
