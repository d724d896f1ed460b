// Spec §4.4, §4.7, §4.8, decisions 3: request bodies, read once and bounded.
import type { IncomingMessage } from 'node:http';
import { fail, GatewayError } from '../core/errors/gateway-error.ts';
import { findExceededBound } from '../core/json-bounds.ts';
import type { RequestBody } from '../core/message.ts';
import { decodeUtf8 } from '../core/utf8.ts';
import type { BodyBudgets, BodyOwner, CountedBody } from './body-budgets.ts';
import { createPieces, type Pieces } from './body-pieces.ts';

export interface BodyRules {
  readonly accepts: 'json' | 'json or form';
  readonly maxBytes: number;
  readonly owner: BodyOwner;
}

/**
 * `whenOver` is given what is to be called when the request is over: answered, or its caller gone.
 *
 * @throws GatewayError `unsupported_media_type`, `body_too_large`, `incomplete_body`,
 * `request_timeout`, `overloaded` or `parse_error`.
 */
export type BodyReader = (
  req: IncomingMessage,
  rules: BodyRules,
  whenOver: (task: () => void) => void,
) => Promise<RequestBody>;

export interface BodyReaderDeps {
  readonly budgets: BodyBudgets;
  /** `MAX_BODY_VALUES`. */
  readonly maxValues: number;
}

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

/** Far more than anybody writes, far less than fills a stack. */
const MAX_LEVELS = 200;

export function createBodyReader({ budgets, maxValues }: BodyReaderDeps): BodyReader {
  /** Most bodies are there when they are asked for: nothing has to wait, or to be counted, for them. */
  function readWhole(req: IncomingMessage, { maxBytes, owner }: BodyRules): Read | undefined {
    const { readableLength } = req;
    // node:http says that a request is complete only when it has been read on from there.
    const isThere = req.complete || readableLength === Number(req.headers['content-length']);
    if (!isThere || req.destroyed) return undefined;
    if (readableLength > maxBytes) throw tooLarge(maxBytes);
    const hold = budgets.holderOf(owner, readableLength);
    if (hold === undefined) return undefined;
    const bytes: Buffer = req.read() ?? NO_BYTES;
    // Nothing comes any more; that this ends is for node:http to see.
    req.resume();
    return { bytes, hold, end: () => {} };
  }

  async function readPieces(req: IncomingMessage, rules: BodyRules): Promise<Read> {
    const pieces = createPieces();
    const { hold, end } = await collect(req, rules, pieces);
    return { bytes: pieces.take(), hold, end };
  }

  /** Resolves when all have arrived; what `pieces` then has is the body. */
  function collect(req: IncomingMessage, { maxBytes, owner }: BodyRules, pieces: Pieces) {
    // Not for await: leaving such a loop early destroys the socket, and the answer with it. And not
    // to the bytes: a call that waits keeps its request, and by these listeners the promise.
    return new Promise<CountedBody>((resolve, reject) => {
      const counted = budgets.begin(owner, refuse);
      let isOver = false;

      function refuse(cause: GatewayError): void {
        isOver = true;
        pieces.take();
        counted.end();
        reject(cause);
      }

      req.on('data', (piece: Buffer) => {
        if (isOver) return;
        pieces.add(piece);
        if (pieces.length() > maxBytes) refuse(tooLarge(maxBytes));
        else counted.count(piece.length);
      });
      req.on('end', () => {
        if (isOver) return;
        isOver = true;
        resolve(counted);
      });
      // Always comes; an error made for nothing would cost more than the reading.
      req.on('close', () => {
        if (!isOver) refuse(new GatewayError('incomplete_body'));
      });
      req.on('error', () => {});
    });
  }

  return async function readBody(req, rules, whenOver) {
    const { accepts, maxBytes } = rules;
    const type = req.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
    const isForm = accepts === 'json or form' && type === FORM_TYPE;
    if (type !== JSON_TYPE && !isForm) {
      const allowed = accepts === 'json' ? JSON_TYPE : `${FORM_TYPE} or ${JSON_TYPE}`;
      fail('unsupported_media_type', { details: `The Content-Type must be ${allowed}.` });
    }
    if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes);
    const { bytes, hold, end } = readWhole(req, rules) ?? (await readPieces(req, rules));
    whenOver(hold());
    end();
    const text = decode(bytes);
    return isForm
      ? { type: 'form', text, hold }
      : { type: 'json', value: parse(text, maxValues), text, hold };
  };
}

interface Read extends Pick<CountedBody, 'hold' | 'end'> {
  readonly bytes: Buffer;
}

const NO_BYTES = Buffer.alloc(0);

const tooLarge = (maxBytes: number) =>
  new GatewayError('body_too_large', { details: `The body may have at most ${maxBytes} bytes.` });

const decode = (bytes: Buffer): string =>
  decodeUtf8(bytes) ?? fail('parse_error', { details: 'The body is not UTF-8.' });

function parse(text: string, maxValues: number): unknown {
  const excess = findExceededBound(text, { levels: MAX_LEVELS, values: maxValues });
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
