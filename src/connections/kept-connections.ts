// §24: where connections are kept, what is known of them, and who is told when they change.

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
} from './connection-record.ts';

export type KeptConnections = ReturnType<typeof createKeptConnections>;

/** `listServers` has those of the configuration file that have connections, as it is now. */
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

// A change, told to all replicas: what they know of it ends, and whoever waits for it goes on.

/** `renewed`: it has another token, and is the same. `declined`: somebody said no to a link for it. */
type ConnectionChange = ConnectionState | 'renewed' | 'declined';

export type ConnectionMessage = (
  | { readonly owner: ConnectionOwner; readonly server: string; readonly change: ConnectionChange }
  /** Work for which another replica may wait has ended. */
  | { readonly released: string }
) & {
  /** The replica that says so, which knows it already. */
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
    (isOwner(value.owner) && typeof value.server === 'string' && CHANGES.has(value.change)));

const isOwner = (value: unknown) =>
  value === 'shared' || (isObject(value) && typeof value.sub === 'string');

type Listener = (place: ConnectionPlace, change: ConnectionChange) => void;

function createConnectionChanges(
  { clock, log }: Runtime,
  replicas: Replicas<ConnectionMessage>,
  known: KnownAccess,
  findPlace: FindPlace,
) {
  const listeners = new Set<Listener>();
  const waiting = new Map<string, Set<() => void>>();
  const { ownName: from } = replicas;
  const warn = createWarnThrottle(clock, (cause: unknown) =>
    log.warn('Other replicas hear of changed connections up to 30 s late.', { cause }),
  );

  function tell(place: ConnectionPlace, change: ConnectionChange) {
    for (const listener of [...listeners]) listener(place, change);
  }

  replicas.listen((message) => {
    if (message.from === from) return;
    if ('released' in message) {
      for (const listener of [...(waiting.get(message.released) ?? [])]) listener();
      return;
    }
    const place = findPlace(message.owner, message.server);
    // Before anybody else hears of it.
    known.forget(place);
    tell(place, message.change);
  });

  return {
    /** Here at once; at the other replicas soon, unless the message is lost. Never throws. What is known here was set right before. */
    announce(place: ConnectionPlace, change: ConnectionChange) {
      tell(place, change);
      const { owner, server } = place;
      replicas.send({ owner, server, change, from }).catch(warn);
    },
    /** Returns a function that ends it. */
    listen(listener: Listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    /** Never rejects: it may be lost. */
    announceRelease(hash: string) {
      // In this process nobody waits for it: they have its outcome.
      replicas.send({ released: hash, from }).catch(() => {});
    },
    /** Returns a function that ends it. */
    onRelease(hash: string, listener: () => void) {
      const others = waiting.get(hash) ?? new Set<() => void>();
      waiting.set(hash, others.add(listener));
      return () => {
        others.delete(listener);
        if (others.size === 0) waiting.delete(hash);
      };
    },
  };
}

// Connections that were read a moment ago, so that most calls wait for nothing. Bounded: it does not grow with users.

const KNOWN_MS = 30_000;
const FORGOTTEN_MS = 60_000;
/** Until a renewal that failed is tried again, while the token that there is still serves: calls do not wait for each try. */
const AGAIN_MS = 20_000;
const RENEWED_BEFORE_MS = 60_000;
/** A token that is good for so long can still be used while another is on its way, or cannot be had. */
export const RESERVE_MS = 5000;

interface Known extends Pick<ConnectionServer, 'url' | 'auth'> {
  readonly access: ActiveAccess;
}

interface Reading {
  readonly since: number;
  /** Its renewal was tried, and failed. */
  readonly hasFailed?: boolean;
}

type KnownAccess = ReturnType<typeof createKnownAccess>;

function createKnownAccess(clock: Clock) {
  const known = createExpiringMap<Known>('connections', clock.now);
  let forgets = 0;
  /** Which of all it was; for longer than anything is read. */
  const forgotten = createExpiringMap<number>('connections', clock.monotonic);

  return {
    /** For the server as it was configured when it was noted: with another it may be another. */
    get({ hash }: ConnectionPlace, { url, auth }: ConnectionServer) {
      const found = known.get(hash);
      return found?.url === url && found.auth === auth ? found.access : undefined;
    },
    /** Call it before a record is read, and give the result to `note`: access that was forgotten meanwhile does not become known again. */
    beginReading: (): Reading => ({ since: forgets }),
    note(
      { hash }: ConnectionPlace,
      { url, auth }: ConnectionServer,
      record: ConnectionRecord,
      { since, hasFailed = false }: Reading,
    ): ActiveAccess {
      const { expiresAt = Number.POSITIVE_INFINITY } = record;
      // One whose renewal has failed is tried again soon, and serves while it is good.
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

/** A minute before its end; where the whole life of a token is short, in its middle: else each call would renew it. */
export function findRenewalTime({ expiresAt, tokenAt }: ConnectionRecord): number {
  if (expiresAt === undefined) return Number.POSITIVE_INFINITY;
  return expiresAt - Math.min(RENEWED_BEFORE_MS, (expiresAt - tokenAt) / 2);
}

// §24.6, §21.1: who is told of connections. The audit log: made, renewed, in need of a login, ended; never a token. The metrics: what
// token endpoints said, and how many connections there are.

/** A renewal says no more than that the connection is in use: of each, one line a day, on all replicas together. */
const DAY_SECONDS = 86_400;

/** Writes nothing without `AUDIT_LOG`. */
function auditConnections({ audit, store, clock }: Runtime) {
  const written = createExpiringMap<true>('auditedConnections', clock.monotonic);

  /** A shared one is no user's. */
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
    /** The store may be slow, and no call waits for that line. Never rejects. */
    async renewed(place: ConnectionPlace, connectionId: string) {
      if (audit === undefined || written.get(connectionId)) return;
      written.set(connectionId, true, clock.monotonic() + DAY_SECONDS * 1000);
      const key = buildAuditedRenewalKey(connectionId);
      // No line where there is one of today, or nobody can know whether there is.
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

/** For so long an answer of the store is good: anybody may scrape, as often as they like. */
const KEPT_MS = 15_000;

/** Leaves out a server whose connections cannot be counted. Never rejects. */
export function createCountConnections(
  { clock }: Runtime,
  connections: Pick<Connections, 'count'>,
  listServers: () => readonly ConnectionServer[],
): () => Promise<readonly ConnectionCount[]> {
  let kept: { readonly counts: readonly ConnectionCount[]; readonly endsAt: number } | undefined;
  const counting = createSingleFlight<'all', readonly ConnectionCount[]>();

  /** One server after the other, so that a scrape never has more than one question at the store. */
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
