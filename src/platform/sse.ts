// Server-sent events, as the WHATWG HTML standard §9.2 writes them.

/**
 * Headers of an event stream: kept by no cache, changed by no proxy, and (nginx and its like) passed
 * on as it comes instead of being collected first.
 */
export const EVENT_STREAM_HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
} as const;

/** A comment, which every reader skips. */
export const KEEP_ALIVE = ': keep-alive\n\n';

/** One event with JSON text. One data line is enough: JSON has no raw ends of line. */
export const toSseEvent = (json: string): string => `event: message\ndata: ${json}\n\n`;
