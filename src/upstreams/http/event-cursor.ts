// MCP "Resumability and Redelivery": how far a stream of a server has been read, and when the gateway may come back to it.

export interface EventCursor {
  /** Notes an event; false where it is among those that are remembered: a server may send more than it was asked for. */
  take(id: string): boolean;
  noteRetry(ms: number): void;
  /** By which the server knows where to go on; undefined where it cannot. */
  lastId(): string | undefined;
  /** Milliseconds that the server wants to be left alone for; undefined where it did not say. */
  retryMs(): number | undefined;
}

/** What a header can carry, and no more than is worth keeping for each call. */
const USABLE_ID = /^[\x21-\x7E](?:[\x20-\x7E]{0,510}[\x21-\x7E])?$/;
/** A server that wants less would be asked without end. */
const MIN_RETRY_MS = 500;
/** Events are hardly kept for longer. */
const MAX_RETRY_MS = 300_000;

export function createEventCursor(rememberedIds: number): EventCursor {
  const seen = new Set<string>();
  let last: string | undefined;
  let retry: number | undefined;

  return {
    take(given) {
      // The server takes the position back, or names one that cannot be sent.
      if (!USABLE_ID.test(given)) {
        last = undefined;
        return true;
      }
      if (seen.has(given)) return false;
      // A piece of a string keeps all of it, here the whole chunk that was received.
      last = Buffer.from(given, 'latin1').toString('latin1');
      seen.add(last);
      const [oldest] = seen;
      if (seen.size > rememberedIds && oldest !== undefined) seen.delete(oldest);
      return true;
    },
    noteRetry(ms) {
      retry = Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, ms));
    },
    lastId: () => last,
    retryMs: () => retry,
  };
}
