/** `fetch`, as much of it as the gateway needs; tests and embedders may bring their own. */
export type Fetch = (url: string, init: FetchInit) => Promise<Response>;

export interface FetchInit extends Pick<RequestInit, 'method' | 'redirect' | 'signal'> {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface FetchLimits {
  /** Milliseconds for the whole exchange, body included. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

export interface FetchedAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** The other side could not be reached, redirected, or answered too slowly or too much. */
export class FetchFailed extends Error {
  override readonly name = 'FetchFailed';
}

/**
 * One exchange with another server, bounded in time and size. Redirects are not followed: the
 * address was configured, and a redirect could lead anywhere.
 *
 * @throws FetchFailed with its cause.
 */
export async function fetchLimited(
  fetch: Fetch,
  url: string,
  init: FetchInit,
  { timeoutMs, maxBytes }: FetchLimits,
): Promise<FetchedAnswer> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const answer = await fetch(url, { ...init, signal, redirect: 'manual' });
    if (answer.status >= 300 && answer.status < 400) {
      await answer.body?.cancel();
      throw new Error(`answered with a redirect (${answer.status}), which is not followed`);
    }
    return {
      status: answer.status,
      headers: answer.headers,
      body: await readLimited(answer, maxBytes),
    };
  } catch (cause) {
    throw new FetchFailed(`${withoutQuery(url)} failed`, { cause });
  }
}

/** An address for the log: its query may hold a key. */
export function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

async function readLimited(answer: Response, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop by a throw cancels the stream, which closes the connection.
  for await (const chunk of answer.body ?? []) {
    length += chunk.byteLength;
    if (length > maxBytes) throw new Error(`answered with more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
