// §15.1: how the events of a stream that can be resumed are written (WHATWG HTML §9.2).

import { GatewayError } from '../../errors/gateway-error.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { RequestId } from '../protocol/json-rpc.ts';
import { renderResponse } from '../streaming/response-stream.ts';

export interface WrittenStream extends StreamId {
  /** The session's. */
  readonly protocolVersion: string;
}

/** An event as it is sent, id and all. */
export interface LoggedEvent {
  readonly text: string;
  /** A notification: a client can do without it, but not without an answer or a question. */
  readonly isNotification: boolean;
}

export interface StreamLog {
  /** Position of the first of `events`. */
  readonly firstPosition: number;
  readonly events: readonly LoggedEvent[];
  readonly hasEnded: boolean;
  /** Position of the last answer or question that fell out; 0 where none did. */
  readonly lostPosition: number;
}

/** For clients: when to come back. Two tries of the official SDKs outlast the restart of a gateway that is alone. */
const RETRY_MS = 2000;

/** The first revision whose clients take an event without data. */
const PRIMED_SINCE = '2025-11-25';

/** The first revision whose streams have ids. */
export const RESUMABLE_SINCE = '2025-03-26';

export const isPrimed = (protocolVersion: string): boolean => protocolVersion >= PRIMED_SINCE;

export const toEvent = (stream: StreamId, position: number | 'end', json: string): string =>
  `${ID}${writeEventId(stream, position)}\nevent: message\ndata: ${json}\n\n`;

/** Events as they were sent, one after another, each by itself. JSON has no empty lines. */
export const splitEvents = (text: string): readonly string[] => text.split(/(?<=\n\n)/);

/** The id of such an event. */
export const readIdOf = (event: string): EventId | undefined =>
  readEventId(event.slice(ID.length, event.indexOf('\n')));

const ID = 'id: ';

/** The JSON of such an event. */
export const readJson = (event: string): string =>
  event.slice(event.indexOf(DATA) + DATA.length, -2);

const DATA = '\ndata: ';

/**
 * Begins a connection: an id to come back with, before there is anything to say. Clients of older revisions
 * would take an event without data for a message: they are told when to come back, and nothing else.
 */
export const toPrimer = (stream: WrittenStream, position: number): string =>
  isPrimed(stream.protocolVersion)
    ? `id: ${writeEventId(stream, position)}\nretry: ${RETRY_MS}\ndata:\n\n`
    : `retry: ${RETRY_MS}\n\n`;

/** Events after the position; where an answer or a question among them is lost, the loss. */
export function toReplay(stream: WrittenStream, log: StreamLog, position: number): string {
  if (log.lostPosition > position) return toLoss(stream);
  const missing = log.firstPosition - 1 - position;
  const kept = log.events.slice(Math.max(0, -missing)).map(({ text }) => text);
  return missing > 0
    ? `: ${missing} notifications are not kept any more\n\n${kept.join('')}`
    : kept.join('');
}

/** Ends the stream. Its client hears of it as of the answer, and need not wait until its time is over. */
export function toLoss(stream: WrittenStream, details?: string): string {
  const error = new GatewayError('stream_lost', details === undefined ? {} : { details });
  return toEvent(stream, 'end', renderResponse({ error }, stream.requestId ?? null).text);
}

// MCP "Resumability and Redelivery" (§15.1): the ids of events, by which a client says what it has got when its connection
// broke.

/** Said by all ids of a stream. */
interface StreamId {
  /** The replica that has the stream, as it is called on the bus. */
  readonly replica: string;
  /** Identifies the session: in another one it is no id. */
  readonly sessionTag: string;
  readonly name: string;
  /** The id of the call that the stream answers, where it is short: so that it can be told when its answer is lost. */
  readonly requestId: RequestId | undefined;
  /** It is the stream of the session (GET), which answers nothing. */
  readonly isOfSession: boolean;
}

/** The meaning of an id. Clients know it as a text without meaning. */
export interface EventId extends StreamId {
  /** Counts events of the stream from 0 on; `end` is that of the last one, after which nothing is left to be sent. */
  readonly position: number | 'end';
}

const MAX_TEXT = 64;

export const tagSession = (sessionId: string): string => hashSha256(sessionId).slice(0, 8);

/** Written anew for each event: what they have in common would take more memory than all else of a silent stream here. */
const writeEventId = (
  { replica, sessionTag, name, requestId, isOfSession }: StreamId,
  position: EventId['position'],
): string =>
  `${replica}.${sessionTag}.${name}.${position}${isOfSession ? '.g' : writeRequestId(requestId)}`;

function writeRequestId(id: RequestId | undefined): string {
  if (id === undefined) return '';
  if (typeof id === 'number') return `.n${id}`;
  return id.length > MAX_TEXT ? '' : `.s${Buffer.from(id).toString('base64url')}`;
}

const PATTERN =
  /^([0-9a-f-]{36})\.([\w-]{8})\.([0-9a-f]{12})\.(\d{1,9}|end)(?:\.(?:(g)|n([-+.\de]{1,30})|s([\w-]{0,400})))?$/;

/** Undefined for what this gateway has not written. */
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
