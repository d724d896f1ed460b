// §15.1: one stream whose events are kept for a client that comes back.

import type { RequestId } from '../protocol/json-rpc.ts';
import type { EventQueue } from '../streaming/response-stream.ts';
import type { LoggedEvent, StreamLog, StreamName, WrittenStream } from './resumable-events.ts';

interface NewStream {
  readonly name: string;
  /** The replica that has it. */
  readonly replica: string;
  readonly requestId: RequestId | undefined;
  readonly isOfSession: boolean;
  readonly startedAt: number;
  readonly events: LoggedEvent[];
  readonly abandon: (() => void) | undefined;
}

/** As it is known while it is kept. Times are milliseconds of the monotonic clock. */
export class KeptStream implements StreamName, WrittenStream {
  readonly session: SessionAccount;
  readonly sessionId: string;
  readonly sessionTag: string;
  readonly protocolVersion: string;
  readonly user: string | undefined;
  readonly name: string;
  readonly replica: string;
  readonly requestId: RequestId | undefined;
  readonly isOfSession: boolean;
  readonly startedAt: number;
  readonly events: LoggedEvent[];
  firstPosition = 1;
  lostPosition = 0;
  endedAt: number | undefined;
  /** Since when nobody reads; undefined while somebody does. */
  brokenAt: number | undefined;
  /** Belongs to the connection on which it is sent. */
  queue: EventQueue | undefined;
  /** Goes before the next event: what the connection begins with, as one piece with it. */
  unsent = '';
  /** It was given up already. */
  isForgotten = false;
  /** The replica at which it is read in place of here. */
  readBy: string | undefined;
  /** Bytes in the store. */
  storedBytes = 0;
  /** There is something that was not written yet. */
  isUnsaved = true;
  saving: Promise<SaveResult> | undefined;
  abandon: (() => void) | undefined;

  constructor(session: SessionAccount, stream: NewStream) {
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

export type SaveResult = 'saved' | 'no_room' | 'failed';

/** A session, a user, or all: who holds how much. */
export interface Account {
  bytes: number;
  /** Those that have ended. */
  readonly finished: OldestFirst;
}

export interface UserAccount extends Account {
  /** As `nameOwner` has it. Without authentication a session is a user of its own, without a name. */
  readonly name: string | undefined;
  /** The number of its sessions that are kept. */
  sessions: number;
  /** Counts what is kept as bytes (short-streams.ts). */
  shortBytes: number;
}

export interface SessionAccount extends Account {
  readonly sessionId: string;
  readonly tag: string;
  readonly protocolVersion: string;
  readonly user: UserAccount;
  events: number;
  /** Not a Map: one that is filled and emptied again and again leaves old tables behind, which keep what was in them. */
  streams: KeptStream[];
  /** The count of those that are kept as bytes, and the number of the newest (short-streams.ts). */
  shortStreams: number;
  newestShort: number;
  /** It has ended: nobody may come back. */
  isOver: boolean;
}

/**
 * Those that have to be given up in the order in which they ended. Not a Set: from one that loses its first members again and
 * again, finding the first takes ever longer.
 */
export class OldestFirst {
  private items: KeptStream[] = [];
  private head = 0;
  /** Those that were not given up. */
  private live = 0;

  get isEmpty(): boolean {
    return this.live === 0;
  }

  add(stream: KeptStream): void {
    if (this.items.length > 2 * this.live + SLACK) this.compact();
    this.items.push(stream);
    this.live += 1;
  }

  /** To be called when one of its items was given up. */
  noteForgotten(): void {
    this.live -= 1;
  }

  first(): KeptStream | undefined {
    while (this.items[this.head]?.isForgotten) this.head += 1;
    return this.items[this.head];
  }

  private compact(): void {
    this.items = this.items.filter(({ isForgotten }) => !isForgotten);
    this.head = 0;
  }
}

const SLACK = 32;
