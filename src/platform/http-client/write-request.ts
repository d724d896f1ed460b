// RFC 9112: a request, as it is written. What could make two of it is refused.

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE' | 'OPTIONS';
  /** Where the request goes within its server: path and query. */
  readonly path: string;
  /** Lists of names and values in turn, one behind the other: to join them would cost each request an array. */
  readonly headers: readonly (readonly string[])[];
  readonly body: string | null;
}

/** A header that cannot be sent: it concerns this request alone. */
export class UnsendableHeader extends Error {
  override readonly name = 'UnsendableHeader';
}

/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/;

/** What says where a message ends, or what becomes of its connection, and what is for a proxy: only the client itself says that. */
const OWN: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Whether a header cannot be given to a request, whatever its value. */
export const isConnectionHeader = (name: string): boolean => OWN.has(name.toLowerCase());

/**
 * The head of a request with its end. `target` is what stands in its first line (RFC 9112 §3.2), `own` the lines of the
 * connection.
 *
 * @throws UnsendableHeader
 */
export function writeHead(
  { method, headers, body }: HttpRequest,
  target: string,
  own: string,
): string {
  let head = `${method} ${target} HTTP/1.1\r\n${own}`;
  for (const list of headers) head += writeHeaders(list);
  return body === null
    ? `${head}\r\n`
    : `${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n`;
}

function writeHeaders(list: readonly string[]): string {
  let lines = '';
  for (let at = 0; at + 1 < list.length; at += 2) {
    const name = list[at] ?? '';
    const value = list[at + 1] ?? '';
    if (!TOKEN.test(name) || UNSENDABLE.test(value) || isConnectionHeader(name))
      throw new UnsendableHeader('a header of the request cannot be sent');
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
}
