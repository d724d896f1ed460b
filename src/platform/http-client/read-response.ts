// Reads a server's answers from a connection strictly (RFC 9112). Bytes that two parsers could interpret as different answers are
// refused, along with the connection, since the bytes after them could be mistaken for the answer to another user's request.
import type { IncomingHttpHeaders } from 'node:http';
import { allocateReceived } from '../pieces.ts';

/** The server did not send HTTP/1.1, or sent something ambiguous. */
export class InvalidResponse extends Error {
  override readonly name = 'InvalidResponse';
}

/** Receives the parts of an answer. */
interface ResponseSink {
  /** Called for the final response; informational responses (1xx) are skipped. */
  onHead(status: number, headers: IncomingHttpHeaders): void;
  /** Called for each part of the body. The receiver may keep the bytes. */
  onBody(bytes: Buffer): void;
  /** Called once; `isReusable` says whether another request may be sent over the connection. */
  onComplete(isReusable: boolean): void;
}

/** Maximum size of a head in bytes: as much as Node's own client accepts. Also applies to trailers. */
const MAX_HEAD = 16_384;
/** Maximum length of the line with a chunk's size, in bytes. */
const MAX_CHUNK_LINE = 256;
/** Maximum number of informational responses (1xx) before the final one: nothing else limits them, and each costs time. */
const MAX_INFORMING = 1000;

const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;
const LINE_END = Buffer.from('\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');

const TOKEN = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
/** A field line (RFC 9110 §5) that is not folded, and has no space before the colon. */
const FIELD = `${TOKEN}:[\\t\\x20-\\x7e\\x80-\\xff]*\\r\\n`;
const HEAD = new RegExp(
  `^HTTP/1\\.([01]) ([1-9]\\d\\d)(?: [\\t\\x20-\\x7e\\x80-\\xff]*)?\\r\\n(?:${FIELD})*$`,
);
const TRAILERS = new RegExp(`^(?:${FIELD})*$`);
/** Extensions after the size of a chunk (RFC 9112 §7.1.1), which are ignored. Quoted values are refused. */
const EXTENSIONS = new RegExp(`^(?:;${TOKEN}(?:=${TOKEN})?)*$`);
const MAX_DIGITS = 12;
const LENGTH = /^\d{1,15}$/;

type State =
  /** No request is in flight, or its answer is no longer wanted. */
  | 'idle'
  | 'head'
  /** A body whose length is known. */
  | 'sized'
  | 'chunk-line'
  | 'chunk'
  | 'chunk-end'
  | 'trailers'
  /** A body that ends with the connection. */
  | 'until-close'
  | 'complete';

/** The end of the current part has not arrived yet. */
const NOT_YET = -1;

/** A class, since each connection has one for all of its answers. */
export class ResponseReader {
  private readonly sink: ResponseSink;
  private state: State = 'idle';
  /** The beginning of a head or a line whose end has not arrived yet. */
  private held: Buffer | undefined = undefined;
  /** Remaining bytes of the body, or of the chunk. */
  private left = 0;
  /**
   * Body bytes of the current input, passed on together: a chunk may be a single byte, and passing on each one would cost far more.
   */
  private body: Buffer = NOTHING;
  private bodyLength = 0;
  private isReusable = false;
  private informing = 0;

  constructor(sink: ResponseSink) {
    this.sink = sink;
  }

  /** Called when a request was sent: the next bytes are its answer. */
  begin(): void {
    this.state = 'head';
    this.informing = 0;
  }

  /** Stops reading, even the rest of the current input. */
  stop(): void {
    this.state = 'idle';
    this.held = undefined;
  }

  /**
   * The bytes only have to be valid until this returns.
   *
   * @throws InvalidResponse
   */
  read(bytes: Buffer): void {
    const { state } = this;
    if (state === 'idle' || state === 'complete') fail('it sent bytes that no request asked for');
    const input = this.held === undefined ? bytes : Buffer.concat([this.held, bytes]);
    this.held = undefined;
    let end = 0;
    try {
      end = this.readParts(input);
    } finally {
      // The bytes before an error are passed on.
      if (this.bodyLength > 0) this.passOn();
    }
    if (this.state === 'complete') this.complete(this.isReusable && end === input.length);
  }

  /** Called when the server has closed the connection. Returns true if that properly ends the answer. */
  readEnd(): boolean {
    if (this.state !== 'until-close') return false;
    this.complete(false);
    return true;
  }

  /** Returns the end of the answer, or of the input. */
  private readParts(input: Buffer): number {
    for (let at = 0; at < input.length; ) {
      let next: number;
      switch (this.state) {
        case 'idle':
        case 'complete':
          return at;
        case 'head':
          next = this.readHead(input, at);
          break;
        case 'chunk-line':
          next = this.readChunkLine(input, at);
          break;
        case 'chunk-end':
          next = this.readChunkEnd(input, at);
          break;
        case 'trailers':
          next = this.readTrailers(input, at);
          break;
        default:
          next = this.readBody(input, at);
      }
      if (next === NOT_YET) {
        // Copied, since the input buffer may be reused.
        this.held = Buffer.from(input.subarray(at));
        break;
      }
      at = next;
    }
    return input.length;
  }

  private passOn(): void {
    const { body, bodyLength } = this;
    this.body = NOTHING;
    this.bodyLength = 0;
    const told = body.subarray(0, bodyLength);
    // A part keeps the whole buffer in memory, but only its own bytes are counted: 1 in 256 for chunks with long extensions.
    this.sink.onBody(bodyLength * 2 < body.length ? Buffer.from(told) : told);
  }

  private complete(isReusable: boolean): void {
    this.state = 'idle';
    this.sink.onComplete(isReusable);
  }

  // Each returns the offset of the next part.

  private readHead(input: Buffer, at: number): number {
    const end = input.indexOf(HEAD_END, at);
    if ((end === NOT_YET ? input.length : end) - at > MAX_HEAD) fail('its headers are too long');
    if (end === NOT_YET) return waitForLineEnd(input, at);
    const text = input.toString('latin1', at, end + LINE_END.length);
    const [, minor, digits] = HEAD.exec(text) ?? fail('its status line or a header is malformed');
    const status = Number(digits);
    const headers = readFields(text, input, at);
    if (status === 101) fail('it changes to a protocol that nobody asked for');
    if (status >= 200) {
      const isCurrent = minor === '1';
      this.isReusable = isCurrent && !CLOSE.test(headers.connection ?? '');
      this.state = this.frame(status, headers, isCurrent);
      this.sink.onHead(status, headers);
    } else this.informing += 1;
    if (this.informing > MAX_INFORMING) fail('it informs without end');
    return end + HEAD_END.length;
  }

  /** Determines the length of the body (RFC 9112 §6.3). */
  private frame(status: number, headers: IncomingHttpHeaders, isCurrent: boolean): State {
    const { 'transfer-encoding': coding, 'content-length': length } = headers;
    if (coding !== undefined && (length !== undefined || !isCurrent || !CHUNKED.test(coding)))
      fail(BAD_LENGTH);
    if (length !== undefined && !LENGTH.test(length)) fail(BAD_LENGTH);
    if (status === 204 || status === 304) return 'complete';
    if (coding !== undefined) return 'chunk-line';
    if (length === undefined) return 'until-close';
    this.left = Number(length);
    return this.left === 0 ? 'complete' : 'sized';
  }

  private readBody(input: Buffer, at: number): number {
    const isSized = this.state !== 'until-close';
    const end = isSized ? Math.min(input.length, at + this.left) : input.length;
    if (isSized) this.left -= end - at;
    if (isSized && this.left === 0) this.state = this.state === 'chunk' ? 'chunk-end' : 'complete';
    if (this.bodyLength === 0) this.body = allocateReceived(input.length - at);
    this.bodyLength += input.copy(this.body, this.bodyLength, at, end);
    return end;
  }

  private readChunkLine(input: Buffer, start: number): number {
    let at = start;
    let size = 0;
    for (; at < input.length; at += 1) {
      const digit = HEX[input[at] ?? 0] ?? NO_DIGIT;
      if (digit === NO_DIGIT) break;
      size = size * 16 + digit;
    }
    const end = isLineEnd(input, at) ? at : input.indexOf(LINE_END, at);
    if ((end === NOT_YET ? input.length : end) - start > MAX_CHUNK_LINE) fail(BAD_CHUNK);
    if (end === NOT_YET) return waitForLineEnd(input, start);
    if (at === start || at - start > MAX_DIGITS) fail(BAD_CHUNK);
    if (end > at && !EXTENSIONS.test(input.toString('latin1', at, end))) fail(BAD_CHUNK);
    this.left = size;
    this.state = size === 0 ? 'trailers' : 'chunk';
    return end + LINE_END.length;
  }

  private readChunkEnd(input: Buffer, at: number): number {
    if (input.length < at + LINE_END.length) return waitForLineEnd(input, at);
    if (!isLineEnd(input, at)) fail(BAD_CHUNK);
    this.state = 'chunk-line';
    return at + LINE_END.length;
  }

  /** Trailers are checked and dropped. */
  private readTrailers(input: Buffer, at: number): number {
    const end = isLineEnd(input, at) ? at - LINE_END.length : input.indexOf(HEAD_END, at);
    if ((end === NOT_YET ? input.length : end) - at > MAX_HEAD) fail('its trailers are too long');
    if (end === NOT_YET) return waitForLineEnd(input, at);
    const text = input.toString('latin1', at, end + LINE_END.length);
    if (!TRAILERS.test(text)) fail('a trailer is malformed');
    this.state = 'complete';
    return end + HEAD_END.length;
  }
}

const CHUNKED = /^chunked$/i;
/** Matches the option `close` in the header `Connection` (RFC 9110 §7.6.1). */
const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;
const BAD_LENGTH = 'how long its answer is can be read in more than one way';
const BAD_CHUNK = 'a chunk of its answer is malformed';
const LINE_FEED_ALONE =
  'a line ends with a line feed alone, where HTTP has a carriage return before it';

function fail(words: string): never {
  throw new InvalidResponse(words);
}

/** Refuses a bare line feed at once, as llhttp does, since a head with such line endings would never be complete. */
function waitForLineEnd(input: Buffer, start: number): typeof NOT_YET {
  for (let at = input.indexOf(LINE_FEED, start); at !== -1; at = input.indexOf(LINE_FEED, at + 1))
    if (at === start || input[at - 1] !== CARRIAGE_RETURN) fail(LINE_FEED_ALONE);
  return NOT_YET;
}

const isLineEnd = (input: Buffer, at: number) =>
  input[at] === CARRIAGE_RETURN && input[at + 1] === LINE_FEED;

const NOTHING = Buffer.alloc(0);

const NO_DIGIT = -1;
/** The value of each byte as a hexadecimal digit. */
const HEX = Int8Array.from({ length: 256 }, (_, byte) =>
  /[0-9A-Fa-f]/.test(String.fromCharCode(byte))
    ? Number.parseInt(String.fromCharCode(byte), 16)
    : NO_DIGIT,
);

/**
 * Reads a head that is known to be well-formed and begins at `start`. Values are copied strings: a slice that is kept, as the id of
 * a session is, would keep the whole head in memory.
 */
function readFields(head: string, input: Buffer, start: number): IncomingHttpHeaders {
  // Has no prototype, since a server may name its fields as it likes.
  const headers: IncomingHttpHeaders = Object.create(null);
  let at = head.indexOf('\r\n') + LINE_END.length;
  while (at < head.length) {
    const colon = head.indexOf(':', at);
    const lineEnd = head.indexOf('\r\n', colon);
    const name = head.slice(at, colon).toLowerCase();
    // Some parsers treat a tab there as part of the value, and so read a different length.
    const isFraming = name === 'content-length' || name === 'transfer-encoding';
    if (isFraming && head.slice(colon, lineEnd).includes('\t')) fail(BAD_LENGTH);
    let first = colon + 1;
    let end = lineEnd;
    while (first < end && BLANKS.includes(head.charAt(first))) first += 1;
    while (end > first && BLANKS.includes(head.charAt(end - 1))) end -= 1;
    const value = input.toString('latin1', start + first, start + end);
    if (name === 'set-cookie') {
      // RFC 9110 §5.3: lines of this field cannot be joined, since they contain dates with commas.
      headers['set-cookie'] ??= [];
      headers['set-cookie'].push(value);
    } else {
      const former = headers[name];
      headers[name] = former === undefined ? value : `${former}, ${value}`;
    }
    at = lineEnd + LINE_END.length;
  }
  return headers;
}

const BLANKS = ' \t';
