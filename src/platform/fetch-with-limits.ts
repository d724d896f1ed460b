import type { HttpRequest } from './http-client/http-pool.ts';
import { dropByteOrderMark } from './pieces.ts';
import { stripUri } from './secret-texts.ts';

/** The part of `fetch` that the gateway needs; tests and embedders may pass their own. Redirects are not followed. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>;

export interface FetchInit {
  readonly method?: HttpRequest['method'];
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
  /** Needed by implementations that would otherwise follow redirects. */
  readonly redirect?: 'manual';
}

export interface FetchResponse {
  readonly status: number;
  readonly headers: {
    /** The value of a header, whose name is case-insensitive; repeated headers are joined. Null if absent. */
    get(name: string): string | null;
  };
  /**
   * Must be read to its end or cancelled, which closes the connection; leaving a loop over the body closes it as well. Null if
   * there is no body.
   */
  readonly body: (AsyncIterable<Uint8Array> & { cancel(): Promise<void> }) | null;
}

interface FetchLimits {
  /** Milliseconds for the whole exchange, including the body. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** If true, redirects are returned to the caller instead of failing. They are not followed either way. */
  readonly acceptsRedirects?: boolean;
  /** Cancels the exchange before its timeout. */
  readonly signal?: AbortSignal | undefined;
}

export interface FetchedResponse extends Pick<FetchResponse, 'status' | 'headers'> {
  readonly body: Buffer;
}

/** The server could not be reached, answered with a redirect, was too slow, or sent too much. */
export class FetchError extends Error {
  override readonly name = 'FetchError';
}

/**
 * One request and its response, bounded in time and size. Redirects are not followed: the address was configured, and a redirect
 * could lead anywhere.
 *
 * @throws FetchError with its cause.
 */
export async function fetchWithLimits(
  fetch: Fetch,
  url: string,
  init: FetchInit,
  { timeoutMs, maxBytes, acceptsRedirects = false, signal: ended }: FetchLimits,
): Promise<FetchedResponse> {
  const timeLimit = AbortSignal.timeout(timeoutMs);
  const signal = ended === undefined ? timeLimit : AbortSignal.any([timeLimit, ended]);
  try {
    const response = await fetch(url, { ...init, signal, redirect: 'manual' });
    if (!acceptsRedirects && response.status >= 300 && response.status < 400) {
      await response.body?.cancel();
      throw new Error(`answered with a redirect (${response.status}), which is not followed`);
    }
    return {
      status: response.status,
      headers: response.headers,
      body: await readBody(response.body ?? [], maxBytes),
    };
  } catch (cause) {
    throw new FetchError(`${stripUri(url)} failed`, { cause });
  }
}

/**
 * Reads a whole body. Drops a leading byte order mark, which is not part of JSON, as `fetch` does.
 *
 * @throws the error that `refuse` creates, for a body that is too long.
 */
export async function readBody(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
  refuse = () => new Error(`answered with more than ${maxBytes} bytes`),
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.byteLength;
    if (length > maxBytes) throw refuse();
    chunks.push(chunk);
  }
  return Buffer.concat(dropByteOrderMark(chunks));
}
