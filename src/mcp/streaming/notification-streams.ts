// MCP "Streamable HTTP": streams that belong to no request, open for notifications: those of
// GET /mcp, and of subscriptions/listen.

import type { ReplyStream, UserContext } from '../../endpoint/message.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { EndedGrants } from '../../grants/ended-grants.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { toSseEvent } from '../../platform/sse.ts';
import type { OutgoingMessage } from '../../protocol/json-rpc.ts';
import { nameOwner } from '../../store/owner.ts';
import type { StreamResponse } from '../calls/outcome.ts';
import { createEventQueue } from './event-queue.ts';

export interface NotificationStream {
  readonly response: StreamResponse;
  /** Dropped where the client reads far slower than messages come. */
  send(message: OutgoingMessage): void;
  /** For what clients can do without: dropped long before, so that it is never why something else is dropped. */
  sendIfRoom(message: OutgoingMessage): void;
  end(): void;
}

export interface NotificationStreamOptions {
  /** Undefined without authentication. */
  readonly user: UserContext | undefined;
  /**
   * What it is for: begins to send, and returns what stops that, which is called once, however the stream ends. What it
   * throws ends the stream, too. What the stop throws is logged: it keeps no other stream from ending.
   */
  listen(stream: NotificationStream): () => void;
  /** Sent last, where it is not the client that leaves. */
  readonly lastMessage?: object;
  /** On which it is sent, in place of one that ends when its connection does; called with what ends it. */
  openChannel?(end: () => void): NotificationChannel;
}

export interface NotificationChannel {
  /** To be read once. */
  readonly items: ReplyStream;
  begin(): void;
  send(json: string, isNotification: true): void;
  /** Whether more waits for its reader than a slow one may keep in memory. */
  isFull(): boolean;
  /** Whether half of that would stay free with so many characters more. */
  hasRoomToSpare(characters: number): boolean;
  /** The process stops: who reads is to come again elsewhere. */
  disconnect(): void;
  close(): void;
}

export interface NotificationStreams {
  /**
   * @throws GatewayError `too_many_streams` for its user, or for the process; `token_revoked`; what `listen` throws.
   */
  open(options: NotificationStreamOptions): NotificationStream;
  /** Ends the connections of all: a process that stops must not wait for them. */
  disconnect(): void;
  /** Ends those, too, that were kept for clients that come back. */
  close(): void;
}

/** Clients open the next one by themselves; with it token and session are checked again. */
const LIFETIME_MS = 300_000;

/** A stream holds a connection and is sent each change: what many clients of one user need. */
const MAX_PER_USER = 50;
/** What each takes is measured (npm run bench -- memory --only streams). */
const MAX_OPEN = 10_000;
/** Of the connections: the rest are left for calls. */
const CONNECTIONS_PART = 0.9;

const countPlaces = (maxConnections: number): number =>
  maxConnections === 0
    ? MAX_OPEN
    : Math.min(MAX_OPEN, Math.floor(maxConnections * CONNECTIONS_PART));

export interface NotificationStreamsDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined where the gateway issues no tokens of its own. */
  readonly endedGrants: Pick<EndedGrants, 'listen' | 'hasEnded'> | undefined;
  /** Of the process; 0 for no limit. */
  readonly maxConnections: number;
}

export function createNotificationStreams(deps: NotificationStreamsDeps): NotificationStreams {
  const { clock, log, endedGrants } = deps;
  /** Those that are open, by what ends them. */
  const open = new Map<() => void, OpenStream>();
  /** How many of them each user has. */
  const counts = new Map<string, number>();
  const places = countPlaces(deps.maxConnections);
  let isClosed = false;

  endedGrants?.listen((grantId) => {
    for (const [end, { user }] of open) if (user?.grant?.id === grantId) end();
  });

  function checkRoom(user: UserContext | undefined): void {
    if (user?.grant !== undefined && endedGrants?.hasEnded(user.grant.id)) fail('token_revoked');
    const count = user === undefined ? 0 : (counts.get(nameOwner(user)) ?? 0);
    if (count < MAX_PER_USER && open.size < places) return;
    fail('too_many_streams');
  }

  function countStreams(user: UserContext | undefined, change: 1 | -1): void {
    if (user === undefined) return;
    const name = nameOwner(user);
    const count = (counts.get(name) ?? 0) + change;
    if (count === 0) counts.delete(name);
    else counts.set(name, count);
  }

  return {
    open({ user, listen, lastMessage, openChannel = createPlainChannel }) {
      checkRoom(user);
      const channel = openChannel(end);
      const cancelTimeout = clock.after(LIFETIME_MS, end);
      open.set(end, { user, channel });
      countStreams(user, 1);
      let stopListening = () => {};
      // The process stops: the client is told at once, and comes again elsewhere.
      if (isClosed) queueMicrotask(end);

      function end(): void {
        if (!open.delete(end)) return;
        countStreams(user, -1);
        cancelTimeout();
        try {
          stopListening();
        } catch (cause) {
          log.error('A stream has ended, but what it listened to could not be stopped.', { cause });
        }
        if (lastMessage !== undefined) channel.send(JSON.stringify(lastMessage), true);
        channel.close();
      }

      const toJson = (message: OutgoingMessage) => JSON.stringify({ jsonrpc: '2.0', ...message });

      const stream: NotificationStream = {
        response: { kind: 'stream', events: channel.items },
        send(message) {
          if (!channel.isFull()) channel.send(toJson(message), true);
        },
        sendIfRoom(message) {
          if (!channel.hasRoomToSpare(0)) return;
          const json = toJson(message);
          if (channel.hasRoomToSpare(json.length)) channel.send(json, true);
        },
        end,
      };
      try {
        stopListening = listen(stream);
        channel.begin();
      } catch (error) {
        end();
        throw error;
      }
      return stream;
    },
    disconnect() {
      isClosed = true;
      for (const { channel } of open.values()) channel.disconnect();
    },
    close() {
      for (const end of open.keys()) end();
    },
  };
}

interface OpenStream {
  readonly user: UserContext | undefined;
  readonly channel: NotificationChannel;
}

function createPlainChannel(end: () => void): NotificationChannel {
  const queue = createEventQueue(end);
  return {
    items: queue.items,
    begin() {},
    send: (json) => queue.push(toSseEvent(json)),
    isFull: () => queue.isFull(),
    hasRoomToSpare: (characters) => queue.hasRoomToSpare(characters),
    disconnect: end,
    close: () => queue.end(),
  };
}
