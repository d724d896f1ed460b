// The four ports of the store, and the records that they exchange.
import type { StoreConfig } from '../config/groups/store.ts';
import { STORE_UNAVAILABLE } from '../errors/gateway-error.ts';
import type { LimitScope } from '../telemetry/metrics/metrics.ts';
import type { PageRequest, StoredPage } from './page.ts';

/**
 * The state that all replicas share.
 *
 * A store has four ports, and its users name the one that they need. A driver is a function that returns all of them in one
 * object; `test/contract` has one file for each port, and tests that all drivers behave the same way. A rejection means that the
 * store did not do it: callers fail closed with a true error, except for rate limits (§8.4), which fail open.
 */
export interface Store extends KeyValue, Sessions, Windows, Bus {
  /** True if other replicas may use the same store. */
  readonly isShared: boolean;
  /** The name of the database in OpenTelemetry (`db.system.name`). */
  readonly databaseSystem: string;
  /** Resolves if the store answers. */
  ping(): Promise<void>;
  /** Describes the store for operators. */
  describe(): Promise<StoreFacts>;
  /** Releases connections, files and timers. The store is not used afterwards. */
  close(): Promise<void>;
}

/**
 * Values by key until they expire. Changes to a value that was read compare it (`compareAndSet`): another replica may have changed
 * it in the meantime. Secret values are sealed (records.ts).
 */
export interface KeyValue {
  /** Reads a value; undefined if absent or expired. */
  get(key: string): Promise<string | undefined>;
  /** Writes `value` under `key` for `ttlSeconds`; durable once resolved. */
  set(key: string, value: string, ttlSeconds: number): Promise<void>;
  /** Writes `value` unless there is one, and returns the stored value, atomically: concurrent callers all get the same value. */
  getOrSet(key: string, value: string, ttlSeconds: number): Promise<string>;
  /** Sets the value atomically if the key has the value `expected`, or none if that is undefined; otherwise returns false. */
  compareAndSet(
    key: string,
    expected: string | undefined,
    value: string,
    ttlSeconds: number,
  ): Promise<boolean>;
  /** Deletes the value atomically if it is `expected`; otherwise returns false. */
  compareAndDelete(key: string, expected: string): Promise<boolean>;
  /** Reads and deletes atomically: exactly one of concurrent callers gets the value. */
  getAndDelete(key: string): Promise<string | undefined>;
  delete(key: string): Promise<void>;

  /**
   * Sets a value, and lists it under `list` until it expires or `deleteListed` removes it. Only these three functions write and
   * remove such a key.
   */
  setListed(list: string, key: string, value: string, ttlSeconds: number): Promise<void>;
  /** Replaces a listed value; returns false, and writes nothing, if the key has no value. */
  replaceListed(list: string, key: string, value: string, ttlSeconds: number): Promise<boolean>;
  /** Returns false if the key had no value. */
  deleteListed(list: string, key: string): Promise<boolean>;
  /** Reads the values of a list, the one that expires last first. */
  readListed(list: string, request: PageRequest): Promise<StoredPage<ListedValue>>;
  /** Counts the values of a list without reading them. */
  countListed(list: string): Promise<number>;
  /** Adds `value` in front of the recent values of the key, of which it keeps `max`, for `ttlSeconds`. */
  addRecent(
    key: string,
    value: string,
    bounds: { readonly max: number; readonly ttlSeconds: number },
  ): Promise<void>;
  /** Reads recent values, the last one first. */
  readRecent(key: string): Promise<readonly string[]>;
}

/** §2.1: sessions, which expire if they are not used. A request reads and slides its session through `Windows`. */
export interface Sessions {
  /**
   * Stores a new session and adds it to the index of live sessions. If its user then has more than `userMax` (0 for no limit), it
   * ends those that expire first, but never the new one. Resolves to the IDs of ended sessions.
   */
  createSession(
    session: SessionRecord,
    ttlSeconds: number,
    userMax?: number,
  ): Promise<readonly string[]>;
  /**
   * Sets the least severe level of log messages that the session's client wants; durable once resolved. Returns false, and writes
   * nothing, if the session is absent or not `owner`'s.
   */
  setSessionLogLevel(
    sessionId: string,
    owner: Owner | undefined,
    logLevel: string,
  ): Promise<boolean>;
  /** Deletes `owner`'s session and its index entry. Returns false if it is absent or not `owner`'s. */
  endSession(sessionId: string, owner: Owner | undefined): Promise<boolean>;
  /**
   * Removes the index entry of a session that is gone from the store. Returns true for exactly one caller on any replica, which
   * counts it as expired.
   */
  claimExpiredSession(sessionId: string): Promise<boolean>;
  /**
   * Sweeps the index entries that are due: removes those of gone sessions, and updates the times of touched ones, here and among
   * those of their user. Resolves to the number that this caller removed. A driver whose database does not expire keys itself
   * also sweeps the other ports here.
   */
  sweepSessions(): Promise<number>;
  /** Counts the sessions in the index; exact right after a sweep. */
  countSessions(): Promise<number>;
  /**
   * Lists live sessions in the order of the index, the one that is due last first. With `owner`, those of one user that were
   * opened, or swept, while its sessions were limited (`userMax`). Unreadable records are left out.
   */
  listSessions(request: PageRequest, owner?: Owner): Promise<StoredPage<ListedSession>>;
}

/** Counters that admit while there is room: requests in sliding windows (§8), and bytes in budgets. */
export interface Windows {
  /**
   * §8, §11: admits one request, in one round trip if the driver allows. Counts it in every window, or in none if one of them is
   * full; windows are checked in the given order. Reads its session, and slides it (gives it its full time to live again) if that
   * is requested and no window refuses. Only its owner's request slides a session, and never an ended one.
   *
   * With `grantKey`, it also reads the version of the grant, the beginning of a value of the port KeyValue. If there is none,
   * nothing is counted, and the session is neither read nor slid. If the version cannot be read, neither is the session, but the
   * request is counted.
   *
   * Part of this port, although it needs the others, since every call takes this step exactly once. Synchronous if the driver
   * already knows the answer; failures are rejections.
   */
  admitRequest(
    windows: readonly LimitWindow[],
    access: SessionAccess | undefined,
    grantKey?: string,
  ): Admission | Promise<Admission>;
  /**
   * Takes back an entry of the window of this key, if a later window refused the request. `entry` belongs to a request that was
   * counted in this window only. Idempotent.
   */
  uncountRequest(key: string, entry: string): Promise<void>;

  /**
   * Counts bytes of a value in a budget, atomically, until `releaseBytes` or for `ttlSeconds`. Returns false, and counts nothing,
   * if that would exceed `maxBytes`. An entry counts as 16 KiB at least.
   */
  reserveBytes(
    budget: string,
    entry: ByteEntry,
    bounds: { readonly maxBytes: number; readonly ttlSeconds: number },
  ): Promise<boolean>;
  /** Idempotent. */
  releaseBytes(budget: string, entry: ByteEntry): Promise<void>;
}

/** Best-effort messages between replicas. Anything that must not be lost is a record. */
export interface Bus {
  /**
   * Sends `message` to every listener of `channel` on every replica that is connected at this moment, this one included. It is not
   * stored, and needs no listener. After a rejection no replica has received it, unless the connection broke, or was too slow,
   * before Redis could confirm it. Messages of one sender arrive in the order sent, but not on a cluster.
   *
   * @throws StoreUnavailable
   */
  publish(channel: string, message: string): Promise<void>;
  /**
   * Calls `listener` with each message to `channel`, once the connection is open; it reconnects by itself, and misses messages
   * in the meantime. Never called inside `publish`, nor after `close` or the returned function, which ends the subscription.
   * Errors of a listener are logged and stop no other listener.
   */
  subscribe(channel: string, listener: (message: string) => void): () => void;
}

/** An entry that counts in a budget of bytes. */
export interface ByteEntry {
  /** Identifies the entry, together with its bytes. */
  readonly name: string;
  readonly bytes: number;
}

/** Bounds the number of entries of a budget. */
export const MIN_ENTRY_BYTES = 16_384;

export interface ListedValue {
  readonly key: string;
  readonly value: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

export interface ListedSession {
  readonly record: SessionRecord;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

interface StoreFacts {
  readonly driver: StoreConfig['kind'];
  /** The size of its file, if it has one. */
  readonly bytes?: number;
  /** Servers that take writes; never empty. */
  readonly servers?: readonly RedisServerFacts[];
}

/** A member is undefined if the user of REDIS_URL may not read it. */
export interface RedisServerFacts {
  /** `Redis 7.2.4` or `Valkey 8.0.1`. */
  readonly version: string | undefined;
  readonly mode: 'standalone' | 'cluster' | 'sentinel' | undefined;
  readonly role: 'primary' | 'replica' | undefined;
  readonly evictionPolicy: string | undefined;
  readonly persistence: 'none' | 'snapshots' | 'append-only file' | undefined;
}

/** §2.1: a session, with everything that another replica needs to rebuild it. */
export interface SessionRecord {
  readonly sessionId: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Epoch milliseconds. */
  readonly lastAccessedAt: number;
  /** `sub` of the owner; absent without authentication. */
  readonly userId?: string | undefined;
  /** The issuer of `userId`, `OIDC_ISSUER` or another. */
  readonly userIssuer?: string | undefined;
  readonly protocolVersion: string;
  /** `clientInfo` of `initialize` as JSON text; scripts never re-encode it. */
  readonly clientInfo?: string | undefined;
  /** `capabilities` that the client declared in `initialize`, as JSON text like `clientInfo`. */
  readonly clientCapabilities: string;
  /** The least severe level of log messages that the client asked for (`logging/setLevel`). */
  readonly logLevel?: string | undefined;
  /** The server or view on whose path it was opened; absent for `/mcp`. */
  readonly server?: string | undefined;
  /** Name and e-mail of its user, sealed, for operators. Only `listSessions` needs to read it. */
  readonly person?: string | undefined;
}

/** The owner of a record. A `sub` is unique only within its issuer (OpenID Connect Core §5.7). */
export interface Owner {
  readonly sub: string;
  /** Always set for owners of sessions; otherwise absent for users of `OIDC_ISSUER`. */
  readonly issuer?: string | undefined;
}

/** The use of a session by a request. */
export interface SessionAccess {
  readonly sessionId: string;
  /** The request's user; undefined without authentication. */
  readonly owner: Owner | undefined;
  /** The full time to live in seconds, which the session slides to; undefined to read it only. */
  readonly slideSeconds: number | undefined;
}

/** §8: one sliding window. */
export interface LimitWindow {
  readonly scope: LimitScope;
  readonly key: string;
  readonly windowMs: number;
  /** Requests admitted per window. */
  readonly max: number;
}

/** The verdict of the windows, with the figures of the first window, or of the one that refused. */
export interface WindowVerdict {
  readonly isAdmitted: boolean;
  readonly scope: LimitScope;
  readonly limit: number;
  /** Requests still free in the window; 0 on refusal. */
  readonly remaining: number;
  /** Epoch milliseconds, by the store's clock, when the oldest counted entry leaves the window. */
  readonly resetAt: number;
  /** Milliseconds from now until `resetAt`, by the store's clock. */
  readonly resetInMs: number;
  /** Set for a refusal that may end before that: it holds for this many milliseconds. */
  readonly holdsForMs?: number;
}

/** The outcome of admitting a request. */
export interface Admission {
  /** Undefined if no window was given, or the windows could not be asked (`limitFailure`). */
  readonly verdict: WindowVerdict | undefined;
  /** Names the counted entry for `uncountRequest`; undefined if nothing was counted. */
  readonly entry: string | undefined;
  /** Set if the windows failed, though maybe not the session (on a cluster with one node down). */
  readonly limitFailure?: unknown;
  /** Not read once a window has refused. */
  readonly session: SessionLookup;
  readonly grant: GrantLookup;
}

/**
 * A session after it was read and slid; undefined if it does not exist, or none was requested. A failed store is not "not found".
 */
export type SessionLookup =
  | { readonly record: SessionRecord | undefined }
  | { readonly failure: unknown };

/** The session does not exist, or none was requested. */
export const NO_SESSION: SessionLookup = { record: undefined };

/** The version of a grant in the store; undefined if it does not exist, or none was requested. */
export type GrantLookup = { readonly version: string | undefined } | { readonly failure: unknown };

export const NO_GRANT: GrantLookup = { version: undefined };

/** The admission of a request that was not sent to the store, or that has no grant. */
export const NOT_COUNTED: Admission = {
  verdict: undefined,
  entry: undefined,
  session: NO_SESSION,
  grant: NO_GRANT,
};

/** Characters of base64url at the start of a grant's value: 12 random bytes, new after each change. */
export const GRANT_VERSION_LENGTH = 16;

/** Returns true if a requested grant does not exist; a failed store has not said so. */
export const isMissingGrant = (grant: GrantLookup): boolean =>
  'version' in grant && grant.version === undefined;

/** Thrown by drivers if the store is unavailable (down, frozen, timeout). */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
  readonly code = STORE_UNAVAILABLE;
}
