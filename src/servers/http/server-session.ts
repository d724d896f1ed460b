// Session of the gateway at a server: its state in memory, and its record in the store.

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
import { nameOwner } from '../../store/keys.ts';
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
  /** Another replica may have opened it long ago, and the server may have lost it since. */
  readonly isFromStore: boolean;
  /** Sent with each of its requests to name it. */
  readonly headers: RequestHeaders;
  /** Undefined where none are kept. */
  readonly cookies: SessionCookies | undefined;
  /** The level that was requested last. */
  logLevel: LogSeverity | undefined;
  /** Monotonic milliseconds. */
  usedAt: number;
  storedAt: number;
  /** Time of the last probe of it, or of the session that it replaced. Monotonic milliseconds. */
  askedAt = Number.NEGATIVE_INFINITY;
  /** True if it has answered a request since then. */
  hasServed = false;
  readonly openRequests = createOpenRequests();
  readonly questions = createServerQuestions();
  /** Its GET streams, open or being opened. */
  streams = 0;
  /** The open ones. */
  standing = 0;
  /** The server has no such streams (405). */
  refusesStream = false;
  /** The stream that is held open for questions of the server; undefined until a call needs it. */
  held: HeldForQuestions | undefined;
  /** The position in its stream; undefined until an event has an id. */
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
  /** The last caller: the newest token is valid for longest. */
  caller: UpstreamCaller;
  /** Monotonic milliseconds. */
  usedAt: number;
  /** Resolves once the stream is open, or cannot be; undefined where no call has to wait. */
  readonly opening: Promise<void> | undefined;
  /** An attempt to open the stream has ended. */
  noteAttempt(): void;
}

/** Writes the record by which any replica can continue the session. */
export const writeRecord = ({ id, protocolVersion, cookies }: ServerSession): string =>
  JSON.stringify({ id, protocolVersion, cookies: cookies?.toRecord() });

/** Names the callers that share a session: those of one client's session, or of one user and client. */
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
    openRequests
      .list()
      .some(({ request }) => request.onElicitationComplete?.(change.elicitationId) === true)
  );
}

// Requests in flight of a session: messages of the server on other streams may belong to one of them.

interface OpenRequest {
  /** Its progress token, too. */
  readonly id: number;
  readonly request: UpstreamRequest;
  /** Undefined while it is not in flight. */
  readonly deadline: Deadline | undefined;
}

/**
 * An array whose places are reused, and no Map: the tables that a Map leaves behind when many entries come and go keep the entries
 * past several garbage collections, which took a tenth of the time of a call.
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
 * Lists the requests that a question on the session's GET stream may belong to, the newest first: all of one client, since the
 * stream does not name the request. Without sessions at the server it may be any client's.
 */
export function listAskable(
  { sessionId, user }: UpstreamCaller,
  { id, openRequests }: ServerSession,
): readonly Askable[] {
  const askable = openRequests.list().filter(({ request }) => request.onRequest !== undefined);
  const isOneClient = sessionId !== undefined || user !== undefined || askable.length === 1;
  return id !== undefined && isOneClient ? askable : [];
}

// Decides by a refusal whether a session is lost, so that the request was not run and may be sent again; or may be lost.

/** True if a handshake failed by an answer of the server: a failure of the connection has a cause. */
export const isAnswered = (error: unknown): boolean =>
  error instanceof UpstreamError &&
  !(error instanceof CredentialError) &&
  error.cause === undefined &&
  (error.failure === 'unavailable' || error.failure === 'invalid');

/**
 * MCP "Session Management": 404 is the answer to a session that is lost. Some servers answer 400 instead, with an error
 * that names the session and no request. Any other 400 may be of a call that has run.
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
 * Such a request may have been carried out.
 */
export const mayBeLost = ({ id }: ServerSession, outcome: CallOutcome): boolean =>
  id !== undefined &&
  (outcome.kind === 'error'
    ? SPEAKS_OF_SESSION.test(outcome.error.message)
    : outcome.kind === 'refused' && outcome.status >= 400 && !OF_REQUEST.has(outcome.status));

/** Too long, too many: never about the session. */
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
