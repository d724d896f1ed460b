// §24: shared state of connections: records, known access, changes for all replicas, audit log and metrics.

import type {
  ActiveAccess,
  ConnectionOwner,
  ConnectionServer,
  ConnectionState,
  Connections,
  EndedBy,
} from '../mcp/upstream/connections.ts';
import { createExpiringMap } from '../platform/bounded-map.ts';
import type { Clock } from '../platform/clock.ts';
import { isObject } from '../platform/json.ts';
import { createSingleFlight } from '../platform/single-flight.ts';
import { createWarnThrottle } from '../platform/throttle.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { buildAuditedRenewalKey } from '../store/keys.ts';
import { claimOnce } from '../store/records.ts';
import type { Replicas } from '../store/replicas/replicas.ts';
import type { Seal } from '../store/seal/seal.ts';
import type { AuditedAction, AuditedEnd } from '../telemetry/audit/audit.ts';
import type { ConnectionCount } from '../telemetry/metrics/metrics.ts';
import {
  type ConnectionPlace,
  type ConnectionRecord,
  createConnectionRecords,
  createPlaces,
  type FindPlace,
  readConnectionOwner,
} from './connection-record.ts';

export type KeptConnections = ReturnType<typeof createKeptConnections>;

/** `listServers` returns the servers with connections in the current configuration file. */
export function createKeptConnections(
  runtime: Runtime,
  seal: Seal,
  listServers: () => readonly ConnectionServer[],
  replicas: Replicas<ConnectionMessage>,
) {
  const findPlace = createPlaces(runtime.config.oauth.provider?.issuer);
  const known = createKnownAccess(runtime.clock);
  return {
    seal,
    listServers,
    audited: auditConnections(runtime),
    findPlace,
    known,
    records: createConnectionRecords(runtime, seal),
    changes: createConnectionChanges(runtime, replicas, known, findPlace),
  };
}

// Fan-out of changes to all replicas: they forget what they know about the connection, and waiting calls continue.

/** `renewed`: the same connection with another token. `declined`: a user declined a link. */
type ConnectionChange = ConnectionState | 'renewed' | 'declined';

export type ConnectionMessage = (
  | { readonly owner: ConnectionOwner; readonly server: string; readonly change: ConnectionChange }
  /** Exclusive work has ended, and another replica may be waiting for that. */
  | { readonly released: string }
) & {
  /** The sending replica, which ignores its own messages. */
  readonly from: string;
};

const CHANGES: ReadonlySet<unknown> = new Set([
  'missing',
  'active',
  'login needed',
  'renewed',
  'declined',
] satisfies ConnectionChange[]);

export const isConnectionMessage = (value: unknown): value is ConnectionMessage =>
  isObject(value) &&
  typeof value.from === 'string' &&
  (typeof value.released === 'string' ||
    (readConnectionOwner(value.owner) !== undefined &&
      typeof value.server === 'string' &&
      CHANGES.has(value.change)));

type Listener = (place: ConnectionPlace, change: ConnectionChange) => void;

function createConnectionChanges(
  { clock, log }: Runtime,
  replicas: Replicas<ConnectionMessage>,
  known: ReturnType<typeof createKnownAccess>,
  findPlace: FindPlace,
) {
  const listeners = new Set<Listener>();
  const releases = new Set<(hash: string) => void>();
  const { ownName: from } = replicas;
  const warn = createWarnThrottle(clock, (cause: unknown) =>
    log.warn('Other replicas may use outdated connections for up to 30 s.', { cause }),
  );

  function tell(place: ConnectionPlace, change: ConnectionChange) {
    for (const listener of [...listeners]) listener(place, change);
  }

  replicas.listen((message) => {
    if (message.from === from) return;
    if ('released' in message) {
      for (const listener of [...releases]) listener(message.released);
      return;
    }
    const place = findPlace(message.owner, message.server);
    // Forgets before it notifies listeners.
    known.forget(place);
    tell(place, message.change);
  });

  return {
    /**
     * Notifies this replica at once, the others soon, unless the message is lost. Never throws. The caller has updated known access
     * before.
     */
    announce(place: ConnectionPlace, change: ConnectionChange) {
      tell(place, change);
      const { owner, server } = place;
      replicas.send({ owner, server, change, from }).catch(warn);
    },
    /** Returns a function that removes the listener. */
    listen(listener: Listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    /** Never rejects; the message may be lost. */
    announceRelease(hash: string) {
      // Waiters in this process get the outcome itself.
      replicas.send({ released: hash, from }).catch(() => {});
    },
    /** Returns a function that removes the listener. */
    onRelease(listener: (hash: string) => void) {
      releases.add(listener);
      return () => void releases.delete(listener);
    },
  };
}

// Bounded cache of recently read connections, so that most calls wait for nothing. It does not grow with users.

const KNOWN_MS = 30_000;
const FORGOTTEN_MS = 60_000;
/** Delay before a failed renewal is tried again while the current token is still valid: calls do not wait for each try. */
const AGAIN_MS = 20_000;
const RENEWED_BEFORE_MS = 60_000;
/** A token that is valid for this long can still be used while its successor is requested, or is not available. */
export const RESERVE_MS = 5000;

interface Known extends Pick<ConnectionServer, 'url' | 'auth'> {
  readonly access: ActiveAccess;
}

interface Reading {
  readonly since: number;
  /** Its renewal was tried, and failed. */
  readonly hasFailed?: boolean;
}

function createKnownAccess(clock: Clock) {
  const known = createExpiringMap<Known>('connections', clock.now);
  let forgets = 0;
  /** Number of the last `forget`, kept for longer than any read takes. */
  const forgotten = createExpiringMap<number>('connections', clock.monotonic);

  return {
    /** Compares the server's configuration as well: another one may need another connection. */
    get({ hash }: ConnectionPlace, { url, auth }: ConnectionServer) {
      const found = known.get(hash);
      return found?.url === url && found.auth === auth ? found.access : undefined;
    },
    /**
     * Call it before a record is read, and give the result to `note`: a connection that was forgotten in the meantime does not
     * become known again.
     */
    beginReading: (): Reading => ({ since: forgets }),
    note(
      { hash }: ConnectionPlace,
      { url, auth }: ConnectionServer,
      record: ConnectionRecord,
      { since, hasFailed = false }: Reading,
    ): ActiveAccess {
      const { expiresAt = Number.POSITIVE_INFINITY } = record;
      // After a failed renewal, the token is used while it is valid, and renewal is tried again soon.
      const until = hasFailed
        ? Math.min(clock.now() + AGAIN_MS, expiresAt - RESERVE_MS)
        : Math.min(clock.now() + KNOWN_MS, findRenewalTime(record));
      const access = toAccess(record);
      if ((forgotten.get(hash) ?? 0) <= since) known.set(hash, { access, url, auth }, until);
      return access;
    },
    forget({ hash }: ConnectionPlace) {
      known.delete(hash);
      forgets += 1;
      forgotten.set(hash, forgets, clock.monotonic() + FORGOTTEN_MS);
    },
  };
}

export const toAccess = ({ accessToken, id }: ConnectionRecord): ActiveAccess => ({
  kind: 'active',
  token: accessToken,
  connectionId: id,
});

/** A minute before the token expires, or in the middle of a shorter lifetime: otherwise each call would renew it. */
export function findRenewalTime({ expiresAt, tokenAt }: ConnectionRecord): number {
  if (expiresAt === undefined) return Number.POSITIVE_INFINITY;
  return expiresAt - Math.min(RENEWED_BEFORE_MS, (expiresAt - tokenAt) / 2);
}

// §24.6, §21.1: audit log and metrics. The audit log gets a line when a connection is made, renewed, needs a login, or ends; never
// a token. The metrics count answers from token endpoints, and connections.

/** A renewal only shows that the connection is in use: one line per connection and day, on all replicas together. */
const DAY_SECONDS = 86_400;

/** Writes nothing without `AUDIT_LOG`. */
function auditConnections({ audit, store, clock }: Runtime) {
  const written = createExpiringMap<true>('auditedConnections', clock.monotonic);

  /** A shared connection does not belong to a user. */
  const write = (
    { owner, server }: ConnectionPlace,
    rest: Pick<AuditedAction, 'action' | 'by'>,
    end: AuditedEnd = { outcome: 'success' },
  ): void =>
    audit?.write(
      {
        event: 'connection',
        ...(owner === 'shared' ? { target: owner } : { user: owner.sub, issuer: owner.issuer }),
        server,
        ...rest,
      },
      end,
    );

  return {
    made: (place: ConnectionPlace) => write(place, { action: 'made' }),
    /** No call waits for the store here. Never rejects. */
    async renewed(place: ConnectionPlace, connectionId: string) {
      if (audit === undefined || written.get(connectionId)) return;
      written.set(connectionId, true, clock.monotonic() + DAY_SECONDS * 1000);
      const key = buildAuditedRenewalKey(connectionId);
      // Writes no line if there is one of today, or the store cannot tell.
      const isFirst = await claimOnce(store, key, DAY_SECONDS).catch(() => {
        written.delete(connectionId);
        return false;
      });
      if (isFirst) write(place, { action: 'renewed' });
    },
    loginNeeded: (place: ConnectionPlace, reason: string) =>
      write(place, { action: 'login_needed' }, { outcome: 'failure', reason }),
    ended: (place: ConnectionPlace, by: EndedBy) => write(place, { action: 'ended', by }),
  };
}

/** Counts are cached for this long, since anybody may scrape, at any rate. */
const KEPT_MS = 15_000;

/** Leaves out servers whose connections cannot be counted. Never rejects. */
export function createCountConnections(
  { clock }: Runtime,
  connections: Pick<Connections, 'count'>,
  listServers: () => readonly ConnectionServer[],
): () => Promise<readonly ConnectionCount[]> {
  let kept: { readonly counts: readonly ConnectionCount[]; readonly endsAt: number } | undefined;
  const counting = createSingleFlight<'all', readonly ConnectionCount[]>();

  /** One server after the other, so that a scrape has at most one request at the store. */
  async function countAll(): Promise<readonly ConnectionCount[]> {
    const counts: ConnectionCount[] = [];
    for (const { name: server } of listServers()) {
      const ofServer = await connections.count(server).catch(() => undefined);
      if (ofServer === undefined) continue;
      counts.push({ server, state: 'active', count: ofServer.active });
      counts.push({ server, state: 'login_needed', count: ofServer['login needed'] });
    }
    kept = { counts, endsAt: clock.monotonic() + KEPT_MS };
    return counts;
  }

  return async function countConnections() {
    if (kept !== undefined && clock.monotonic() < kept.endsAt) return kept.counts;
    return counting.run('all', countAll);
  };
}
