// MCP "Streamable HTTP": streams that belong to no request, open for notifications: those of
// GET /mcp, and of subscriptions/listen.

import type { UserContext } from '../../endpoint/message.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { EndedGrants } from '../../grants/ended-grants.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { toSseEvent } from '../../platform/sse.ts';
import type { OutgoingMessage } from '../../protocol/json-rpc.ts';
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
}

export interface NotificationStreams {
  /**
   * @throws GatewayError `too_many_streams` for its user, or for the process; `token_revoked`; what `listen` throws.
   */
  open(options: NotificationStreamOptions): NotificationStream;
  /** Ends all: a process that stops must not wait for them. */
  close(): void;
}

/** Clients open the next one by themselves; with it token and session are checked again. */
const LIFETIME_MS = 300_000;

/** A stream holds a connection and is sent each change: what many clients of one user need. */
const MAX_PER_USER = 50;
const MAX_OPEN = 2000;

export interface NotificationStreamsDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined where the gateway issues no tokens of its own. */
  readonly endedGrants: Pick<EndedGrants, 'listen' | 'hasEnded'> | undefined;
}

export function createNotificationStreams(deps: NotificationStreamsDeps): NotificationStreams {
  const { clock, log, endedGrants } = deps;
  /** The users of open streams, by what ends the stream. */
  const users = new Map<() => void, UserContext | undefined>();
  let isClosed = false;

  endedGrants?.listen((grantId) => {
    for (const [end, user] of users) if (user?.grant?.id === grantId) end();
  });

  function checkRoom(user: UserContext | undefined): void {
    if (user?.grant !== undefined && endedGrants?.hasEnded(user.grant.id)) fail('token_revoked');
    const count =
      user === undefined
        ? 0
        : [...users.values()].filter(
            (other) => other?.sub === user.sub && other.issuer === user.issuer,
          ).length;
    if (count < MAX_PER_USER && users.size < MAX_OPEN) return;
    fail('too_many_streams');
  }

  return {
    open({ user, listen, lastMessage }) {
      checkRoom(user);
      const queue = createEventQueue(end);
      const cancelTimeout = clock.after(LIFETIME_MS, end);
      users.set(end, user);
      let stopListening = () => {};
      // The process stops: the client is told at once, and comes again elsewhere.
      if (isClosed) queueMicrotask(end);

      function end(): void {
        if (!users.delete(end)) return;
        cancelTimeout();
        try {
          stopListening();
        } catch (cause) {
          log.error('A stream has ended, but what it listened to could not be stopped.', { cause });
        }
        if (lastMessage !== undefined) queue.push(toSseEvent(JSON.stringify(lastMessage)));
        queue.end();
      }

      const toEvent = (message: OutgoingMessage) =>
        toSseEvent(JSON.stringify({ jsonrpc: '2.0', ...message }));

      const stream: NotificationStream = {
        response: { kind: 'stream', events: queue.items },
        send(message) {
          if (queue.isFull()) return;
          queue.push(toEvent(message));
        },
        sendIfRoom(message) {
          if (!queue.hasRoomToSpare(0)) return;
          const event = toEvent(message);
          if (queue.hasRoomToSpare(event.length)) queue.push(event);
        },
        end,
      };
      try {
        stopListening = listen(stream);
      } catch (error) {
        end();
        throw error;
      }
      return stream;
    },
    close() {
      isClosed = true;
      for (const end of users.keys()) end();
    },
  };
}
