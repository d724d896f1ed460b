// §4.4, §4.7, §4.8: reads each request body exactly once, up to a limit.
import type { IncomingMessage } from 'node:http';
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import { decodeUtf8, findExceededBound } from '../../platform/json.ts';
import type { HoldBody } from '../../platform/memory/user-budgets.ts';
import { createGrowingBuffer, type GrowingBuffer } from '../../platform/pieces.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { NO_BODY, type RequestBody } from '../endpoint/message.ts';
import { createBodyMemory, type MemoryOwner } from './transfer-memory.ts';

/** A body that is still with the transport. */
export interface IncomingBody {
  readonly req: IncomingMessage;
  /** True once it was read to its end. */
  isRead: boolean;
  /** Stops counting its bytes for the request, which has been answered or whose client is gone. */
  release: () => void;
}

interface BodyRules {
  readonly accepts: 'json' | 'json or form';
  readonly owner: MemoryOwner;
  /** A bound below `MAX_BODY_BYTES`. */
  readonly maxBytes?: number | undefined;
}

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

/** Far more than real clients send, far less than fills a stack. */
const MAX_LEVELS = 200;

export const NOTHING_TO_RELEASE = (): void => {};

export function createBodyReader({ config, clock }: Runtime) {
  const { maxBodyBytes, maxBodyValues } = config.http;
  const memory = createBodyMemory(clock, maxBodyBytes);

  /** Resolves when all pieces have arrived in `buffer`. */
  function collectPieces(
    req: IncomingMessage,
    owner: MemoryOwner,
    maxBytes: number,
    buffer: GrowingBuffer,
  ) {
    // Not `for await`: leaving such a loop early destroys the socket, and the reply with it.
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
      // Emitted on every request: creating an error each time would cost more than reading the body.
      req.on('close', () => {
        if (!isOver) stop(new GatewayError('incomplete_body'));
      });
      req.on('error', () => {});
    });
  }

  /**
   * Reads a body, at most once. Its bytes count against the owner's budget until it is released.
   *
   * @throws GatewayError `unsupported_media_type`, `unsupported_content_coding`, `body_too_large`, `incomplete_body`,
   * `request_timeout`, `overloaded` or `parse_error`.
   */
  return async function readBody(
    body: IncomingBody,
    { accepts, owner, maxBytes = maxBodyBytes }: BodyRules,
  ): Promise<RequestBody> {
    const { req } = body;
    const { headers, readableLength } = req;
    const limit = Math.min(maxBytes, maxBodyBytes);
    // Nearly all clients write it this way: no parsing is needed.
    const type =
      headers['content-type'] === JSON_TYPE
        ? JSON_TYPE
        : parseContentType(headers['content-type'], accepts);
    const codings = headers['content-encoding']?.split(',');
    // RFC 9110 §15.5.16: the header says why it was refused, and what is allowed.
    if (codings?.some((coding) => !/^\s*(identity)?\s*$/i.test(coding)))
      fail('unsupported_content_coding', { headers: { 'Accept-Encoding': 'identity' } });
    if (Number(headers['content-length'] ?? 0) > limit) throw createTooLargeError(limit);
    // Most bodies have already arrived: nothing has to wait for them. node:http sets `complete` only when the request is read on.
    const isWhole = req.complete || readableLength === Number(headers['content-length']);
    if (isWhole && !req.destroyed) {
      if (readableLength > limit) throw createTooLargeError(limit);
      const hold = findHold(owner, readableLength);
      if (hold !== undefined) {
        const bytes: Buffer = req.read() ?? NO_BYTES;
        // Makes node:http notice the end of the body.
        req.resume();
        body.isRead = true;
        body.release = hold();
        return parseBody(bytes, type, hold);
      }
    }
    const buffer = createGrowingBuffer();
    const { hold, end } = await collectPieces(req, owner, limit, buffer);
    const bytes = buffer.take();
    body.isRead = true;
    body.release = hold();
    end();
    return parseBody(bytes, type, hold);
  };

  /**
   * Undefined if the body does not fit in addition to the user's other bodies. Only bodies of users count after they have
   * arrived.
   */
  function findHold(owner: MemoryOwner, bytes: number): HoldBody | undefined {
    if (typeof owner !== 'object') return NO_BODY.hold;
    const { users } = memory;
    return users.find(owner.user).hasRoomFor(bytes)
      ? users.createHold(owner.user, { bytes })
      : undefined;
  }

  function parseBody(bytes: Buffer, type: string, hold: HoldBody): RequestBody {
    const text = decodeUtf8(bytes) ?? fail('parse_error', { details: 'The body is not UTF-8.' });
    if (type === FORM_TYPE) return { type: 'form', text, hold };
    const exceeded = findExceededBound(text, { levels: MAX_LEVELS, values: maxBodyValues });
    if (exceeded === 'values')
      fail('body_too_large', {
        details: `The body may have at most ${maxBodyValues} JSON values (MAX_BODY_VALUES).`,
      });
    if (exceeded === 'levels')
      fail('parse_error', { details: `The body is nested deeper than ${MAX_LEVELS} levels.` });
    try {
      return { type: 'json', value: JSON.parse(text), text, hold };
    } catch {
      return fail('parse_error', { details: 'The body is not valid JSON.' });
    }
  }
}

const NO_BYTES = Buffer.alloc(0);

/** @throws GatewayError `unsupported_media_type`. */
function parseContentType(value: string | undefined, accepts: BodyRules['accepts']) {
  const type = value?.split(';', 1)[0]?.trim().toLowerCase();
  if (type === JSON_TYPE || (type === FORM_TYPE && accepts === 'json or form')) return type;
  const allowed = accepts === 'json' ? JSON_TYPE : `${FORM_TYPE} or ${JSON_TYPE}`;
  return fail('unsupported_media_type', { details: `The Content-Type must be ${allowed}.` });
}

const createTooLargeError = (maxBytes: number) =>
  new GatewayError('body_too_large', { details: `The body may have at most ${maxBytes} bytes.` });

// RFC 9112 §6: request smuggling, and the rest of bodies that are not read.

/** Bytes after a reply are read and dropped for this long, so that the client sees the reply. */
export const DISCARD_MS = 2000;

/** Drops the rest of a body that is not needed, for a while. */
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
 * Returns true if the coding is not `chunked`: node:http would pass on the encoded bytes as they are. HTTP/1.0 has no
 * transfer codings, and a proxy of that version may have read the body differently (RFC 9112 §6.1).
 */
export function hasUnsupportedCoding({ httpVersion, headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  return coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked');
}
