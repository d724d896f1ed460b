import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';

/** What a request is for, by the beginning of "METHOD path". */
const PURPOSES: readonly (readonly [beginning: string, purpose: string])[] = [
  ['GET /.well-known/oauth-protected-resource', 'who protects the endpoint? (RFC 9728)'],
  ['GET /.well-known/', 'where to register and log in? (RFC 8414)'],
  ['POST /oauth/register', 'the client registers itself (RFC 7591)'],
  ['POST /oauth/token', 'the code becomes a token (PKCE)'],
  ['POST /oauth/revoke', 'the refresh token is revoked (RFC 7009)'],
  ['GET /oauth/authorize', 'the browser is sent to the provider'],
  ['GET /auth', 'the provider'],
  ['GET /login', 'its log-in page'],
  ['POST /login', 'a name is sent'],
  ['GET /mcp', 'a stream? 405: answers come as plain JSON'],
  ['DELETE /mcp', 'the session ends'],
];

export interface Transcript {
  readonly heading: (text: string) => void;
  readonly say: (text: string) => void;
  /** One line for one request. */
  readonly note: (method: string, url: URL, status: number, purpose?: string) => void;
  /** `fetch` that notes every request. */
  readonly fetch: FetchLike;
}

export function createTranscript(print: (line: string) => void): Transcript {
  const note: Transcript['note'] = (method, { pathname }, status, purpose) => {
    const request = `${method} ${shorten(pathname)}`;
    const known = PURPOSES.find(([beginning]) => `${method} ${pathname}`.startsWith(beginning));
    print(`  ${String(status)}  ${request.padEnd(45)} ${purpose ?? known?.[1] ?? ''}`.trimEnd());
  };
  return {
    heading: (text) => print(`\n${text}`),
    say: (text) => print(`       ${text}`),
    note,
    async fetch(input, init) {
      const answer = await fetch(input, init);
      const method = init?.method ?? 'GET';
      note(method, new URL(input), answer.status, rpcMethod(init?.body));
      return answer;
    },
  };
}

/** The log-in's own ids say nothing to a reader. */
const shorten = (path: string): string => path.replace(/^(\/login|\/auth)\/.+/, '$1/…');

function rpcMethod(body: unknown): string | undefined {
  if (typeof body !== 'string' || !body.startsWith('{')) return undefined;
  const message: unknown = JSON.parse(body);
  if (typeof message !== 'object' || message === null || !('method' in message)) return undefined;
  return String(message.method);
}
