// Server-sent events (WHATWG HTML §9.2) of a server: splits a stream into messages, each of which is a value of JSON.
import { StringDecoder } from 'node:string_decoder';
import { createParser } from 'eventsource-parser';
import { createGrowingBuffer } from '../../platform/memory/user-budgets.ts';
import { dropByteOrderMark } from '../../platform/text.ts';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** Problem of an answer, or of an event, that is too long. */
export const describeExcess = (maxBytes: number): string =>
  `it answered more than ${maxBytes} bytes (MAX_UPSTREAM_BYTES)`;

interface EventReader {
  /** Data of an event, as text or as the bytes that were received. */
  onEventData(data: string | Buffer): void;
  onNamedEvent(name: string, data: string): void;
  /** A comment, a field without a meaning, an event without data; or endless lines that form no event. */
  onNoise(count: number): void;
  /** Called once an event has an id, or the server says when to come back; undefined where the stream is not resumed. */
  openCursor(): EventCursor | undefined;
}

/** Reads events in chunks of any kind. `isHead`: nothing of the stream came before. */
export function createEventSplitter(maxBytes: number, reader: EventReader, isHead: boolean) {
  const decoder = new StringDecoder('utf8');
  let hadReturn = false;
  /** The line that has begun. */
  const held = createGrowingBuffer();
  /** Bytes of the event that has begun: about what its lines take so far. */
  let heldOfEvent = 0;
  let commentBytes = 0;
  let hadLineEnd = false;
  let mayBeMark = isHead;
  /** That no message or comment accounts for. */
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

  /** All line ends as LF: where there is a CR, the parser looks for each line's end through all that follows. */
  function toLineFeeds(text: string) {
    const rest = hadReturn && text.startsWith('\n') ? text.slice(1) : text;
    if (text !== '') hadReturn = text.endsWith('\r');
    return rest.includes('\r') ? rest.replace(/\r\n?/g, '\n') : rest;
  }

  function feed(text: string) {
    // The second half of a line end.
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
    /** Returns what is wrong with the stream; undefined while nothing is. */
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
     * Bytes that are kept because the rest of them is still to come. No accessor: V8 makes one of an object of its own in
     * the old generation, from where it keeps alive all that the call allocated until the next full collection.
     */
    keptBytes: (): number => held.byteLength() + heldOfEvent,
  };
}

/** A colon, a space, and the end of its line. */
const COMMENT_BYTES = 3;
/** Events have fewer lines, but for those whose data has more: so many cost about as much as a message. */
const LINES_A_MESSAGE = 8;
const EMPTY_LINE = '\n\n';

/** The length of what follows the last empty line, which ends any event; undefined where there is none. */
function measureBegun(text: string, isAtLine: boolean) {
  const end = text.lastIndexOf(EMPTY_LINE);
  if (end !== -1) return text.length - end - EMPTY_LINE.length;
  return isAtLine && text.startsWith('\n') ? text.length - 1 : undefined;
}

// Resumption (MCP "Resumability and Redelivery"): the position in a stream of a server, and when the gateway may come back to it.

export type EventCursor = ReturnType<typeof createEventCursor>;

/** Fits into a header, and is no more than is worth keeping for each call. */
const USABLE_ID = /^[\x21-\x7E](?:[\x20-\x7E]{0,510}[\x21-\x7E])?$/;
/** A server that wants less would be asked without end. */
const MIN_RETRY_MS = 500;
/** Events are hardly kept for longer. */
const MAX_RETRY_MS = 300_000;

export function createEventCursor(rememberedIds: number) {
  const seen = new Set<string>();
  let last: string | undefined;
  let retry: number | undefined;

  return {
    /** Notes an event; false where it is among those that are remembered: a server may send more than it was asked for. */
    take(given: string) {
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
    noteRetry(ms: number) {
      retry = Math.min(MAX_RETRY_MS, Math.max(MIN_RETRY_MS, ms));
    },
    /** Tells the server where to go on; undefined where it cannot. */
    lastId: () => last,
    /** Milliseconds that the server wants to be left alone for; undefined where it did not say. */
    retryMs: () => retry,
  };
}
