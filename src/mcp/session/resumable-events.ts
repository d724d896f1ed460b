// §15.1: events of a resumable stream: their text (WHATWG HTML §9.2), their ids, and how much of them is kept.

import { GatewayError } from '../../errors/gateway-error.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { RequestId } from '../protocol/json-rpc.ts';
import { renderResponse } from '../streaming/response-stream.ts';

export interface WrittenStream extends StreamId {
  /** The session's. */
  readonly protocolVersion: string;
}

/** An event as sent, with its id. */
export interface LoggedEvent {
  readonly text: string;
  /** Clients can do without a notification, but not without an answer or a server-initiated request. */
  readonly isNotification: boolean;
}

export interface StreamLog {
  /** Position of the first of `events`. */
  readonly firstPosition: number;
  readonly events: readonly LoggedEvent[];
  readonly hasEnded: boolean;
  /** Position of the last evicted answer or server-initiated request; 0 without any. */
  readonly lostPosition: number;
}

/** Milliseconds that a call continues for without its client, and its answer waits. */
export const KEPT_MS = 300_000;
/** Kept of one session. */
export const SESSION_EVENTS = 1000;
export const SESSION_BYTES = 1_048_576;

/** The reconnection time of clients. Two attempts of the official SDKs outlast the restart of a single gateway. */
const RETRY_MS = 2000;

/** The first revision whose clients accept an event without data. */
const PRIMED_SINCE = '2025-11-25';

/** The first revision whose events have ids. */
export const RESUMABLE_SINCE = '2025-03-26';

export const isPrimed = (protocolVersion: string): boolean => protocolVersion >= PRIMED_SINCE;

export const toEvent = (stream: StreamId, position: number | 'end', json: string): string =>
  `${ID}${writeEventId(stream, position)}\nevent: message\ndata: ${json}\n\n`;

/** Splits concatenated events. JSON has no empty lines. */
export const splitEvents = (text: string): readonly string[] => text.split(/(?<=\n\n)/);

/** Reads the id of an event. */
export const readIdOf = (event: string): EventId | undefined =>
  readEventId(event.slice(ID.length, event.indexOf('\n')));

const ID = 'id: ';

/** Reads the JSON of an event. */
export const readJson = (event: string): string =>
  event.slice(event.indexOf(DATA) + DATA.length, -2);

const DATA = '\ndata: ';

/**
 * The start of a connection: an event id to resume from, before the first message. Clients of older revisions would mistake an
 * event without data for a message: they are only sent the reconnection time.
 */
export const toPrimer = (stream: WrittenStream, position: number): string =>
  isPrimed(stream.protocolVersion)
    ? `id: ${writeEventId(stream, position)}\nretry: ${RETRY_MS}\ndata:\n\n`
    : `retry: ${RETRY_MS}\n\n`;

/** The events after the position; an error if an answer or a server-initiated request among them was evicted. */
export function toReplay(stream: WrittenStream, log: StreamLog, position: number): string {
  if (log.lostPosition > position) return toLoss(stream);
  const missing = log.firstPosition - 1 - position;
  const kept = log.events.slice(Math.max(0, -missing)).map(({ text }) => text);
  return missing > 0
    ? `: ${missing} notifications are not kept any more\n\n${kept.join('')}`
    : kept.join('');
}

/** The last event of a stream whose answer is lost: an error, so that the client does not wait until its timeout. */
export function toLoss(stream: WrittenStream, details?: string): string {
  const error = new GatewayError('stream_lost', details === undefined ? {} : { details });
  return toEvent(stream, 'end', renderResponse({ error }, stream.requestId ?? null).text);
}

// MCP "Resumability and Redelivery" (§15.1): event ids, which let a client say what it has received.

/** The part that all event ids of a stream share. */
interface StreamId {
  /** The name on the bus of the replica that has the stream. */
  readonly replica: string;
  /** Identifies the session: the id is not valid in another one. */
  readonly sessionTag: string;
  readonly name: string;
  /** The id of the answered request, if it is short: the error for a lost answer needs it. */
  readonly requestId: RequestId | undefined;
  /** The stream of the session (GET), which answers no request. */
  readonly isOfSession: boolean;
}

/** A parsed event id. To clients it is opaque. */
export interface EventId extends StreamId {
  /** Counts events from 0; `end` for the last event. */
  readonly position: number | 'end';
}

const MAX_TEXT = 64;

export const tagSession = (sessionId: string): string => hashSha256(sessionId).slice(0, 8);

/** Built for each event: a stored common part would be most of the memory of an idle stream. */
const writeEventId = (
  { replica, sessionTag, name, requestId, isOfSession }: StreamId,
  position: EventId['position'],
) =>
  `${replica}.${sessionTag}.${name}.${position}${isOfSession ? '.g' : writeRequestId(requestId)}`;

function writeRequestId(id: RequestId | undefined) {
  if (id === undefined) return '';
  if (typeof id === 'number') return `.n${id}`;
  return id.length > MAX_TEXT ? '' : `.s${Buffer.from(id).toString('base64url')}`;
}

const PATTERN =
  /^([0-9a-f-]{36})\.([\w-]{8})\.([0-9a-f]{12})\.(\d{1,9}|end)(?:\.(?:(g)|n([-+.\de]{1,30})|s([\w-]{0,400})))?$/;

/** Undefined for ids that this gateway has not written. */
export function readEventId(text: string): EventId | undefined {
  const [, replica, sessionTag, name, position, session, number, base64] = PATTERN.exec(text) ?? [];
  if (replica === undefined || sessionTag === undefined || name === undefined) return undefined;
  return {
    replica,
    sessionTag,
    name,
    position: position === 'end' ? position : Number(position),
    requestId: readRequestId(number, base64),
    isOfSession: session !== undefined,
  };
}

function readRequestId(number: string | undefined, base64: string | undefined) {
  if (number !== undefined) return Number.isFinite(Number(number)) ? Number(number) : undefined;
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64url').toString();
}
