// RFC 9112 §6: what two readers of one connection could take for different requests.
import { GatewayError } from '../core/errors/gateway-error.ts';

interface RequestHead {
  readonly httpVersion: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Whether bytes follow the head. */
export const hasBody = ({ headers }: RequestHead): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/**
 * Whether the coding is another than `chunked`: node:http would pass on what is below as it is. HTTP/1.0
 * has none, and a proxy of that version may have taken the body for something else (RFC 9112 §6.1).
 */
export function hasUnsupportedCoding({ httpVersion, headers }: RequestHead): boolean {
  const coding = headers['transfer-encoding'];
  if (coding === undefined) return false;
  return httpVersion === '1.0' || String(coding).toLowerCase() !== 'chunked';
}

export const createUnsupportedCodingError = (): GatewayError =>
  new GatewayError('bad_request', { details: 'The only Transfer-Encoding allowed is chunked.' });
