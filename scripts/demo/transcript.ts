import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';

/** The purpose of a request, by the beginning of "METHOD path". */
const PURPOSES: readonly (readonly [beginning: string, purpose: string])[] = [
  ['GET /.well-known/oauth-protected-resource', 'who protects the endpoint? (RFC 9728)'],
  ['GET /.well-known/', 'where to register and log in? (RFC 8414)'],
  ['POST /oauth/register', 'the client registers itself (RFC 7591)'],
  ['POST /oauth/token', 'the code becomes a token (PKCE)'],
  ['POST /oauth/revoke', 'the refresh token is revoked (RFC 7009)'],
  ['GET /oauth/authorize', 'the browser is sent to the provider'],
  ['GET /auth', 'the provider'],
  ['GET /login', 'its login page'],
  ['POST /login', 'a name is sent'],
  ['GET /mcp', 'a stream? 405: answers come as plain JSON'],
  ['DELETE /mcp', 'the session ends'],
];

export interface Transcript {
  readonly printHeading: (text: string) => void;
  readonly printLine: (text: string) => void;
  /** One line for one request. */
  readonly noteRequest: (method: string, url: URL, status: number, purpose?: string) => void;
  /** `fetch` that notes every request. */
  readonly fetch: FetchLike;
}

export function createTranscript(print: (line: string) => void): Transcript {
  const noteRequest: Transcript['noteRequest'] = (method, { pathname }, status, purpose) => {
    const request = `${method} ${shortenPath(pathname)}`;
    const known = PURPOSES.find(([beginning]) => `${method} ${pathname}`.startsWith(beginning));
    print(`  ${String(status)}  ${request.padEnd(45)} ${purpose ?? known?.[1] ?? ''}`.trimEnd());
  };
  return {
    printHeading: (text) => print(`\n${text}`),
    printLine: (text) => print(`       ${text}`),
    noteRequest,
    async fetch(input, init) {
      const answer = await fetch(input, init);
      const method = init?.method ?? 'GET';
      noteRequest(method, new URL(input), answer.status, readRpcMethod(init?.body));
      return answer;
    },
  };
}

/** The ids of a login say nothing to a reader. */
const shortenPath = (path: string): string => path.replace(/^(\/login|\/auth)\/.+/, '$1/…');

function readRpcMethod(body: unknown): string | undefined {
  if (typeof body !== 'string' || !body.startsWith('{')) return undefined;
  const message: unknown = JSON.parse(body);
  if (typeof message !== 'object' || message === null || !('method' in message)) return undefined;
  return String(message.method);
}
