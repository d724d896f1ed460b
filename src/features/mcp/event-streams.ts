// MCP "Streamable HTTP": streams that stay open for what a server has to say by itself.
import type { Clock } from '../../core/clock.ts';
import { EVENT_STREAM_HEADERS, sseEvent } from '../../core/event-stream.ts';
import type { Reply } from '../../core/message.ts';
import type { Outgoing } from './json-rpc.ts';
import { createQueue } from './queue.ts';

export interface EventStream {
  readonly reply: Reply;
  /** Dropped where the client reads far slower than it is told. */
  say(message: Outgoing): void;
  end(): void;
}

export interface EventStreams {
  /**
   * `onEnd` is called once, however the stream ends. `farewell` is its last message, where it is
   * not the client that leaves.
   */
  open(onEnd: () => void, farewell?: object): EventStream;
  /** Ends all: a process that stops must not wait for them. */
  close(): void;
}

/** Clients open the next one by themselves; with it token and session are checked again. */
const LIFETIME_MS = 300_000;

const MAX_WAITING = 1000;

export function createEventStreams(clock: Clock): EventStreams {
  const ends = new Set<() => void>();

  return {
    open(onEnd, farewell) {
      const queue = createQueue<string>(end);
      const cancel = clock.after(LIFETIME_MS, end);
      ends.add(end);

      function end(): void {
        if (!ends.delete(end)) return;
        cancel();
        onEnd();
        if (farewell !== undefined) queue.push(sseEvent(farewell));
        queue.end();
      }

      return {
        reply: { status: 200, headers: EVENT_STREAM_HEADERS, stream: queue.items },
        say(message) {
          if (queue.size() < MAX_WAITING) queue.push(sseEvent({ jsonrpc: '2.0', ...message }));
        },
        end,
      };
    },
    close() {
      for (const end of ends) end();
    },
  };
}
