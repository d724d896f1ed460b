// §4.4, §4.7, §4.8: request bodies, read once and bounded.
import type { IncomingMessage } from 'node:http';
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import { decodeUtf8, findExceededBound } from '../../platform/json.ts';
import {
  createGrowingBuffer,
  type GrowingBuffer,
  type HoldBody,
} from '../../platform/memory/user-budgets.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { NO_BODY, type RequestBody } from '../endpoint/message.ts';
import { createBodyMemory, type MemoryOwner } from './transfer-memory.ts';

/** A body that is still with the transport; whoever passes it on looks at nothing in it. */
export interface IncomingBody {
  readonly req: IncomingMessage;
  /** True if it was read to its end. */
  isRead: boolean;
  /** Ends the counting of its bytes on behalf of the request: replied to, or its caller gone. */
  release(): void;
}

interface BodyRules {
  readonly accepts: 'json' | 'json or form';
  readonly owner: MemoryOwner;
  /** A bound less than `MAX_BODY_BYTES`. */
  readonly maxBytes?: number | undefined;
}

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

/** Far more than anybody writes, far less than fills a stack. */
const MAX_LEVELS = 200;

export const openBody = (req: IncomingMessage): IncomingBody => ({
  req,
  isRead: false,
  release: NOTHING_TO_RELEASE,
});

const NOTHING_TO_RELEASE = () => {};

export type ReadRequestBody = ReturnType<typeof createBodyReader>;

export function createBodyReader({ config, clock }: Runtime) {
  const { maxBodyBytes, maxBodyValues } = config.http;
  const memory = createBodyMemory(clock, maxBodyBytes);

  /** Most bodies are there when they are asked for: nothing has to wait, or to be counted, for them. */
  function holdIfWhole(
    req: IncomingMessage,
    owner: MemoryOwner,
    maxBytes: number,
  ): HoldBody | undefined {
    const { readableLength } = req;
    // node:http says that a request is complete only when it has been read on from there.
    const isThere = req.complete || readableLength === Number(req.headers['content-length']);
    if (!isThere || req.destroyed) return undefined;
    if (readableLength > maxBytes) throw createTooLargeError(maxBytes);
    // Only bodies of users count after they have arrived.
    if (typeof owner !== 'object') return NO_BODY.hold;
    // It may not fit beside the others.
    if (!memory.users.find(owner.user).hasRoomFor(readableLength)) return undefined;
    return memory.users.createHold(owner.user, { bytes: readableLength });
  }

  /** Resolves when all have arrived; what `buffer` then has is the body. */
  function collectPieces(
    req: IncomingMessage,
    owner: MemoryOwner,
    maxBytes: number,
    buffer: GrowingBuffer,
  ) {
    // Not for await: leaving such a loop early destroys the socket, and the reply with it.
    // Does not resolve to the bytes: the listeners stay on the request and would keep them alive.
    return new Promise<ReturnType<typeof memory.startBody>>((resolve, reject) => {
      const counted = memory.startBody(owner, stop);
      let isOver = false;

      function stop(cause: GatewayError) {
        isOver = true;
        buffer.take();
        counted.end();
        reject(cause);
      }

      req.on('data', (piece: Buffer) => {
        if (isOver) return;
        buffer.append(piece);
        if (buffer.byteLength() > maxBytes) stop(createTooLargeError(maxBytes));
        else counted.count(piece.length);
      });
      req.on('end', () => {
        if (isOver) return;
        isOver = true;
        resolve(counted);
      });
      // Emitted for every request; creating an error each time would cost more than reading the body.
      req.on('close', () => {
        if (!isOver) stop(new GatewayError('incomplete_body'));
      });
      req.on('error', () => {});
    });
  }

  /**
   * Called at most once for each body. Its bytes count against the owner's budget until it is released. A promise only
   * where some of it is still to come.
   *
   * @throws GatewayError `unsupported_media_type`, `unsupported_content_coding`, `body_too_large`, `incomplete_body`,
   * `request_timeout`, `overloaded` or `parse_error`, at once or by the promise.
   */
  return function readBody(
    body: IncomingBody,
    { accepts, owner, maxBytes = maxBodyBytes }: BodyRules,
  ): RequestBody | Promise<RequestBody> {
    const { req } = body;
    const limit = Math.min(maxBytes, maxBodyBytes);
    const isForm = checkContentType(req, accepts) === FORM_TYPE;
    const codings = req.headers['content-encoding']?.split(',');
    // RFC 9110 §15.5.16: the header tells why it was refused, and what is allowed.
    if (codings?.some((coding) => !/^\s*(identity)?\s*$/i.test(coding)))
      fail('unsupported_content_coding', { headers: { 'Accept-Encoding': 'identity' } });
    if (Number(req.headers['content-length'] ?? 0) > limit) throw createTooLargeError(limit);
    const holdNow = holdIfWhole(req, owner, limit);
    if (holdNow !== undefined) {
      const bytes: Buffer = req.read() ?? NO_BYTES;
      // Nothing comes any more; that this ends is for node:http to see.
      req.resume();
      noteRead(body, holdNow);
      return parseBody(bytes, isForm, holdNow);
    }
    const buffer = createGrowingBuffer();
    return collectPieces(req, owner, limit, buffer).then(({ hold, end }) => {
      const bytes = buffer.take();
      noteRead(body, hold);
      end();
      return parseBody(bytes, isForm, hold);
    });
  };

  function noteRead(body: IncomingBody, hold: HoldBody) {
    body.isRead = true;
    body.release = hold();
  }

  function parseBody(bytes: Buffer, isForm: boolean, hold: HoldBody): RequestBody {
    const text = decodeUtf8(bytes) ?? fail('parse_error', { details: 'The body is not UTF-8.' });
    return isForm
      ? { type: 'form', text, hold }
      : { type: 'json', value: parseJson(text, maxBodyValues), text, hold };
  }
}

const NO_BYTES = Buffer.alloc(0);

/** @throws GatewayError `unsupported_media_type`. */
function checkContentType(req: IncomingMessage, accepts: BodyRules['accepts']) {
  const value = req.headers['content-type'];
  // As nearly all callers write it: nothing has to be taken apart.
  if (value === JSON_TYPE) return value;
  const type = value?.split(';', 1)[0]?.trim().toLowerCase();
  if (type === JSON_TYPE || (type === FORM_TYPE && accepts === 'json or form')) return type;
  const allowed = accepts === 'json' ? JSON_TYPE : `${FORM_TYPE} or ${JSON_TYPE}`;
  return fail('unsupported_media_type', { details: `The Content-Type must be ${allowed}.` });
}

const createTooLargeError = (maxBytes: number) =>
  new GatewayError('body_too_large', { details: `The body may have at most ${maxBytes} bytes.` });

function parseJson(text: string, maxValues: number): unknown {
  const exceeded = findExceededBound(text, { levels: MAX_LEVELS, values: maxValues });
  if (exceeded === 'values')
    fail('body_too_large', {
      details: `The body may have at most ${maxValues} JSON values (MAX_BODY_VALUES).`,
    });
  if (exceeded === 'levels')
    fail('parse_error', { details: `The body is nested deeper than ${MAX_LEVELS} levels.` });
  try {
    return JSON.parse(text);
  } catch {
    return fail('parse_error', { details: 'The body is not valid JSON.' });
  }
}

// RFC 9112 §6: what two readers of one connection could take for different requests.

/** For so long bytes after a reply are still read and dropped, so that its caller sees the reply. */
export const DISCARD_MS = 2000;

/** Drops the rest of a body that nobody reads, for a while. */
export function discardBody(req: IncomingMessage, clock: Clock): void {
  const { headers } = req;
  req.resume();
  const hasBody =
    headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (req.complete || !hasBody) return;
  const cancel = clock.after(DISCARD_MS, () => req.destroy());
  req.once('end', cancel);
}

/**
 * True if the coding is another than `chunked`: node:http would pass on what is below as it is. HTTP/1.0
 * has none, and a proxy of that version may have taken the body for something else (RFC 9112 §6.1).
 */
export function hasUnsupportedCoding({ httpVersion, headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  return coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked');
}
