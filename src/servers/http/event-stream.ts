// Splits a server's stream of server-sent events (WHATWG HTML §9.2) into messages, each of which is a JSON value. Data is passed on
// in the received bytes: decoding a long result would cost more than everything else that is done with it.
import { countBytes, dropByteOrderMark, joinPieces, PieceList } from '../../platform/pieces.ts';

/** The problem with an answer or an event that is too long. */
export const describeExcess = (maxBytes: number): string =>
  `it answered more than ${maxBytes} bytes (MAX_UPSTREAM_BYTES)`;

interface EventReader {
  /** Receives the data of a message: pieces of UTF-8, and their total length. */
  onEventData(data: readonly Uint8Array[], length: number): void;
  onNamedEvent(name: string, data: string): void;
  /** Called for a comment, an unknown field or an event without data, and for endless lines that form no event. */
  onNoise(count: number): void;
  /** Called when an event has an id, or the server says when to reconnect; undefined if the stream is not resumed. */
  openCursor(): EventCursor | undefined;
}

/** Reads events from chunks of any size. */
export class EventSplitter {
  private readonly maxBytes: number;
  private readonly reader: EventReader;
  private mayBeMark = true;
  /** The last byte was a CR: an LF that follows belongs to it. */
  private hadReturn = false;
  /** The current line, as far as it has arrived. */
  private readonly line = new PieceList();
  /** Data of the current event; undefined before its first line. */
  private data: PieceList | undefined = undefined;
  private name = '';
  private id: string | undefined = undefined;
  /** Bytes of the current event's complete lines, without its comments. */
  private bytes = 0;
  /** Lines that no message or comment accounts for. */
  private lines = 0;

  constructor(maxBytes: number, reader: EventReader) {
    this.maxBytes = maxBytes;
    this.reader = reader;
  }

  /** Returns the problem with the stream; undefined if there is none. */
  add(chunk: Buffer): string | undefined {
    if (chunk.length === 0) return undefined;
    let at = this.hadReturn && chunk[0] === LINE_FEED ? 1 : 0;
    this.hadReturn = chunk.at(-1) === CARRIAGE_RETURN;
    let feed = chunk.indexOf(LINE_FEED, at);
    let back = chunk.indexOf(CARRIAGE_RETURN, at);
    while (feed !== -1 || back !== -1) {
      const isFeed = back === -1 || (feed !== -1 && feed < back);
      const end = isFeed ? feed : back;
      this.endLine(chunk.subarray(at, end));
      if (this.bytes > this.maxBytes) return describeExcess(this.maxBytes);
      at = !isFeed && feed === end + 1 ? end + 2 : end + 1;
      if (feed !== -1 && feed < at) feed = chunk.indexOf(LINE_FEED, at);
      if (back !== -1 && back < at) back = chunk.indexOf(CARRIAGE_RETURN, at);
    }
    if (at < chunk.length) this.line.add(chunk.subarray(at));
    this.line.releaseChunks();
    this.data?.releaseChunks();
    this.lines = Math.max(0, this.lines);
    if (this.lines >= LINES_A_MESSAGE) {
      this.reader.onNoise(Math.floor(this.lines / LINES_A_MESSAGE));
      this.lines %= LINES_A_MESSAGE;
    }
    return this.keptBytes() > this.maxBytes ? describeExcess(this.maxBytes) : undefined;
  }

  /**
   * Bytes kept until the rest of the event arrives. Not an accessor: V8 creates one as a separate object in the old generation,
   * where it keeps everything that the call allocated alive until the next full collection.
   */
  keptBytes(): number {
    return this.line.byteLength + this.bytes;
  }

  private endLine(end: Buffer): void {
    this.lines += 1;
    this.line.add(end);
    const line = this.line.take();
    this.readLine(this.mayBeMark ? dropByteOrderMark(line) : line);
    this.mayBeMark = false;
  }

  private readLine(given: readonly Buffer[]): void {
    let line = given;
    const length = countBytes(line);
    if (length === 0) {
      this.endEvent();
      return;
    }
    // A field name is in one piece.
    if (line.length > 1 && (line[0]?.length ?? 0) < MIN_HEAD) line = [Buffer.concat(line)];
    const [head = EMPTY, ...rest] = line;
    if (head[0] === COLON) {
      this.lines -= LINES_A_MESSAGE;
      this.reader.onNoise(1);
      return;
    }
    this.bytes += length;
    const isData = DATA.every((byte, at) => head[at] === byte);
    if (isData && (length === DATA.length || head[DATA.length] === COLON)) {
      const start = head[DATA.length + 1] === SPACE ? DATA.length + 2 : DATA.length + 1;
      if (this.data === undefined) this.data = new PieceList();
      else this.data.add(END_OF_LINE);
      this.data.add(head.subarray(start));
      for (const piece of rest) this.data.add(piece);
    } else this.readField(decode(line));
  }

  private readField(line: string): void {
    const [, field = '', value = ''] = FIELD.exec(line) ?? [];
    if (field === 'event') this.name = value;
    else if (field === 'id') {
      if (!value.includes('\0')) this.id = value;
    } else if (field === 'retry' && DIGITS.test(value))
      this.reader.openCursor()?.noteRetry(Number(value));
    else this.reader.onNoise(1);
  }

  private endEvent(): void {
    const { reader, data, name, id } = this;
    this.data = undefined;
    this.name = '';
    this.id = undefined;
    this.bytes = 0;
    if (data === undefined) return;
    const isKnown = id !== undefined && reader.openCursor()?.take(id) === false;
    this.lines -= LINES_A_MESSAGE;
    const { byteLength } = data;
    const isMessage = name === '' || name === 'message';
    // The first event of a stream may be empty (MCP 2025-11-25, resuming): it only has an id.
    if (isKnown || (isMessage && byteLength === 0)) reader.onNoise(1);
    else if (isMessage) reader.onEventData(data.take(), byteLength);
    else reader.onNamedEvent(name, decode(data.take()));
  }
}

/** Invalid UTF-8 is replaced (WHATWG HTML §9.2.4). */
const decode = (pieces: readonly Uint8Array[]) => joinPieces(pieces).toString('utf8');

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const DATA = Buffer.from('data');
/** A field's name, its colon, and the space after it. */
const MIN_HEAD = DATA.length + 2;
const EMPTY = Buffer.alloc(0);
const END_OF_LINE = Buffer.alloc(1, LINE_FEED);
const FIELD = /^([^:]*)(?:: ?)?(.*)$/s;
const DIGITS = /^\d+$/;

/** An event rarely has more lines, unless its data does: this many lines cost about as much as a message. */
const LINES_A_MESSAGE = 8;

// Resumption (MCP "Resumability and Redelivery"): the position in a server's stream, and when the gateway may reconnect to it.

export type EventCursor = ReturnType<typeof createEventCursor>;

/** An event id that fits into a header, and is not too long to keep for each call. */
const USABLE_ID = /^[\x21-\x7E](?:[\x20-\x7E]{0,510}[\x21-\x7E])?$/;
/** A server that asks for a shorter delay would be polled endlessly. */
const MIN_RETRY_MS = 500;
/** Servers rarely keep events for longer. */
const MAX_RETRY_MS = 300_000;

export function createEventCursor(rememberedIds: number) {
  const seen = new Set<string>();
  let last: string | undefined;
  let retry: number | undefined;

  return {
    /** Records an event's id; false if it is among the remembered ids, since a server may send more than it was asked for. */
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
    /** The id after which the server should continue; undefined if the stream cannot be resumed. */
    lastId: () => last,
    /** Milliseconds that the server wants clients to wait; undefined if it did not say. */
    retryMs: () => retry,
  };
}
