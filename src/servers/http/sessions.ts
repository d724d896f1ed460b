// §18.3: sessions at a server. Each client session has its own session at the server, which any replica can continue; callers
// without a session share one for each user, client, set of declared capabilities, and connection.

import type { LogSeverity } from '../../mcp/protocol/methods.ts';
import type { RequestHeaders } from '../../mcp/upstream/envelope.ts';
import {
  nameOwnSession,
  type UpstreamCaller,
  type UpstreamRequest,
} from '../../mcp/upstream/upstream.ts';
import { LinkedList } from '../../platform/bounded-map.ts';
import type { Clock, Deadline } from '../../platform/clock.ts';
import { parseObject } from '../../platform/json.ts';
import { CAPACITY } from '../../platform/memory/capacity.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import { nameOwner } from '../../store/keys.ts';
import { readChange, type ServerNotification } from '../messages/server-message.ts';
import { type Askable, createServerQuestions } from '../transport/server-questions.ts';
import type { ServerSessionRecords } from '../transport/session-records.ts';
import type { EventCursor } from './event-stream.ts';
import type { OpenCookies, SessionCookies } from './session-cookies.ts';

export type ServerSessions = ReturnType<typeof createServerSessions>;

/** @throws UpstreamError if the session cannot be used. */
type Test = (session: ServerSession) => Promise<void>;

/** Begins and ends sessions at a server. */
interface SessionLife {
  /** Sends `initialize`. If this is a trial, the outcome has no further effect. */
  readonly initialize: (caller: UpstreamCaller, isTrial?: true) => Promise<ServerSession>;
  /** Sends DELETE. Never rejects. */
  readonly terminate: (caller: UpstreamCaller, session: ServerSession) => Promise<void>;
  /** Called when the session has replaced one that the server lost. Never rejects. */
  readonly restore: (
    caller: UpstreamCaller,
    session: ServerSession,
    lost: ServerSession,
  ) => Promise<void>;
}

interface Entry {
  readonly session: ServerSession;
  /**
   * The caller whose credentials are used to terminate a shared session; undefined if the session belongs to one client
   * session.
   */
  sharedBy: UpstreamCaller | undefined;
  /** The id of the client's session, which is the key of the record; undefined if the session is shared. */
  readonly sessionId: string | undefined;
}

const IDLE_MS = 900_000;
const SWEEP_MS = 60_000;
/** Records outlive a client's session by an hour. Writing them twice an hour keeps them from expiring earlier. */
const WRITE_AGAIN_MS = 1_800_000;
/**
 * Minimum interval between writes of cookies: some load balancers set a different value with each answer, and the previous one
 * stays valid long enough.
 */
const WRITE_COOKIES_MS = 60_000;

export function createServerSessions(
  clock: Clock,
  records: ServerSessionRecords,
  openCookies: OpenCookies,
  { initialize, terminate, restore }: SessionLife,
) {
  const entries = new Map<string, Entry>();
  const openings = createSingleFlight<string, ServerSession>();
  let cancelSweep: (() => void) | undefined;

  function find(caller: UpstreamCaller): ServerSession | undefined {
    const entry = entries.get(nameSharer(caller));
    if (entry === undefined) return undefined;
    const { session } = entry;
    // The most recent token is valid the longest.
    if (caller.sessionId === undefined) entry.sharedBy = caller;
    const now = clock.monotonic();
    session.usedAt = now;
    if (now - session.storedAt < WRITE_AGAIN_MS) return session;
    const sessionId = nameOwnSession(caller);
    if (sessionId === undefined || session.id === undefined) return session;
    session.storedAt = now;
    void keepRecord(sessionId, session, session);
    return session;
  }

  function readRecord(text = '') {
    const { id, protocolVersion, cookies } = parseObject(text) ?? {};
    if (typeof id !== 'string' || typeof protocolVersion !== 'string') return undefined;
    const kept = { isFromStore: true, cookies: openCookies(cookies) };
    return new ServerSession(id, protocolVersion, clock.monotonic(), kept);
  }

  /** Stores the cookies, unless those in the store are newer (another replica may have written them). */
  async function storeCookies({ session, sessionId }: Entry, minimumAgeMs: number) {
    const { id, cookies } = session;
    if (sessionId === undefined || id === undefined || cookies?.isUnsaved !== true) return;
    const kept = await records.update(sessionId, (text) => {
      const standing = readRecord(text);
      const age = clock.now() - (standing?.cookies?.storedAt ?? 0);
      // The session may have ended, or have been replaced by another replica.
      const isDue = standing?.id === id && age >= minimumAgeMs;
      return isDue ? writeRecord(session) : undefined;
    });
    if (kept === undefined) cookies.isUnsaved = true;
  }

  /**
   * Writes the session if the store has none, or has the one that it replaces. Resolves to the session that is then in the store.
   */
  async function keepRecord(sessionId: string, session: ServerSession, replaced: ServerSession) {
    const own = writeRecord(session);
    const kept = await records.update(sessionId, (text) => {
      const standing = readRecord(text);
      return standing === undefined || standing.id === replaced.id ? own : text;
    });
    return kept === undefined || kept === own ? session : readRecord(kept);
  }

  function remember(caller: UpstreamCaller, session: ServerSession): ServerSession {
    const sharer = nameSharer(caller);
    const sessionId = nameOwnSession(caller);
    const sharedBy = caller.sessionId === undefined ? caller : undefined;
    const entry = { session, sharedBy, sessionId };
    const { elicitation, elicitationUrl, sampling, roots } = caller.capabilities;
    session.canAsk = elicitation || elicitationUrl === true || sampling || roots;
    entries.delete(sharer);
    entries.set(sharer, entry);
    if (session.cookies !== undefined && sessionId !== undefined)
      session.cookies.onNewName = () => {
        // An answer may arrive after the session has ended or was replaced: its cookies are not stored.
        if (entries.get(sharer) === entry) void storeCookies(entry, 0);
      };
    if (entries.size > CAPACITY.serverSessions) forgetOldest();
    cancelSweep ??= clock.after(SWEEP_MS, sweep);
    return session;
  }

  function forgetOldest() {
    for (const [sharer, entry] of entries) {
      // A caller who opens many sessions must not end a session that has requests in flight.
      if (isBusy(entry.session)) continue;
      forget(sharer, entry);
      return;
    }
  }

  /** A session that belongs to one client session stays in the store. */
  function forget(sharer: string, { sharedBy, session }: Entry) {
    entries.delete(sharer);
    if (sharedBy !== undefined) void terminate(sharedBy, session);
  }

  function sweep() {
    const limit = clock.monotonic() - IDLE_MS;
    for (const [sharer, entry] of entries) {
      if (entry.session.usedAt <= limit && !isBusy(entry.session)) forget(sharer, entry);
      else void storeCookies(entry, WRITE_COOKIES_MS);
    }
    cancelSweep = entries.size > 0 ? clock.after(SWEEP_MS, sweep) : undefined;
  }

  /** Opens a session; `lost` is the session to replace, if the server has lost one. */
  async function open(
    caller: UpstreamCaller,
    lost?: ServerSession,
    test?: Test,
  ): Promise<ServerSession> {
    const sessionId = nameOwnSession(caller);
    const text = sessionId === undefined ? undefined : await records.read(sessionId);
    const stored = readRecord(text);
    if (sessionId !== undefined && text !== undefined && lost === undefined) {
      // The record may have been written long ago: renews its time to live.
      void records.update(sessionId, (current) => current);
      if (stored !== undefined) return stored;
    }
    // Another replica has already replaced the lost session, and the server may have lost the replacement since. Or the stored
    // session has a new cookie, without which a load balancer chooses the wrong node.
    const isOther =
      stored !== undefined &&
      (stored.id !== lost?.id || stored.cookies?.hasNews(lost?.cookies) === true);
    if (isOther && (await test?.(stored).catch(() => false)) !== false) return stored;
    const session = await initialize(caller, test && true);
    try {
      await test?.(session);
    } catch (error) {
      void terminate(caller, session);
      throw error;
    }
    if (sessionId === undefined || session.id === undefined) return session;
    const replaced = stored ?? lost;
    const kept =
      replaced === undefined
        ? readRecord(await records.readOrWrite(sessionId, writeRecord(session)))
        : await keepRecord(sessionId, session, replaced);
    if (kept === undefined || kept.id === session.id) return session;
    void terminate(caller, session);
    return kept;
  }

  async function replace(
    caller: UpstreamCaller,
    lost: ServerSession,
    test?: Test,
  ): Promise<ServerSession> {
    const current = find(caller);
    if (current !== undefined && current !== lost) return current;
    return openings.run(nameSharer(caller), async () => {
      const session = remember(caller, await open(caller, lost, test));
      void restore(caller, session, lost);
      return session;
    });
  }

  return {
    /** Looks in memory only: undefined if the session has to be opened. */
    find,
    /** Takes the session from the store, or opens a new one. Single flight. */
    open: (caller: UpstreamCaller) =>
      openings.run(nameSharer(caller), async () => remember(caller, await open(caller))),
    /**
     * Replaces a session that the server no longer knows. Single flight. With a test, the server may still know the session: it is
     * replaced only by a session that passes the test.
     */
    replace,
    async end(caller: UpstreamCaller) {
      const sharer = nameSharer(caller);
      await openings.find(sharer)?.catch(() => {});
      const remembered = entries.get(sharer)?.session;
      entries.delete(sharer);
      const sessionId = nameOwnSession(caller);
      const text = sessionId === undefined ? undefined : await records.take(sessionId);
      // Another replica may have replaced the session that this one remembers.
      const session = readRecord(text) ?? remembered;
      if (session !== undefined) await terminate(caller, session);
    },
    /** Forgets all sessions, and terminates those that no other replica can continue. */
    async close() {
      cancelSweep?.();
      const ended = [...entries.values()];
      entries.clear();
      await Promise.all(
        ended.map(({ sharedBy, session }) => sharedBy && terminate(sharedBy, session)),
      );
    },
  };
}

const isBusy = ({ streams, openRequests }: ServerSession) => streams > 0 || openRequests.size > 0;

// One session: its state in memory, and its record in the store.

export class ServerSession {
  /** Undefined if the server has no sessions. */
  readonly id: string | undefined;
  readonly protocolVersion: string;
  /** Another replica may have opened it long ago, and the server may have lost it since. */
  readonly isFromStore: boolean;
  /** Headers of each request in the session, which name it. */
  readonly headers: RequestHeaders;
  /** Undefined if cookies are not kept. */
  readonly cookies: SessionCookies | undefined;
  /** The log level that was last requested. */
  logLevel: LogSeverity | undefined = undefined;
  /** Monotonic milliseconds. */
  usedAt: number;
  storedAt: number;
  /** When this session, or the one that it replaced, was last probed. Monotonic milliseconds. */
  askedAt = Number.NEGATIVE_INFINITY;
  /** True if the session has answered a request since that probe. */
  hasServed = false;
  readonly openRequests = new LinkedList<OpenRequest>();
  readonly questions = createServerQuestions();
  /** The session's GET streams that are open or being opened. */
  streams = 0;
  /** The session's GET streams that are open. */
  openStreams = 0;
  /** True if the server can ask the session's clients, which all declare the same capabilities. */
  canAsk = false;
  /** True if the server has no GET streams (405). */
  refusesStream = false;
  /** The stream that is held open for the server's questions; undefined until a call needs it. */
  held: HeldForQuestions | undefined = undefined;
  /** The position in the session's GET stream; undefined until an event has an id. */
  cursor: EventCursor | undefined = undefined;

  constructor(
    id: string | undefined,
    protocolVersion: string,
    now: number,
    { isFromStore = false, cookies }: Partial<Pick<ServerSession, 'isFromStore' | 'cookies'>> = {},
  ) {
    this.id = id;
    this.protocolVersion = protocolVersion;
    this.isFromStore = isFromStore;
    this.headers = ['mcp-protocol-version', protocolVersion];
    if (id !== undefined) this.headers = [...this.headers, 'mcp-session-id', id];
    this.cookies = cookies;
    this.usedAt = now;
    this.storedAt = now;
  }
}

/** See question-streams.ts. */
export interface HeldForQuestions {
  /** The most recent caller, whose token is valid the longest. */
  caller: UpstreamCaller;
  /** Monotonic milliseconds. */
  usedAt: number;
  /** Resolves once the stream is open, or cannot be; undefined if no call has to wait. */
  readonly opening: Promise<void> | undefined;
  /** Called when an attempt to open the stream has ended. */
  noteAttempt(): void;
}

/** Writes the record from which any replica can continue the session. */
const writeRecord = ({ id, protocolVersion, cookies }: ServerSession): string =>
  JSON.stringify({ id, protocolVersion, cookies: cookies?.toRecord() });

/**
 * Identifies the callers that share a session: those of one client session, or of one user, client, set of capabilities, and
 * connection.
 */
export function nameSharer(caller: UpstreamCaller): string {
  const { sessionId, user, clientId, capabilities, connectionId } = caller;
  if (sessionId !== undefined && connectionId === undefined) return sessionId;
  const ownSession = nameOwnSession(caller);
  if (ownSession !== undefined) return ownSession;
  const { elicitation, elicitationUrl = false, sampling, samplingTools = false } = capabilities;
  const { roots, extensions } = capabilities;
  const declared = [elicitation, elicitationUrl, sampling, samplingTools, roots]
    .map(Number)
    .join('');
  const sharer: unknown[] = [user ? nameOwner(user) : null, clientId ?? null, declared];
  if (extensions !== undefined) sharer.push(extensions);
  return JSON.stringify(connectionId === undefined ? sharer : [...sharer, connectionId]);
}

/** Passes on a notification about the session, from any of its streams. False for any other notification. */
export function routeToSession(
  message: ServerNotification,
  { questions, openRequests }: ServerSession,
): boolean {
  if (message.method === 'notifications/cancelled') {
    questions.cancel(message.params.requestId);
    return true;
  }
  const change = readChange(message);
  return (
    change?.kind === 'elicitation' &&
    [...openRequests].some(
      ({ request }) => request.onElicitationComplete?.(change.elicitationId) === true,
    )
  );
}

// A session's requests in flight: the server's messages on other streams may belong to one of them.

interface OpenRequest {
  /** The request's id, which is also its progress token. */
  readonly id: number;
  readonly request: UpstreamRequest;
  /** Undefined while the request is not in flight. */
  readonly deadline: Deadline | undefined;
}

/**
 * Lists the requests that a question on the session's GET stream may belong to, newest first: all requests of one client, since
 * the stream does not name the request. If the server has no sessions, the question may be for any client.
 */
export function listAskable(
  { sessionId, user }: UpstreamCaller,
  { id, openRequests }: ServerSession,
): readonly Askable[] {
  const askable = [...openRequests]
    .filter(({ request }) => request.onRequest !== undefined)
    .reverse();
  const isOneClient = sessionId !== undefined || user !== undefined || askable.length === 1;
  return id !== undefined && isOneClient ? askable : [];
}
