// The body of an answer: bounded, and read as it comes.
import { StringDecoder } from 'node:string_decoder';
import { createParser } from 'eventsource-parser';
import { type JsonObject, parseObject } from '../../../core/json.ts';
import { decodeUtf8 } from '../../../core/utf8.ts';
import { parseServerJson } from '../messages/parse-json.ts';
import { createGrowingBuffer } from './growing-buffer.ts';

export interface AnswerBody {
  /** What is wrong with it; undefined while nothing is. */
  add(chunk: Buffer): string | undefined;
  /** As `add`, once nothing more comes. */
  end(): string | undefined;
}

interface BodyOptions {
  readonly maxBytes: number;
  onValue(value: unknown): void;
  /** Called once the whole body was read without a problem. */
  complete(): void;
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** The media type says more, where it is known. */
export const NO_JSON = 'it answered what is no JSON';
const tooLong = (maxBytes: number) =>
  `it answered more than ${maxBytes} bytes (MAX_UPSTREAM_BYTES)`;

/** A single value of JSON, or nothing at all (202). */
export function createJsonBody({ maxBytes, onValue, complete }: BodyOptions): AnswerBody {
  const received = createGrowingBuffer();
  return {
    add(chunk) {
      if (received.length + chunk.length > maxBytes) return tooLong(maxBytes);
      received.add(chunk);
      return undefined;
    },
    end() {
      if (received.length > 0) {
        const text = decodeUtf8(received.take());
        const parsed = text === undefined ? undefined : parseServerJson(text);
        if (parsed === undefined) return NO_JSON;
        onValue(parsed.value);
      }
      complete();
      return undefined;
    },
  };
}

/** Server-sent events, as the WHATWG HTML standard §9.2 has them: each message is a value of JSON. */
export function createEventBody(
  options: BodyOptions & {
    readonly onNamedEvent?: ((name: string, data: string) => void) | undefined;
  },
): AnswerBody {
  const { maxBytes, onValue, complete, onNamedEvent } = options;
  const decoder = new StringDecoder('utf8');
  /** Of the line that has begun. */
  const held = createGrowingBuffer();
  let problem: string | undefined;

  function takeMessage(data: string): void {
    // The first event of a stream may be empty (MCP 2025-11-25, resuming).
    if (data === '' || problem !== undefined) return;
    const parsed = parseServerJson(data);
    if (parsed === undefined) problem = NO_JSON;
    else onValue(parsed.value);
  }

  const parser = createParser({
    // All lines of an event, which may come with comments between them.
    maxBufferSize: maxBytes,
    onError({ type }) {
      if (type === 'max-buffer-size-exceeded') problem ??= tooLong(maxBytes);
    },
    onEvent({ event = 'message', data }) {
      if (event === 'message') takeMessage(data);
      else onNamedEvent?.(event, data);
    },
  });

  return {
    add(chunk) {
      held.add(chunk);
      if (chunk.includes(LINE_FEED) || chunk.includes(CARRIAGE_RETURN)) {
        parser.feed(decoder.write(held.take()));
      }
      return held.length > maxBytes ? tooLong(maxBytes) : problem;
    },
    end() {
      complete();
      return undefined;
    },
  };
}

/** Of a refusal no more than an error of JSON-RPC is read. */
const MAX_REFUSAL_BYTES = 65_536;

export function createRefusalBody(complete: (body: JsonObject | undefined) => void): AnswerBody {
  const chunks: Buffer[] = [];
  let length = 0;
  return {
    add(chunk) {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= MAX_REFUSAL_BYTES) return undefined;
      complete(undefined);
      return tooLong(MAX_REFUSAL_BYTES);
    },
    end() {
      complete(parseObject(Buffer.concat(chunks)));
      return undefined;
    },
  };
}
