// §15.1: how the events of a stream that can be resumed are written (WHATWG HTML §9.2).

import { GatewayError } from '../../errors/gateway-error.ts';
import { renderResponse } from '../calls/outcome.ts';
import { type EventId, readEventId, type StreamId, writeEventId } from './event-ids.ts';
import type { StreamLog } from './stored-streams.ts';

export interface WrittenStream extends StreamId {
  /** Of the session. */
  readonly protocolVersion: string;
}

/** For clients: when to come back. Two tries of the official SDKs outlast the restart of a gateway that is alone. */
const RETRY_MS = 2000;

/** The first revision whose clients take an event without data. */
const PRIMED_SINCE = '2025-11-25';

/** The first revision whose streams have ids. */
const RESUMABLE_SINCE = '2025-03-26';

export const isResumable = (protocolVersion: string): boolean => protocolVersion >= RESUMABLE_SINCE;

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
 * What a connection begins with: an id to come back with, before there is anything to say. Clients of older revisions
 * would take an event without data for a message: they are told when to come back, and nothing else.
 */
export const toPrimer = (stream: WrittenStream, position: number): string =>
  isPrimed(stream.protocolVersion)
    ? `id: ${writeEventId(stream, position)}\nretry: ${RETRY_MS}\ndata:\n\n`
    : `retry: ${RETRY_MS}\n\n`;

/** What came after the position; where an answer or a question among it is lost, that. */
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
