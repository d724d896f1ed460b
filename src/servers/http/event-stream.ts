// Server-sent events (WHATWG HTML §9.2) of a server: splits a stream into messages, each of which is a JSON value.
import { StringDecoder } from 'node:string_decoder';
import { createParser } from 'eventsource-parser';
import { createGrowingBuffer } from '../../platform/memory/user-budgets.ts';
import { dropByteOrderMark } from '../../platform/text.ts';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** The problem with an answer or an event that is too long. */
export const describeExcess = (maxBytes: number): string =>
  `it answered more than ${maxBytes} bytes (MAX_UPSTREAM_BYTES)`;

interface EventReader {
  /** Data of an event, as text or as the received bytes. */
  onEventData(data: string | Buffer): void;
  onNamedEvent(name: string, data: string): void;
  /** A comment, an unknown field, an event without data; or endless lines that form no event. */
  onNoise(count: number): void;
  /** Called when an event has an id, or the server says when to reconnect; undefined if the stream is not resumed. */
  openCursor(): EventCursor | undefined;
}

/** Reads events from chunks of any size. `isHead`: this is the start of the stream. */
export function createEventSplitter(maxBytes: number, reader: EventReader, isHead: boolean) {
  const decoder = new StringDecoder('utf8');
  let hadReturn = false;
  /** The line that has begun. */
  const held = createGrowingBuffer();
  /** Approximate size of the current event's lines so far, in bytes. */
  let heldOfEvent = 0;
  let commentBytes = 0;
  let hadLineEnd = false;
  let mayBeMark = isHead;
  /** Bytes that no message or comment accounts for. */
  let lines = 0;
  let problem: string | undefined;

  const parser = createParser({
    // All lines of an event, which may come with comments between them.
    maxBufferSize: maxBytes,
    onError({ type }) {
      if (type === 'max-buffer-size-exceeded') problem ??= describeExcess(maxBytes);
      else reader.onNoise(1);
    },
    onEvent({ event = 'message', id, data }) {
      lines -= LINES_A_MESSAGE;
      const isKnown = id !== undefined && reader.openCursor()?.take(id) === false;
      if (isKnown) reader.onNoise(1);
      else if (event !== 'message') reader.onNamedEvent(event, data);
      // The first event of a stream may be empty (MCP 2025-11-25, resuming): it only has an id.
      else if (data === '') reader.onNoise(1);
      else reader.onEventData(data);
    },
    onRetry: (ms) => reader.openCursor()?.noteRetry(ms),
    onComment(comment) {
      lines -= LINES_A_MESSAGE;
      commentBytes += comment.length + COMMENT_BYTES;
      reader.onNoise(1);
    },
  });

  /** All line breaks as LF: if there is a CR, the parser searches all remaining text for the end of each line. */
  function toLineFeeds(text: string) {
    const rest = hadReturn && text.startsWith('\n') ? text.slice(1) : text;
    if (text !== '') hadReturn = text.endsWith('\r');
    return rest.includes('\r') ? rest.replace(/\r\n?/g, '\n') : rest;
  }

  function feed(text: string) {
    // The second half of a line break.
    if (text === '') return;
    commentBytes = 0;
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines += 1;
    parser.feed(text);
    const begun = measureBegun(text, hadLineEnd) ?? heldOfEvent + text.length;
    heldOfEvent = Math.max(0, begun - commentBytes);
    hadLineEnd = text.endsWith('\n');
    lines = Math.max(0, lines);
    if (lines < LINES_A_MESSAGE) return;
    reader.onNoise(Math.floor(lines / LINES_A_MESSAGE));
    lines %= LINES_A_MESSAGE;
  }

  return {
    /** Returns the problem with the stream; undefined if there is none. */
    add(chunk: Buffer): string | undefined {
      held.append(chunk);
      if (chunk.includes(LINE_FEED) || chunk.includes(CARRIAGE_RETURN)) {
        const bytes = held.take();
        feed(toLineFeeds(decoder.write(mayBeMark ? dropByteOrderMark(bytes) : bytes)));
        mayBeMark = false;
      }
      return held.byteLength() + heldOfEvent > maxBytes ? describeExcess(maxBytes) : problem;
    },
    /**
     * Bytes that are kept because the rest has not arrived yet. Not an accessor: V8 creates one as a separate object in the old
     * generation, where it keeps everything that the call allocated alive until the next full collection.
     */
    keptBytes: (): number => held.byteLength() + heldOfEvent,
  };
}

/** A colon, a space, and the end of its line. */
const COMMENT_BYTES = 3;
/** Events have fewer lines, unless their data has more: this many cost about as much as a message. */
const LINES_A_MESSAGE = 8;
const EMPTY_LINE = '\n\n';

/** The length of the text after the last empty line, which ends any event; undefined if there is none. */
function measureBegun(text: string, isAtLine: boolean) {
  const end = text.lastIndexOf(EMPTY_LINE);
  if (end !== -1) return text.length - end - EMPTY_LINE.length;
  return isAtLine && text.startsWith('\n') ? text.length - 1 : undefined;
}

// Resumption (MCP "Resumability and Redelivery"): the position in a server's stream, and when the gateway may reconnect to it.

export type EventCursor = ReturnType<typeof createEventCursor>;

/** Fits into a header, and is not too long to keep for each call. */
const USABLE_ID = /^[\x21-\x7E](?:[\x20-\x7E]{0,510}[\x21-\x7E])?$/;
/** A server that asks for less would be polled endlessly. */
const MIN_RETRY_MS = 500;
/** Servers rarely keep events for longer. */
const MAX_RETRY_MS = 300_000;

export function createEventCursor(rememberedIds: number) {
  const seen = new Set<string>();
  let last: string | undefined;
  let retry: number | undefined;

  return {
    /** Records an event; false if it is already among the remembered ones: a server may send more than it was asked for. */
    take(given: string) {
      // The server withdraws the position, or names one that cannot be sent.
      if (!USABLE_ID.test(given)) {
        last = undefined;
        return true;
      }
      if (seen.has(given)) return false;
      // A substring keeps the whole string in memory, here the whole received chunk.
      last = Buffer.from(given, 'latin1').toString('latin1');
      seen.add(last);
      const [oldest] = seen;
      if (seen.size > rememberedIds && oldest !== undefined) seen.delete(oldest);
      return true;
    },
    noteRetry(ms: number) {
      retry = Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, ms));
    },
    /** Tells the server where to continue; undefined if it cannot. */
    lastId: () => last,
    /** Milliseconds that the server wants clients to wait; undefined if it did not say. */
    retryMs: () => retry,
  };
}
