// Spec §4.4, §4.7, §4.8, decisions 3: request bodies, read once and bounded.
import type { IncomingMessage } from 'node:http';
import { fail, GatewayError } from '../core/errors/gateway-error.ts';
import { excessOf } from '../core/json.ts';
import type { RequestBody } from '../core/message.ts';

export interface BodyRules {
  readonly accepts: 'json' | 'json or form';
  readonly maxBytes: number;
  readonly owner: BodyOwner;
}

/**
 * Whose budget the bytes of a body count against: that of all callers without a valid token, that of
 * all with one where nobody has to log in, or a user's.
 */
export type BodyOwner = 'stranger' | 'anonymous' | { readonly sub: string };

/**
 * @throws GatewayError `unsupported_media_type`, `body_too_large`, `incomplete_body`,
 * `overloaded`, `bad_request` or `parse_error`.
 */
export type BodyReader = (req: IncomingMessage, rules: BodyRules) => Promise<RequestBody>;

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

/** Bytes of all bodies that are not complete yet: many slow senders must not fill the memory. */
const MAX_HELD_BYTES = 67_108_864;

/** Far more than anybody writes, far less than fills a stack. */
const MAX_LEVELS = 200;

export interface BodyReaderOptions {
  /** `MAX_BODY_VALUES`. */
  readonly maxValues: number;
}

export function createBodyReader({ maxValues }: BodyReaderOptions): BodyReader {
  let held = 0;

  function collect(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let length = 0;
    let problem: GatewayError | undefined;

    function take(chunk: Buffer): void {
      length += chunk.length;
      held += chunk.length;
      if (length > maxBytes) problem = tooLarge(maxBytes);
      else if (held > MAX_HELD_BYTES) problem = new GatewayError('overloaded');
      else chunks.push(chunk);
    }

    function release(): void {
      held -= length;
      length = 0;
    }

    // Not for await: leaving such a loop early destroys the socket, and the answer with it.
    return new Promise((resolve, reject) => {
      req.on('data', (chunk: Buffer) => {
        if (problem !== undefined) return;
        take(chunk);
        if (problem === undefined) return;
        release();
        chunks.length = 0;
        reject(problem);
      });
      req.on('end', () => {
        release();
        resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks));
      });
      // Always comes; an error made for nothing would cost more than the reading.
      req.on('close', () => {
        release();
        if (!req.readableEnded) reject(new GatewayError('incomplete_body'));
      });
      req.on('error', () => {});
    });
  }

  return async function readBody(req, { accepts, maxBytes }) {
    const type = req.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
    const isForm = accepts === 'json or form' && type === FORM_TYPE;
    if (type !== JSON_TYPE && !isForm) {
      const allowed = accepts === 'json' ? JSON_TYPE : `${FORM_TYPE} or ${JSON_TYPE}`;
      fail('unsupported_media_type', { details: `The Content-Type must be ${allowed}.` });
    }
    if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
    const text = decode(await collect(req, maxBytes));
    return isForm ? { type: 'form', text } : { type: 'json', value: parse(text, maxValues), text };
  };
}

const tooLarge = (maxBytes: number) =>
  new GatewayError('body_too_large', { details: `The body may have at most ${maxBytes} bytes.` });

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    return fail('parse_error', { details: 'The body is not UTF-8.' });
  }
}

function parse(text: string, maxValues: number): unknown {
  const excess = excessOf(text, { levels: MAX_LEVELS, values: maxValues });
  if (excess === 'values') {
    fail('body_too_large', {
      details: `The body may have at most ${maxValues} JSON values (MAX_BODY_VALUES).`,
    });
  }
  if (excess === 'levels') {
    fail('parse_error', { details: `The body is nested deeper than ${MAX_LEVELS} levels.` });
  }
  try {
    return JSON.parse(text);
  } catch {
    return fail('parse_error', { details: 'The body is not valid JSON.' });
  }
}
