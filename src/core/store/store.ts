/**
 * The shared key-value store: everything that another replica must see.
 *
 * A driver is a function that returns this object; `test/contract` holds every driver to the same
 * behaviour. Any rejection means "the store did not do it": callers fail closed with a true error
 * (rate limits, §8.4, let pass).
 */
export interface Store {
  /** The value under `key`, or undefined when absent or expired. */
  get(key: string): Promise<string | undefined>;
  /** Writes `value` under `key` for `ttlSeconds`; durable once resolved. */
  set(key: string, value: string, ttlSeconds: number): Promise<void>;
  /**
   * The value under `key`, after `value` was written there where nothing was, in one step: of many at
   * the same moment, all get the value of one.
   */
  getOrSet(key: string, value: string, ttlSeconds: number): Promise<string>;
  /** Reads and deletes in one step: exactly one of many at the same moment gets the value. */
  getAndDelete(key: string): Promise<string | undefined>;
  delete(key: string): Promise<void>;

  /**
   * §8, §2.1: counts one request in every window, or in none where one of them is full, and
   * reads a session beside it, in one round trip where the driver allows. Windows are checked in the
   * order given. Without a `sessionId` the request is only counted.
   */
  countRequestAndReadSession(
    windows: readonly LimitWindow[],
    sessionId: string | undefined,
  ): Promise<RequestCountAndSession>;
  /**
   * Takes back what was counted in the window of this key, where a later window refused the request.
   * `entry` is that of a request which was counted in this window alone. Nothing happens when it is
   * gone.
   */
  uncountRequest(key: string, entry: string): Promise<void>;

  /** The session, or undefined when it is absent. */
  readSession(sessionId: string): Promise<SessionRecord | undefined>;
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
   * Slides a session: sets what changes and the full time-to-live, in one step. False, and nothing
   * is written, when it is absent or not `owner`'s (so a touch never revives an ended session).
   */
  touchSession(
    sessionId: string,
    owner: string | undefined,
    changes: SessionChanges,
    ttlSeconds: number,
  ): Promise<boolean>;
  /** Deletes `owner`'s session and its index entry. False when it is absent or not `owner`'s. */
  endSession(sessionId: string, owner: string | undefined): Promise<boolean>;
  /**
   * Takes the index entry of a session that is gone from the store. True for exactly one caller
   * on any replica: the one that counts it as expired.
   */
  claimExpiredSession(sessionId: string): Promise<boolean>;
  /**
   * Goes through the index entries that are due: those of gone sessions are taken, those of
   * touched sessions get their new time, here and among those of their user. Resolves to the number
   * this caller took.
   */
  sweepSessions(): Promise<number>;
  /** The number of sessions in the index; exact right after a sweep. */
  countSessions(): Promise<number>;

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

  /** Resolves when the store answers. */
  ping(): Promise<void>;
  /** Releases connections, files and timers. The store is not used afterwards. */
  close(): Promise<void>;
}

/** What a driver does with sessions alone. */
export type SessionOperations = Pick<
  Store,
  | 'readSession'
  | 'createSession'
  | 'touchSession'
  | 'endSession'
  | 'claimExpiredSession'
  | 'sweepSessions'
  | 'countSessions'
>;

/** §2.1, with what another replica needs to rebuild the session. */
export interface SessionRecord {
  readonly sessionId: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Epoch milliseconds. */
  readonly lastAccessedAt: number;
  /** `sub` of the owner; absent when the service runs without authentication. */
  readonly userId?: string;
  readonly protocolVersion: string;
  /** `clientInfo` of `initialize` as JSON text; never re-encoded by a script. */
  readonly clientInfo?: string;
  /** `capabilities` that the client declared in `initialize`, as JSON text like `clientInfo`. */
  readonly clientCapabilities?: string;
  /** The least severe level of log messages that the client asked for (`logging/setLevel`). */
  readonly logLevel?: string;
}

/** What a touch may change of a session. */
export type SessionChanges = Pick<SessionRecord, 'lastAccessedAt'> &
  Partial<Pick<SessionRecord, 'logLevel'>>;

/** §8: one sliding window. */
export interface LimitWindow {
  readonly scope: LimitScope;
  readonly key: string;
  readonly windowMs: number;
  /** Requests admitted per window. */
  readonly max: number;
}

/** What a window counts: an address, a user, or all callers (`global`, and those without a token). */
export type LimitScope = 'ip' | 'user' | 'global';

/** What the windows said: the first window's figures, or those of the one that refused. */
export interface Verdict {
  readonly isAdmitted: boolean;
  readonly scope: LimitScope;
  readonly limit: number;
  /** Requests still free in the window; 0 on refusal. */
  readonly remaining: number;
  /** Epoch milliseconds of the store's clock at which the oldest counted entry leaves the window. */
  readonly resetAt: number;
  /** Milliseconds from now until `resetAt`, by the store's clock. */
  readonly resetInMs: number;
}

/** What counting a request came to. */
export interface RequestCount {
  /** Undefined when no window was given, or when the windows could not be asked (`limitFailure`). */
  readonly verdict: Verdict | undefined;
  /** Names what was counted, for `uncountRequest`; undefined when nothing was. */
  readonly entry: string | undefined;
  /** Set when the windows failed while the session could be read (a cluster with one node down). */
  readonly limitFailure?: unknown;
}

export interface RequestCountAndSession extends RequestCount {
  /** The session asked for, or undefined when it is absent. */
  readonly session: SessionRecord | undefined;
}

/** A session as read beside the counting of its call; a store that failed is not "not found". */
export type SessionLookup =
  | { readonly record: SessionRecord | undefined }
  | { readonly failure: unknown };

/** Thrown by drivers when the store cannot be used now (down, frozen, time-out). */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}
