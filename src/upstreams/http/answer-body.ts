// The body of an answer: bounded, and read as it comes.
import { StringDecoder } from 'node:string_decoder';
import { createParser } from 'eventsource-parser';
import { type JsonObject, parseObject } from '../../platform/json.ts';
import { createGrowingBuffer, type GrowingBuffer } from '../../platform/memory/growing-buffer.ts';

export interface AnswerBody {
  /** What is wrong with it; undefined while nothing is. */
  add(chunk: Buffer): string | undefined;
  /** As `add`, once nothing more comes. */
  end(): void;
  /**
   * Bytes that are kept because the rest of them is still to come. No accessor: V8 makes one of an object of its own in
   * the old generation, from where it keeps alive all that the call allocated until the next full collection.
   */
  keptBytes(): number;
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

const tooLong = (maxBytes: number) =>
  `it answered more than ${maxBytes} bytes (MAX_UPSTREAM_BYTES)`;

/** Kept as they came, and not copied; what comes behind them is, since of many small pieces each costs more than its bytes. */
const MAX_PIECES = 16;

/** Whoever waits for what a body says. */
export interface BodyReceiver {
  /** The pieces of a single value of JSON; none at all (202) where there are no bytes. */
  onPieces(pieces: readonly Buffer[], bytes: number): void;
  onBodyEnd(): void;
  /** What a refusal says, where it is an object of JSON. */
  onRefusal(body: JsonObject | undefined): void;
  /** A message of a stream. */
  onEvent(data: string): void;
  onNamedEvent(name: string, data: string): void;
  /** A comment, a field that means nothing, an event without data; or lines without end that are no event. */
  onNoise(count: number): void;
}

export class JsonBody implements AnswerBody {
  private readonly maxBytes: number;
  private readonly receiver: Pick<BodyReceiver, 'onPieces' | 'onBodyEnd'>;
  private pieces: Buffer[] = [];
  private bytes = 0;
  private rest: GrowingBuffer | undefined;

  constructor(maxBytes: number, receiver: Pick<BodyReceiver, 'onPieces' | 'onBodyEnd'>) {
    this.maxBytes = maxBytes;
    this.receiver = receiver;
  }

  add(chunk: Buffer): string | undefined {
    if (this.bytes + chunk.length > this.maxBytes) return tooLong(this.maxBytes);
    this.bytes += chunk.length;
    if (this.pieces.length < MAX_PIECES) this.pieces.push(chunk);
    else {
      this.rest ??= createGrowingBuffer();
      this.rest.append(chunk);
    }
    return undefined;
  }

  end(): void {
    const { pieces, bytes, rest } = this;
    this.pieces = [];
    this.bytes = 0;
    this.receiver.onPieces(rest === undefined ? pieces : [...pieces, rest.take()], bytes);
    this.receiver.onBodyEnd();
  }

  keptBytes(): number {
    return this.bytes;
  }
}

type EventReceiver = Pick<BodyReceiver, 'onEvent' | 'onNamedEvent' | 'onNoise' | 'onBodyEnd'>;

/** Server-sent events, as the WHATWG HTML standard §9.2 has them: each message is a value of JSON. */
export function createEventBody(maxBytes: number, receiver: EventReceiver): AnswerBody {
  const decoder = new StringDecoder('utf8');
  const toLineFeeds = createToLineFeeds();
  /** Of the line that has begun. */
  const held = createGrowingBuffer();
  /** Of the event that has begun: about what its lines take so far. */
  let heldOfEvent = 0;
  let commentBytes = 0;
  let hadLineEnd = false;
  /** That no message or comment accounts for. */
  let lines = 0;
  let problem: string | undefined;

  const parser = createParser({
    // All lines of an event, which may come with comments between them.
    maxBufferSize: maxBytes,
    onError({ type }) {
      if (type === 'max-buffer-size-exceeded') problem ??= tooLong(maxBytes);
      else receiver.onNoise(1);
    },
    onEvent({ event = 'message', data }) {
      lines -= LINES_A_MESSAGE;
      if (event !== 'message') receiver.onNamedEvent(event, data);
      // The first event of a stream may be empty (MCP 2025-11-25, resuming).
      else if (data === '') receiver.onNoise(1);
      else receiver.onEvent(data);
    },
    onComment(comment) {
      lines -= LINES_A_MESSAGE;
      commentBytes += comment.length + COMMENT_BYTES;
      receiver.onNoise(1);
    },
  });

  function feed(text: string): void {
    // The second half of a line end.
    if (text === '') return;
    commentBytes = 0;
    lines += countLineFeeds(text);
    parser.feed(text);
    const begun = measureBegun(text, hadLineEnd) ?? heldOfEvent + text.length;
    heldOfEvent = Math.max(0, begun - commentBytes);
    hadLineEnd = text.endsWith('\n');
    lines = Math.max(0, lines);
    if (lines < LINES_A_MESSAGE) return;
    receiver.onNoise(Math.floor(lines / LINES_A_MESSAGE));
    lines %= LINES_A_MESSAGE;
  }

  return {
    add(chunk) {
      held.append(chunk);
      if (chunk.includes(LINE_FEED) || chunk.includes(CARRIAGE_RETURN)) {
        feed(toLineFeeds(decoder.write(held.take())));
      }
      return held.byteLength() + heldOfEvent > maxBytes ? tooLong(maxBytes) : problem;
    },
    end: () => receiver.onBodyEnd(),
    keptBytes: () => held.byteLength() + heldOfEvent,
  };
}

/** A colon, a space, and the end of its line. */
const COMMENT_BYTES = 3;
/** Events have fewer lines, but for those whose data has more: so many cost about as much as a message. */
const LINES_A_MESSAGE = 8;
const EMPTY_LINE = '\n\n';

/** How much follows the last empty line, which ends what had begun, be it an event or not; undefined where there is none. */
function measureBegun(text: string, isAtLine: boolean): number | undefined {
  const end = text.lastIndexOf(EMPTY_LINE);
  if (end !== -1) return text.length - end - EMPTY_LINE.length;
  return isAtLine && text.startsWith('\n') ? text.length - 1 : undefined;
}

/** All line ends as LF: where there is a CR, the parser looks for each line's end through all that follows. */
function createToLineFeeds(): (text: string) => string {
  let hadReturn = false;

  return function toLineFeeds(text) {
    if (text === '') return text;
    const rest = hadReturn && text.startsWith('\n') ? text.slice(1) : text;
    hadReturn = text.endsWith('\r');
    return rest.includes('\r') ? rest.replace(/\r\n?/g, '\n') : rest;
  };
}

function countLineFeeds(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}

/** Of a refusal no more than an error of JSON-RPC is read. */
const MAX_REFUSAL_BYTES = 65_536;

export class RefusalBody implements AnswerBody {
  private readonly receiver: Pick<BodyReceiver, 'onRefusal'>;
  private readonly received = createGrowingBuffer();

  constructor(receiver: Pick<BodyReceiver, 'onRefusal'>) {
    this.receiver = receiver;
  }

  add(chunk: Buffer): string | undefined {
    this.received.append(chunk);
    if (this.received.byteLength() <= MAX_REFUSAL_BYTES) return undefined;
    this.receiver.onRefusal(undefined);
    return tooLong(MAX_REFUSAL_BYTES);
  }

  end(): void {
    this.receiver.onRefusal(parseObject(this.received.take()));
  }

  keptBytes(): number {
    return this.received.byteLength();
  }
}
