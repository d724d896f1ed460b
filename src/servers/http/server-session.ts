// A session of the gateway at a server: what is kept of it in memory, and in the store.

import type { LogSeverity } from '../../mcp/protocol/methods.ts';
import type { RequestHeaders } from '../../mcp/upstream/envelope.ts';
import {
  CredentialError,
  nameOwnSession,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
} from '../../mcp/upstream/upstream.ts';
import type { Deadline } from '../../platform/clock.ts';
import { nameOwner } from '../../store/owner.ts';
import {
  readChange,
  readEchoedNumber,
  type ServerNotification,
} from '../messages/server-message.ts';
import { type Askable, createServerQuestions } from '../transport/server-questions.ts';
import type { EventCursor } from './event-stream.ts';
import { type CallOutcome, findError } from './server-call.ts';
import type { SessionCookies } from './session-cookies.ts';

export class ServerSession {
  /** Undefined where the server keeps no sessions. */
  readonly id: string | undefined;
  readonly protocolVersion: string;
  /** Another replica may have opened it, long ago: the server may have lost it since. */
  readonly isFromStore: boolean;
  /** Sent with each of its requests to name it. */
  readonly headers: RequestHeaders;
  /** Undefined where none are kept. */
  readonly cookies: SessionCookies | undefined;
  /** The level that was last asked for. */
  logLevel: LogSeverity | undefined;
  /** Monotonic milliseconds. */
  usedAt: number;
  storedAt: number;
  /** When it was last asked whether it is still there, or took the place of one that was. */
  askedAt = Number.NEGATIVE_INFINITY;
  /** True if it has answered a request since. */
  hasServed = false;
  readonly openRequests = createOpenRequests();
  readonly questions = createServerQuestions();
  /** Streams of its own that stand, or are being opened. */
  streams = 0;
  /** Those that stand. */
  standing = 0;
  /** It said that it has none (405). */
  refusesStream = false;
  /** The stream that is open for questions of the server; undefined until a call needed it. */
  held: HeldForQuestions | undefined;
  /** The position in its own stream; undefined until an event had an id. */
  cursor: EventCursor | undefined;

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
  /** The last caller: the newest of several tokens is valid for longest. */
  caller: UpstreamCaller;
  /** Monotonic milliseconds. */
  usedAt: number;
  /** Resolves once the stream stands, or will not; undefined where nothing has to be waited for. */
  readonly opening: Promise<void> | undefined;
  /** An attempt to open the stream has come to something. */
  noteAttempt(): void;
}

/** The record by which any replica can go on with it. */
export const writeRecord = ({ id, protocolVersion, cookies }: ServerSession): string =>
  JSON.stringify({ id, protocolVersion, cookies: cookies?.toRecord() });

/** Names those who share a session: the requests of one client's session, or of one user and client. */
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

/** A notification about what goes on in the session, on whichever of its streams it comes; false for any other. */
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
    openRequests
      .list()
      .some(({ request }) => request.onElicitationComplete?.(change.elicitationId) === true)
  );
}

// The requests of one session that have no answer yet: what the server says elsewhere may belong to one of them.

export interface OpenRequest {
  /** Its progress token, too. */
  readonly id: number;
  readonly request: UpstreamRequest;
  /** Undefined until it is sent. */
  readonly deadline: Deadline | undefined;
}

/**
 * Places that are used again, and no Map: the tables that a Map leaves behind when many come and go keep what was in
 * them past several garbage collections, which took a tenth of all the time of a call.
 */
function createOpenRequests() {
  const places: (OpenRequest | undefined)[] = [];
  const free: number[] = [];
  let size = 0;

  return {
    get size() {
      return size;
    },
    /** Returns its place, by which it is removed. */
    add(open: OpenRequest) {
      const place = free.pop() ?? places.length;
      places[place] = open;
      size += 1;
      return place;
    },
    remove(place: number) {
      places[place] = undefined;
      free.push(place);
      size -= 1;
    },
    find: (token: number) => places.find((open) => open?.id === token),
    /** The newest first. */
    list: () => places.filter((open) => open !== undefined).sort((one, other) => other.id - one.id),
  };
}

/**
 * The requests that a question on the session's own stream may belong to, the newest first: all of one client, since the
 * stream does not say of which it is. Without sessions at the server it may be anybody's.
 */
export function listAskable(
  { sessionId, user }: UpstreamCaller,
  { id, openRequests }: ServerSession,
): readonly Askable[] {
  const askable = openRequests.list().filter(({ request }) => request.onRequest !== undefined);
  const isOneClient = sessionId !== undefined || user !== undefined || askable.length === 1;
  return id !== undefined && isOneClient ? askable : [];
}

// Reads from a refusal that a session is gone, so that the request was not run and may be sent once more; or that it may be gone.

/** True if a handshake failed by what the server answered: what failed on the way has a cause. */
export const isAnswered = (error: unknown): boolean =>
  error instanceof UpstreamError &&
  !(error instanceof CredentialError) &&
  error.cause === undefined &&
  (error.failure === 'unavailable' || error.failure === 'invalid');

/**
 * MCP "Session Management": 404 is the answer to a session that is gone. Some servers say 400 instead, with an error
 * that names the session and no request. Any other 400 may come from a call that has run.
 */
export const isSessionLost = ({ id }: ServerSession, outcome: CallOutcome): boolean =>
  id !== undefined &&
  outcome.kind === 'refused' &&
  (outcome.status === 404 ||
    (outcome.status === 400 &&
      namesNoRequest(outcome) &&
      SPEAKS_OF_SESSION.test(findError(outcome)?.message ?? '')));

const SPEAKS_OF_SESSION = /session|not initialized/i;

/**
 * True if the server may have lost the session, and not only refused this request: many servers do not answer 404 after a restart.
 * Nobody knows if such a request was carried out.
 */
export const mayBeLost = ({ id }: ServerSession, outcome: CallOutcome): boolean =>
  id !== undefined &&
  (outcome.kind === 'error'
    ? SPEAKS_OF_SESSION.test(outcome.error.message)
    : outcome.kind === 'refused' && outcome.status >= 400 && !OF_REQUEST.has(outcome.status));

/** Too long, too many: no server says so of a session. */
const OF_REQUEST: ReadonlySet<number> = new Set([413, 429]);

/** 2026-07-28: `HeaderMismatch`, `MissingRequiredClientCapability`, `UnsupportedProtocolVersion`. */
const ERA_CODES: readonly unknown[] = [-32020, -32021, -32022];

/** True if a server of the stateless era may have said it, which is then to be asked. */
export const isOfOtherEra = (outcome: CallOutcome): boolean =>
  outcome.kind === 'refused' &&
  [400, 404, 405].includes(outcome.status) &&
  (namesNoRequest(outcome) || ERA_CODES.includes(findError(outcome)?.code));

const namesNoRequest = ({ body }: Extract<CallOutcome, { kind: 'refused' }>) =>
  readEchoedNumber(body?.id) === undefined;
