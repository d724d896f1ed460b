import type { StoreConfig } from '../config/groups/store.ts';
import type { LimitScope } from '../telemetry/metrics/metrics.ts';
import type { PageRequest, StoredPage } from './page.ts';

/**
 * The state that all replicas share: everything that another replica must see.
 *
 * A store is made of four ports, and whoever uses it names the one that it needs. A driver is a function that returns
 * all of them in one object; `test/contract` has one file for each port, and holds every driver to the same behaviour.
 * Any rejection means "the store did not do it": callers fail closed with a true error (rate limits, §8.4, let pass).
 */
export interface Store extends KeyValue, Sessions, Windows, Bus {
  /** True if other replicas may have the same store. A store of one process alone needs no agreement. */
  readonly isShared: boolean;
  /** One of the names that OpenTelemetry has for databases (`db.system.name`). */
  readonly databaseSystem: string;
  /** Resolves when the store answers. */
  ping(): Promise<void>;
  /** The facts that it tells of itself. */
  describe(): Promise<StoreFacts>;
  /** Releases connections, files and timers. The store is not used afterwards. */
  close(): Promise<void>;
}

/**
 * Values by key, each until its time is over. Whoever changes what it has read compares (`compareAndSet`): another
 * replica may have changed it meanwhile. What nobody else may read or forge is sealed (records.ts).
 */
export interface KeyValue {
  /** The value under `key`, or undefined when absent or expired. */
  get(key: string): Promise<string | undefined>;
  /** Writes `value` under `key` for `ttlSeconds`; durable once resolved. */
  set(key: string, value: string, ttlSeconds: number): Promise<void>;
  /**
   * The value under `key`, after `value` was written there where nothing was, in one step: of many at
   * the same moment, all get the value of one.
   */
  getOrSet(key: string, value: string, ttlSeconds: number): Promise<string>;
  /**
   * As `set`, in one step where `expected` stands under the key; undefined stands for nothing. False, and nothing is
   * written, where anything else stands there.
   */
  compareAndSet(
    key: string,
    expected: string | undefined,
    value: string,
    ttlSeconds: number,
  ): Promise<boolean>;
  /** Deletes in one step where `expected` stands under the key; else false. */
  compareAndDelete(key: string, expected: string): Promise<boolean>;
  /** Reads and deletes in one step: exactly one of many at the same moment gets the value. */
  getAndDelete(key: string): Promise<string | undefined>;
  delete(key: string): Promise<void>;

  /**
   * As `set`, and lists the value under `list` until it expires or `deleteListed` removes it. Such a key is written
   * and removed by these three alone.
   */
  setListed(list: string, key: string, value: string, ttlSeconds: number): Promise<void>;
  /** As `setListed` where a value stands under the key: false, and nothing is written, where none does. */
  replaceListed(list: string, key: string, value: string, ttlSeconds: number): Promise<boolean>;
  /** False when there was nothing under the key. */
  deleteListed(list: string, key: string): Promise<boolean>;
  /** The values of a list, the one that expires last first. */
  readListed(list: string, request: PageRequest): Promise<StoredPage<ListedValue>>;
  /** The number of values of a list; none of them is read for it. */
  countListed(list: string): Promise<number>;
  /** Puts `value` before those that `readRecent` has of the key, of which it keeps `max`, for `ttlSeconds`. */
  addRecent(
    key: string,
    value: string,
    bounds: { readonly max: number; readonly ttlSeconds: number },
  ): Promise<void>;
  /** The last first. */
  readRecent(key: string): Promise<readonly string[]>;
}

/** §2.1: sessions, which expire when they are not used. A request reads and slides its session by `Windows`. */
export interface Sessions {
  /**
   * Stores a new session and adds it to the index of live sessions. Where its user has more than
   * `userMax` then (0 for any number), those that expire first are ended, but never the new one.
   * Resolves to the ids of those that were ended.
   */
  createSession(
    session: SessionRecord,
    ttlSeconds: number,
    userMax?: number,
  ): Promise<readonly string[]>;
  /**
   * Notes the least severe level of log messages that the session's client wants; durable once
   * resolved. False, and nothing is written, when the session is absent or not `owner`'s.
   */
  setSessionLogLevel(
    sessionId: string,
    owner: Owner | undefined,
    logLevel: string,
  ): Promise<boolean>;
  /** Deletes `owner`'s session and its index entry. False when it is absent or not `owner`'s. */
  endSession(sessionId: string, owner: Owner | undefined): Promise<boolean>;
  /**
   * Takes the index entry of a session that is gone from the store. True for exactly one caller
   * on any replica: the one that counts it as expired.
   */
  claimExpiredSession(sessionId: string): Promise<boolean>;
  /**
   * Goes through the index entries that are due: those of gone sessions are taken, those of
   * touched sessions get their new time, here and among those of their user. Resolves to the number
   * this caller took. A driver whose database forgets nothing by itself clears the other ports here, too.
   */
  sweepSessions(): Promise<number>;
  /** The number of sessions in the index; exact right after a sweep. */
  countSessions(): Promise<number>;
  /**
   * Live sessions in the order of the index, the one that is due last first. With `owner` those of one user that were
   * opened, or swept, while its sessions were limited (`userMax`). A record that cannot be read is left out.
   */
  listSessions(request: PageRequest, owner?: Owner): Promise<StoredPage<ListedSession>>;
}

/** Counts, and lets in while there is room: requests in sliding windows (§8), and bytes in budgets. */
export interface Windows {
  /**
   * §8, §11: admits one request, in one round trip where the driver allows. Counts it in every window,
   * or in none where one of them is full; windows are checked in the order given. Reads the session
   * that it is about, and slides it where that is asked for and no window refuses: sliding expiration,
   * the session has its full time-to-live again. Only its owner's request slides a session, and none that has ended.
   *
   * Where `grantKey` is given, it also says which version stands there: a value of the port KeyValue, which begins
   * with it. Where there is none, nothing is counted, and the session is neither read nor slid. Where that cannot be
   * read, the session is not either, but the request is counted.
   *
   * It belongs to this port, although it needs the others: every call takes this step, and takes it once. Not a promise
   * where the driver has the answer at hand; what fails is a rejection.
   */
  admitRequest(
    windows: readonly LimitWindow[],
    access: SessionAccess | undefined,
    grantKey?: string,
  ): Admission | Promise<Admission>;
  /**
   * Takes back what was counted in the window of this key, where a later window refused the request.
   * `entry` is that of a request which was counted in this window alone. Nothing happens when it is
   * gone.
   */
  uncountRequest(key: string, entry: string): Promise<void>;

  /**
   * Counts bytes of a value in a budget, in one step, until `releaseBytes` or for `ttlSeconds`. False, and nothing is
   * counted, where more than `maxBytes` would count then. An entry counts as 16 KiB at least.
   */
  reserveBytes(
    budget: string,
    entry: ByteEntry,
    bounds: { readonly maxBytes: number; readonly ttlSeconds: number },
  ): Promise<boolean>;
  /** Nothing happens when the entry is gone. */
  releaseBytes(budget: string, entry: ByteEntry): Promise<void>;
}

/** Messages between replicas. What must not be lost is a record. */
export interface Bus {
  /**
   * Sends `message` to every listener of `channel` on every replica that is connected at this
   * moment, this one included. It is kept nowhere, and it is no error that nobody listens. After a
   * rejection nobody has got it (but for a connection that broke, or was too slow, before Redis
   * could say that it had). Messages of one sender arrive in the order sent, but not on a cluster.
   *
   * @throws StoreUnavailable
   */
  publish(channel: string, message: string): Promise<void>;
  /**
   * Calls `listener` with each message to `channel`: from soon after (the connection is opened
   * meanwhile), and again by itself after the connection was lost; what is sent in between is
   * missed. Never called inside `publish`, nor after the returned function, which ends it, or
   * `close`. What a listener throws is logged and stops nobody.
   */
  subscribe(channel: string, listener: (message: string) => void): () => void;
}

/** An entry that counts in a budget of bytes. */
export interface ByteEntry {
  /** The name by which it is found again, together with its bytes. */
  readonly name: string;
  readonly bytes: number;
}

/** So that the entries of a budget are few. */
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

export interface StoreFacts {
  readonly driver: StoreConfig['kind'];
  /** The size of its file, where it has one of its own. */
  readonly bytes?: number;
  /** Those that take writes; never empty. */
  readonly servers?: readonly RedisServerFacts[];
}

/** A member is undefined where the user of REDIS_URL may not ask for it. */
export interface RedisServerFacts {
  /** `Redis 7.2.4` or `Valkey 8.0.1`. */
  readonly version: string | undefined;
  readonly mode: 'standalone' | 'cluster' | 'sentinel' | undefined;
  readonly role: 'primary' | 'replica' | undefined;
  readonly evictionPolicy: string | undefined;
  readonly persistence: 'none' | 'snapshots' | 'append-only file' | undefined;
}

/** §2.1, with what another replica needs to rebuild the session. */
export interface SessionRecord {
  readonly sessionId: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Epoch milliseconds. */
  readonly lastAccessedAt: number;
  /** `sub` of the owner; absent when the service runs without authentication. */
  readonly userId?: string | undefined;
  /** The issuer of `userId`, `OIDC_ISSUER` or another. */
  readonly userIssuer?: string | undefined;
  readonly protocolVersion: string;
  /** `clientInfo` of `initialize` as JSON text; never re-encoded by a script. */
  readonly clientInfo?: string | undefined;
  /** `capabilities` that the client declared in `initialize`, as JSON text like `clientInfo`. */
  readonly clientCapabilities: string;
  /** The least severe level of log messages that the client asked for (`logging/setLevel`). */
  readonly logLevel?: string | undefined;
  /** The server at whose path it was opened (`/mcp/<server>`); absent for `/mcp`. */
  readonly server?: string | undefined;
  /** Name and e-mail of its user, sealed, for operators. Only `listSessions` needs to read it. */
  readonly person?: string | undefined;
}

/** The owner of something. A `sub` alone does not say it: each issuer has users of its own (OpenID Connect Core §5.7). */
export interface Owner {
  readonly sub: string;
  /** Always there for owners of sessions; else it is absent for users of `OIDC_ISSUER`. */
  readonly issuer?: string | undefined;
}

/** The use that a request makes of its session. */
export interface SessionAccess {
  readonly sessionId: string;
  /** The request's user; undefined when the service runs without authentication. */
  readonly owner: Owner | undefined;
  /** The full time-to-live in seconds, to which the session slides; undefined where it is only read. */
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

/** The verdict of the windows: the first window's figures, or those of the one that refused. */
export interface WindowVerdict {
  readonly isAdmitted: boolean;
  readonly scope: LimitScope;
  readonly limit: number;
  /** Requests still free in the window; 0 on refusal. */
  readonly remaining: number;
  /** Epoch milliseconds of the store's clock at which the oldest counted entry leaves the window. */
  readonly resetAt: number;
  /** Milliseconds from now until `resetAt`, by the store's clock. */
  readonly resetInMs: number;
  /** For a refusal that may be over before that: for so many milliseconds it need not be asked for again. */
  readonly holdsForMs?: number;
}

/** The outcome of admitting a request. */
export interface Admission {
  /** Undefined when no window was given, or when the windows could not be asked (`limitFailure`). */
  readonly verdict: WindowVerdict | undefined;
  /** Names what was counted, for `uncountRequest`; undefined when nothing was. */
  readonly entry: string | undefined;
  /** Set when the windows failed, but maybe not the session (on a cluster with one node down). */
  readonly limitFailure?: unknown;
  /** Not asked for once a window has refused. */
  readonly session: SessionLookup;
  readonly grant: GrantLookup;
}

/**
 * A session as it was read, and slid; undefined when it is absent, or none was asked for. A store that
 * failed is not "not found".
 */
export type SessionLookup =
  | { readonly record: SessionRecord | undefined }
  | { readonly failure: unknown };

/** For one that is not there, or was not asked for. */
export const NO_SESSION: SessionLookup = { record: undefined };

/** The version of a grant as it stands in the store; undefined when there is no such grant, or none was asked for. */
export type GrantLookup = { readonly version: string | undefined } | { readonly failure: unknown };

export const NO_GRANT: GrantLookup = { version: undefined };

/** Of a request that nothing was asked for, or that has no grant. */
export const NOT_COUNTED: Admission = {
  verdict: undefined,
  entry: undefined,
  session: NO_SESSION,
  grant: NO_GRANT,
};

/** Characters of base64url with which the value of a grant begins: 12 random bytes, others after each change. */
export const GRANT_VERSION_LENGTH = 16;

/** True if one that was asked for is not there: a store that failed has not said so. */
export const isMissingGrant = (grant: GrantLookup): boolean =>
  'version' in grant && grant.version === undefined;

/** Thrown by drivers when the store cannot be used now (down, frozen, time-out). */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}
