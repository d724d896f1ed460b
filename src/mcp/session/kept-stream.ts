// §15.1: records of the event store: resumable streams, and the accounts of sessions and users.

import { type Link, LinkedList } from '../../platform/bounded-map.ts';
import type { RequestId } from '../protocol/json-rpc.ts';
import type { EventQueue } from '../streaming/event-queue.ts';
import {
  type LoggedEvent,
  type StreamLog,
  tagSession,
  type WrittenStream,
} from './resumable-events.ts';

/** A stream and its events. Times are milliseconds of the monotonic clock. */
export class KeptStream implements WrittenStream {
  readonly session: SessionAccount;
  readonly sessionId: string;
  readonly sessionTag: string;
  readonly protocolVersion: string;
  /** The user of the session, as `nameOwner` has it; undefined without authentication. */
  readonly user: string | undefined;
  readonly name: string;
  /** The replica that holds it. */
  readonly replica: string;
  readonly requestId: RequestId | undefined;
  readonly isOfSession: boolean;
  readonly startedAt: number;
  readonly events: LoggedEvent[];
  firstPosition = 1;
  lostPosition = 0;
  endedAt: number | undefined = undefined;
  /** Time of the disconnect; undefined while the client reads. */
  brokenAt: number | undefined = undefined;
  /** The events on their way to the connection. */
  queue: EventQueue | undefined = undefined;
  /** Sent as one piece with the next event: the start of the connection. */
  unsent = '';
  /** Its links in the lists of ended streams: of its session, its user, and all. */
  places: readonly Link<KeptStream>[] = NO_PLACES;
  isForgotten = false;
  /** The replica that reads it instead of this one. */
  readBy: string | undefined = undefined;
  /** Bytes in the store. */
  storedBytes = 0;
  /** True while the store lacks some of it. */
  isUnsaved = true;
  saving: Promise<SaveResult> | undefined = undefined;
  abandon: (() => void) | undefined;

  constructor(
    session: SessionAccount,
    stream: Pick<
      KeptStream,
      'name' | 'replica' | 'requestId' | 'isOfSession' | 'startedAt' | 'events' | 'abandon'
    >,
  ) {
    this.session = session;
    this.sessionId = session.sessionId;
    this.sessionTag = session.tag;
    this.protocolVersion = session.protocolVersion;
    this.user = session.user.name;
    this.name = stream.name;
    this.replica = stream.replica;
    this.requestId = stream.requestId;
    this.isOfSession = stream.isOfSession;
    this.startedAt = stream.startedAt;
    this.events = stream.events;
    this.abandon = stream.abandon;
  }

  toLog(): StreamLog {
    const { firstPosition, events, endedAt, lostPosition } = this;
    return { firstPosition, events, hasEnded: endedAt !== undefined, lostPosition };
  }
}

const NO_PLACES: readonly Link<KeptStream>[] = [];

export type SaveResult = 'saved' | 'no_room' | 'failed';

/** The share of a session, of a user, or of all. */
export class Account {
  bytes = 0;
  /** Ended streams, oldest first: the order of eviction. */
  readonly finished = new LinkedList<KeptStream>();
}

export class UserAccount extends Account {
  /** As `nameOwner` has it. Without authentication each session is a separate unnamed user. */
  readonly name: string | undefined;
  /** The number of its sessions in the store. */
  sessions = 0;
  /** Bytes of its short streams. */
  shortBytes = 0;

  constructor(name: string | undefined) {
    super();
    this.name = name;
  }
}

export class SessionAccount extends Account {
  readonly sessionId: string;
  readonly tag: string;
  readonly protocolVersion: string;
  readonly user: UserAccount;
  events = 0;
  /** Not a Map: one that is filled and emptied repeatedly leaves old tables behind, which keep their contents alive. */
  streams: KeptStream[] = [];
  /** The count of its short streams, and the number of the newest. */
  shortStreams = 0;
  newestShort = -1;
  /** The session has ended: none of its streams can be resumed. */
  isOver = false;

  constructor(sessionId: string, protocolVersion: string, user: UserAccount) {
    super();
    this.sessionId = sessionId;
    this.tag = tagSession(sessionId);
    this.protocolVersion = protocolVersion;
    this.user = user;
  }
}
