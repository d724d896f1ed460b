// §18.3: sessions at a server. Each client's session has one of its own, which any replica can continue; callers without a session
// share one for each user and client.

import {
  CredentialError,
  nameOwnSession,
  type UpstreamCaller,
  UpstreamError,
} from '../../mcp/upstream/upstream.ts';
import type { Clock } from '../../platform/clock.ts';
import { parseObject } from '../../platform/json.ts';
import { CAPACITY } from '../../platform/memory/capacity.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import type { ServerSessionRecords } from '../transport/session-records.ts';
import type { CallOutcome } from './server-call.ts';
import {
  isSessionLost,
  mayBeLost,
  nameSharer,
  ServerSession,
  writeRecord,
} from './server-session.ts';
import type { OpenCookies } from './session-cookies.ts';

type ServerSessions = ReturnType<typeof createServerSessions>;

/** @throws UpstreamError where the session cannot be used. */
type Test = (session: ServerSession) => Promise<void>;

/** The beginning and the end of sessions at a server. */
interface SessionLife {
  /** `initialize`; on trial nothing else follows from its outcome. */
  readonly initialize: (caller: UpstreamCaller, isTrial?: true) => Promise<ServerSession>;
  /** DELETE. Never rejects. */
  readonly terminate: (caller: UpstreamCaller, session: ServerSession) => Promise<void>;
  /** The session has taken the place of one that the server lost. Never rejects. */
  readonly restore: (
    caller: UpstreamCaller,
    session: ServerSession,
    lost: ServerSession,
  ) => Promise<void>;
}

interface Entry {
  readonly session: ServerSession;
  /** The caller whose credentials end a shared session; undefined for that of a client's session. */
  sharedBy: UpstreamCaller | undefined;
  /** The client's session, which is the key of its record. */
  readonly sessionId: string | undefined;
}

const IDLE_MS = 900_000;
const SWEEP_MS = 60_000;
/** Records outlive a client's session by an hour: written twice in that time, they never expire before it. */
const WRITE_AGAIN_MS = 1_800_000;
/** Some balancers set another value with each answer. The previous one stays valid for as long as the store needs. */
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
    // The newest token is valid for longest.
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

  /** Stores the cookies, unless those in the store are younger (another replica may have written them). */
  async function storeCookies({ session, sessionId }: Entry, minimumAgeMs: number) {
    const { id, cookies } = session;
    if (sessionId === undefined || id === undefined || cookies?.isUnsaved !== true) return;
    const kept = await records.update(sessionId, (text) => {
      const standing = readRecord(text);
      const age = clock.now() - (standing?.cookies?.storedAt ?? 0);
      // It may have ended, or have been replaced by another replica.
      const isDue = standing?.id === id && age >= minimumAgeMs;
      return isDue ? writeRecord(session) : undefined;
    });
    if (kept === undefined) cookies.isUnsaved = true;
  }

  /** Writes the session where the store has none, or has the one that it replaces. Resolves to the session that the store has then. */
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
    const entry = {
      session,
      sharedBy: caller.sessionId === undefined ? caller : undefined,
      sessionId,
    };
    entries.delete(sharer);
    entries.set(sharer, entry);
    if (session.cookies !== undefined && sessionId !== undefined)
      session.cookies.onNewName = () => {
        // Not for a session that has ended, or was replaced: an answer may arrive later.
        if (entries.get(sharer) === entry) void storeCookies(entry, 0);
      };
    if (entries.size > CAPACITY.serverSessions) forgetOldest();
    cancelSweep ??= clock.after(SWEEP_MS, sweep);
    return session;
  }

  function forgetOldest() {
    for (const [sharer, entry] of entries) {
      // A caller who opens many sessions must not end one that has requests in flight.
      if (isBusy(entry.session)) continue;
      forget(sharer, entry);
      return;
    }
  }

  /** The session of a client's session stays in the store. */
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

  /** Opens a session, in place of `lost` where the server lost one. */
  async function open(
    caller: UpstreamCaller,
    lost?: ServerSession,
    test?: Test,
  ): Promise<ServerSession> {
    const sessionId = nameOwnSession(caller);
    const text = sessionId === undefined ? undefined : await records.read(sessionId);
    const stored = readRecord(text);
    if (sessionId !== undefined && text !== undefined && lost === undefined) {
      // It may have been written long ago: renews its time to live.
      void records.update(sessionId, (current) => current);
      if (stored !== undefined) return stored;
    }
    // Another replica has replaced it before; the server may have lost that one since. Or it got a cookie without which a balancer
    // chooses the wrong node.
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
    /** In memory: undefined where it has to be opened. */
    find,
    /** Takes it from the store, or opens a new one. Single flight. */
    open: (caller: UpstreamCaller) =>
      openings.run(nameSharer(caller), async () => remember(caller, await open(caller))),
    /**
     * Replaces a session that the server no longer knows. Single flight. With a test: replaces one that the server may have lost, on
     * trial, by a session that passes the test.
     */
    replace,
    async end(caller: UpstreamCaller) {
      const sharer = nameSharer(caller);
      await openings.find(sharer)?.catch(() => {});
      const remembered = entries.get(sharer)?.session;
      entries.delete(sharer);
      const sessionId = nameOwnSession(caller);
      const text = sessionId === undefined ? undefined : await records.take(sessionId);
      // Another replica may have replaced the one in memory.
      const session = readRecord(text) ?? remembered;
      if (session !== undefined) await terminate(caller, session);
    },
    /** Forgets all, and ends those that no other replica can continue. */
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

// §18.3: detects lost sessions. After a restart a server should answer 404 to sessions that it no longer knows. Many answer 401, 400,
// 410, 503 or something else, which may concern the credentials, the request, or the whole server instead: a `ping` finds out.

type SessionState =
  /** It answers, or a new one is refused in the same way: the refusal was not about the session. */
  | { readonly kind: 'kept' }
  /** The server had lost it, and another one has taken its place. */
  | { readonly kind: 'replaced' }
  /** `ping` is refused, and no new session can be opened. */
  | { readonly kind: 'refused'; readonly error: UpstreamError }
  /** It was probed a moment ago, or gave no answer. */
  | { readonly kind: 'unknown' };

/** Pause between probes of a session that answers no request: bounds the cost of a server that refuses all, or loses each session. */
const ASK_AGAIN_MS = 5000;

/** `ping` is sent in the session, on trial. It may throw an UpstreamError. */
export function createFindSessionState(
  clock: Clock,
  ping: (caller: UpstreamCaller, session: ServerSession) => Promise<CallOutcome>,
  sessions: ServerSessions,
) {
  const questions = createSingleFlight<ServerSession, SessionState>();

  async function ask(caller: UpstreamCaller, session: ServerSession): Promise<SessionState> {
    session.askedAt = clock.monotonic();
    session.hasServed = false;
    try {
      const answer = await ping(caller, session);
      if (!isRefusal(session, answer)) return KEPT;
      const next = await sessions.replace(caller, session, async (other) => {
        const otherAnswer = await ping(caller, other);
        // A server that refuses `ping`, or the credentials for everything but `initialize`, answers alike in each session.
        const isAlike =
          answer.kind === 'refused'
            ? otherAnswer.kind === 'refused' && otherAnswer.status === answer.status
            : otherAnswer.kind === answer.kind;
        if (isRefusal(session, otherAnswer) && isAlike) throw new RefusedAlike();
      });
      next.askedAt = clock.monotonic();
      return REPLACED;
    } catch (error) {
      if (error instanceof RefusedAlike) return KEPT;
      // Missing credentials, or a missing answer, say nothing about the session.
      return error instanceof UpstreamError &&
        !(error instanceof CredentialError) &&
        error.failure === 'unavailable'
        ? { kind: 'refused', error }
        : UNKNOWN;
    }
  }

  /** Single flight for a session. With `mustAsk` even if it was probed a moment ago. Never rejects. */
  return async function findSessionState(
    caller: UpstreamCaller,
    session: ServerSession,
    mustAsk = false,
  ): Promise<SessionState> {
    const underWay = questions.find(session);
    if (underWay !== undefined) return underWay;
    const current = sessions.find(caller);
    if (current !== undefined && current !== session) return REPLACED;
    const mayAsk =
      mustAsk || session.hasServed || clock.monotonic() - session.askedAt >= ASK_AGAIN_MS;
    return mayAsk ? questions.run(session, () => ask(caller, session)) : UNKNOWN;
  };
}

const KEPT: SessionState = { kind: 'kept' };
const REPLACED: SessionState = { kind: 'replaced' };
const UNKNOWN: SessionState = { kind: 'unknown' };

const isRefusal = (session: ServerSession, answer: CallOutcome) =>
  isSessionLost(session, answer) || mayBeLost(session, answer);

class RefusedAlike extends UpstreamError {
  constructor() {
    super('unavailable', 'it refuses a new session, too');
  }
}
