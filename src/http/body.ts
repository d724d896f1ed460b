// Spec §4.4, §4.7, §4.8, decisions 3: request bodies, read once and bounded.
import type { Readable } from 'node:stream';
import { fail, GatewayError } from '../core/errors/gateway-error.ts';
import type { RequestBody } from '../core/message.ts';

export interface BodyRules {
  readonly accepts: 'json' | 'json or form';
  readonly maxBytes: number;
}

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

/**
 * @throws GatewayError `unsupported_media_type`, `body_too_large` or `parse_error`.
 */
export async function readBody(
  stream: Readable,
  contentType: string | undefined,
  { accepts, maxBytes }: BodyRules,
): Promise<RequestBody> {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase();
  const isForm = accepts === 'json or form' && type === FORM_TYPE;
  if (type !== JSON_TYPE && !isForm) {
    const allowed = accepts === 'json' ? JSON_TYPE : `${FORM_TYPE} or ${JSON_TYPE}`;
    fail('unsupported_media_type', { details: `The Content-Type must be ${allowed}.` });
  }
  const text = decode(await collect(stream, maxBytes));
  return isForm ? { type: 'form', text } : { type: 'json', value: parse(text) };
}

async function collect(stream: Readable, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  // Not for await: leaving such a loop early destroys the socket, and the answer with it.
  return new Promise((resolve, reject) => {
    stream.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      chunks.length = 0;
      reject(
        new GatewayError('body_too_large', {
          details: `The body may have at most ${maxBytes} bytes.`,
        }),
      );
    });
    stream.on('end', () =>
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)),
    );
    stream.on('error', reject);
    stream.on('close', () => {
      // Always comes; an error made for nothing would cost more than the reading.
      if (!stream.readableEnded) {
        reject(new Error('The caller hung up before the body was complete'));
      }
    });
  });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    return fail('parse_error', { details: 'The body is not UTF-8.' });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return fail('parse_error', { details: 'The body is not valid JSON.' });
  }
}
