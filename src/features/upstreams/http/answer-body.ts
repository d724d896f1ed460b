// The body of an answer: bounded, and read as it comes.
import { StringDecoder } from 'node:string_decoder';
import { createParser } from 'eventsource-parser';
import { type JsonObject, parseObject } from '../../../core/json.ts';
import { createGrowingBuffer } from '../../../core/memory/growing-buffer.ts';

export interface AnswerBody {
  /** What is wrong with it; undefined while nothing is. */
  add(chunk: Buffer): string | undefined;
  /** As `add`, once nothing more comes. */
  end(): void;
  /** Bytes that are kept because the rest of them is still to come. */
  readonly keptBytes: number;
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

const tooLong = (maxBytes: number) =>
  `it answered more than ${maxBytes} bytes (MAX_UPSTREAM_BYTES)`;

/** A single value of JSON, or nothing at all (202). */
export function createJsonBody(maxBytes: number, onEnd: (text: Buffer) => void): AnswerBody {
  const received = createGrowingBuffer();
  return {
    add(chunk) {
      if (received.byteLength() + chunk.length > maxBytes) return tooLong(maxBytes);
      received.append(chunk);
      return undefined;
    },
    end: () => onEnd(received.take()),
    get keptBytes() {
      return received.byteLength();
    },
  };
}

export interface EventBodyOptions {
  readonly maxBytes: number;
  onMessage(data: string): void;
  onNamedEvent(name: string, data: string): void;
  /** A comment, a field that means nothing, an event without data. */
  onNoise(): void;
  onEnd(): void;
}

/** Server-sent events, as the WHATWG HTML standard §9.2 has them: each message is a value of JSON. */
export function createEventBody(options: EventBodyOptions): AnswerBody {
  const { maxBytes, onMessage, onNamedEvent, onNoise, onEnd } = options;
  const decoder = new StringDecoder('utf8');
  /** Of the line that has begun. */
  const held = createGrowingBuffer();
  /** Of the event that has begun: about what its lines take so far. */
  let heldOfEvent = 0;
  let problem: string | undefined;

  const parser = createParser({
    // All lines of an event, which may come with comments between them.
    maxBufferSize: maxBytes,
    onError({ type }) {
      if (type === 'max-buffer-size-exceeded') problem ??= tooLong(maxBytes);
      else onNoise();
    },
    onEvent({ event = 'message', data }) {
      heldOfEvent = 0;
      if (event !== 'message') onNamedEvent(event, data);
      // The first event of a stream may be empty (MCP 2025-11-25, resuming).
      else if (data === '') onNoise();
      else onMessage(data);
    },
    onComment(comment) {
      heldOfEvent = Math.max(0, heldOfEvent - comment.length - COMMENT_BYTES);
      onNoise();
    },
  });

  return {
    add(chunk) {
      held.append(chunk);
      if (chunk.includes(LINE_FEED) || chunk.includes(CARRIAGE_RETURN)) {
        const lines = held.take();
        heldOfEvent += lines.length;
        parser.feed(decoder.write(lines));
      }
      return held.byteLength() > maxBytes ? tooLong(maxBytes) : problem;
    },
    end: onEnd,
    get keptBytes() {
      return held.byteLength() + heldOfEvent;
    },
  };
}

/** A colon, and the ends of its line and of the empty one that mostly follows. */
const COMMENT_BYTES = 3;

/** Of a refusal no more than an error of JSON-RPC is read. */
const MAX_REFUSAL_BYTES = 65_536;

export function createRefusalBody(complete: (body: JsonObject | undefined) => void): AnswerBody {
  const received = createGrowingBuffer();
  return {
    add(chunk) {
      received.append(chunk);
      if (received.byteLength() <= MAX_REFUSAL_BYTES) return undefined;
      complete(undefined);
      return tooLong(MAX_REFUSAL_BYTES);
    },
    end: () => complete(parseObject(received.take())),
    get keptBytes() {
      return received.byteLength();
    },
  };
}
