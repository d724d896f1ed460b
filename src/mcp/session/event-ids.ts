// MCP "Resumability and Redelivery" (§15.1): the ids of events, by which a client says what it has got when its connection
// broke.

import { hashSha256 } from '../../platform/ids.ts';
import type { RequestId } from '../../protocol/json-rpc.ts';

/** What all ids of a stream say. */
export interface StreamId {
  /** The replica that has the stream, as it is called on the bus. */
  readonly replica: string;
  /** Of whose session it is: in another one it is no id. */
  readonly sessionTag: string;
  readonly name: string;
  /** Of the call that the stream answers, where it is short: so that it can be told when its answer is lost. */
  readonly requestId: RequestId | undefined;
  /** It is the stream of the session (GET), which answers nothing. */
  readonly isOfSession: boolean;
}

/** What an id says. Clients know it as a text without meaning. */
export interface EventId extends StreamId {
  /** Of the event in its stream, from 0 on; `end` is that of the last one, after which nothing is left to be sent. */
  readonly position: number | 'end';
}

const MAX_TEXT = 64;

export const tagSession = (sessionId: string): string => hashSha256(sessionId).slice(0, 8);

/** Written anew for each event: what they have in common would take more memory than all else of a silent stream here. */
export const writeEventId = (
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
