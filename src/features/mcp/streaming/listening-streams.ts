// MCP "Streamable HTTP": streams that stay open for what a server has to say by itself.
import type { Clock } from '../../../core/clock.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import type { Reply } from '../../../core/message.ts';
import { EVENT_STREAM_HEADERS, sseEvent } from '../../../core/sse.ts';
import type { Outgoing } from '../protocol/json-rpc.ts';
import { createQueue } from './message-queue.ts';

export interface EventStream {
  readonly reply: Reply;
  /** Dropped where the client reads far slower than it is told. */
  say(message: Outgoing): void;
  end(): void;
}

export interface Opening {
  /** Whose it is; undefined without authentication. */
  readonly user: string | undefined;
  /** Called once, however the stream ends. */
  onEnd(): void;
  /** The last message, where it is not the client that leaves. */
  readonly farewell?: object;
}

export interface EventStreams {
  /**
   * @throws GatewayError `too_many_streams` for its user, or for the process.
   */
  open(opening: Opening): EventStream;
  /** Ends all: a process that stops must not wait for them. */
  close(): void;
}

/** Clients open the next one by themselves; with it token and session are checked again. */
const LIFETIME_MS = 300_000;

/** A stream holds a connection and hears of each change: what many clients of one user need. */
const MAX_PER_USER = 50;
const MAX_OPEN = 2000;

export function createEventStreams(clock: Clock): EventStreams {
  const open = new Map<() => void, string | undefined>();
  let isClosed = false;

  function checkRoom(user: string | undefined): void {
    const own = user === undefined ? 0 : [...open.values()].filter((one) => one === user).length;
    if (own < MAX_PER_USER && open.size < MAX_OPEN) return;
    fail('too_many_streams');
  }

  return {
    open({ user, onEnd, farewell }) {
      checkRoom(user);
      const queue = createQueue(end);
      const cancel = clock.after(LIFETIME_MS, end);
      open.set(end, user);
      // The process stops: the client hears so at once, and comes again elsewhere.
      if (isClosed) queueMicrotask(end);

      function end(): void {
        if (!open.delete(end)) return;
        cancel();
        onEnd();
        if (farewell !== undefined) queue.push(sseEvent(farewell));
        queue.end();
      }

      return {
        reply: { status: 200, headers: EVENT_STREAM_HEADERS, stream: queue.items },
        say(message) {
          if (!queue.isFull()) queue.push(sseEvent({ jsonrpc: '2.0', ...message }));
        },
        end,
      };
    },
    close() {
      isClosed = true;
      for (const end of open.keys()) end();
    },
  };
}
