// A session of the gateway at a server: what is kept of it in memory, and in the store.
import { type JsonObject, parseObject } from '../../platform/json.ts';
import type { LogSeverity } from '../../protocol/methods.ts';
import { nameOwner } from '../../store/owner.ts';
import type { HeaderList } from '../messages/envelope.ts';
import { readChange } from '../messages/route-notification.ts';
import type { ServerNotification } from '../messages/server-message.ts';
import { createServerQuestions, type ServerQuestions } from '../transport/server-questions.ts';
import {
  CredentialError,
  nameOwnSession,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
} from '../upstream.ts';
import type { EventCursor } from './event-cursor.ts';
import { type CallOutcome, findError, type Refusal } from './server-call.ts';
import type { OpenCookies, SessionCookies } from './session-cookies.ts';

export interface ServerSession {
  /** Undefined where the server keeps no sessions. */
  readonly id: string | undefined;
  readonly protocolVersion: string;
  /** Another replica may have opened it, long ago: the server may have lost it since. */
  readonly isFromStore: boolean;
  /** By which each of its requests names it. */
  readonly headers: HeaderList;
  /** Undefined where none are kept. */
  readonly cookies: SessionCookies | undefined;
  /** The level that was last asked for. */
  logLevel: LogSeverity | undefined;
  /** Monotonic milliseconds. */
  usedAt: number;
  storedAt: number;
  readonly openRequests: OpenRequests;
  readonly questions: ServerQuestions;
  /** Streams of its own that stand. */
  streams: number;
  /** How far its own stream was read; undefined until an event had an id. */
  cursor: EventCursor | undefined;
}

export function createServerSession(
  id: string | undefined,
  protocolVersion: string,
  now: number,
  isFromStore = false,
  cookies?: SessionCookies,
): ServerSession {
  const headers = ['mcp-protocol-version', protocolVersion];
  if (id !== undefined) headers.push('mcp-session-id', id);
  return {
    id,
    protocolVersion,
    isFromStore,
    headers,
    cookies,
    logLevel: undefined,
    usedAt: now,
    storedAt: now,
    openRequests: createOpenRequests(),
    questions: createServerQuestions(),
    streams: 0,
    cursor: undefined,
  };
}

/** What any replica needs to go on with it. */
export const toRecord = ({ id, protocolVersion, cookies }: ServerSession): JsonObject => ({
  id,
  protocolVersion,
  cookies: cookies?.toRecord(),
});

export function fromRecord(
  text: string,
  now: number,
  openCookies: OpenCookies,
): ServerSession | undefined {
  const { id, protocolVersion, cookies } = parseObject(text) ?? {};
  return typeof id === 'string' && typeof protocolVersion === 'string'
    ? createServerSession(id, protocolVersion, now, true, openCookies(cookies))
    : undefined;
}

/** MCP "Session Management": visible ASCII; anything else could not be sent back. */
export const readSessionId = (value: string | string[] | undefined): string | undefined =>
  typeof value === 'string' && /^[\x21-\x7E]{1,1024}$/.test(value) ? value : undefined;

/** Who shares a session: the requests of one client's session, or of one user and client. */
export function nameSharer(caller: UpstreamCaller): string {
  const { sessionId, user, clientId, capabilities, connectionId } = caller;
  if (sessionId !== undefined && connectionId === undefined) return sessionId;
  const ownSession = nameOwnSession(caller);
  if (ownSession !== undefined) return ownSession;
  const { elicitation, elicitationUrl = false, sampling, roots, extensions } = capabilities;
  const declared = [elicitation, elicitationUrl, sampling, roots].map(Number).join('');
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
    openRequests.some((request) => request.onElicitationComplete?.(change.elicitationId) === true)
  );
}

// The requests of one session that have no answer yet: what the server says elsewhere may belong to one of them.

interface OpenRequests {
  readonly size: number;
  /** Returns its place, by which it is removed. `token` is its progress token. */
  add(token: number, request: UpstreamRequest): number;
  remove(place: number): void;
  find(token: number): UpstreamRequest | undefined;
  /** Whether one of them says so. */
  some(test: (request: UpstreamRequest) => boolean): boolean;
  /** The request that anything must belong to, where there is only one. */
  findOnly(): UpstreamRequest | undefined;
}

interface OpenRequest {
  readonly token: number;
  readonly request: UpstreamRequest;
}

/**
 * Places that are used again, and no Map: the tables that a Map leaves behind when many come and go keep what was in
 * them past several garbage collections, which took a tenth of all the time of a call.
 */
function createOpenRequests(): OpenRequests {
  const places: (OpenRequest | undefined)[] = [];
  const free: number[] = [];
  let size = 0;

  return {
    get size() {
      return size;
    },
    add(token, request) {
      const place = free.pop() ?? places.length;
      places[place] = { token, request };
      size += 1;
      return place;
    },
    remove(place) {
      places[place] = undefined;
      free.push(place);
      size -= 1;
    },
    find: (token) => places.find((open) => open?.token === token)?.request,
    some: (test) => places.some((open) => open !== undefined && test(open.request)),
    findOnly: () => (size === 1 ? places.find((open) => open !== undefined)?.request : undefined),
  };
}

// Which refusals say that a request of the session era was not run, so that it may be sent once more.

/** Whether a handshake failed by what the server answered: what failed on the way has a cause. */
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
      /session|not initialized/i.test(findError(outcome)?.message ?? '')));

/** 2026-07-28: `HeaderMismatch`, `MissingRequiredClientCapability`, `UnsupportedProtocolVersion`. */
const ERA_CODES: readonly unknown[] = [-32020, -32021, -32022];

/** Whether a server of the stateless era may have said it, which is then to be asked. */
export const isOfOtherEra = (outcome: CallOutcome): boolean =>
  outcome.kind === 'refused' &&
  [400, 404, 405].includes(outcome.status) &&
  (namesNoRequest(outcome) || ERA_CODES.includes(findError(outcome)?.code));

const namesNoRequest = ({ body }: Refusal): boolean => typeof body?.id !== 'number';
