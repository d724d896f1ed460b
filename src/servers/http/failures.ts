// §18.4: descriptions of failures for the log and for the client's model: without addresses, headers or text from the server.
import type { IncomingHttpHeaders } from 'node:http';
import { UpstreamError } from '../../mcp/upstream/upstream.ts';
import { getErrorCode, isNobodyThere, isShortage } from '../../platform/error-code.ts';
import { UnsendableHeader } from '../../platform/http-client/http-pool.ts';
import { InvalidResponse } from '../../platform/http-client/read-response.ts';
import { isObject } from '../../platform/json.ts';
import { stripUri } from '../../platform/secret-texts.ts';

/** Converts a connection failure; `progress` is how far the request had got. */
export function toConnectionError(
  cause: unknown,
  progress: 'unsent' | 'sent' | 'answered',
): UpstreamError {
  const fail = (words: string) => new UpstreamError('invalid', words, { cause });
  // This concerns one request, not the server as a whole.
  if (cause instanceof InvalidResponse) return fail(`it answered no valid HTTP: ${cause.message}`);
  // The server may have asked for the header (x-mcp-header).
  if (cause instanceof UnsendableHeader)
    return new UpstreamError('unavailable', 'the request has a header that cannot be sent', {
      cause,
    });
  if (progress === 'answered') return fail('it closed the connection in the middle of its answer');
  const code = findCode(cause) ?? '';
  const known = Object.hasOwn(REASONS, code) ? REASONS[code] : undefined;
  const reason = CERTIFICATE.test(code) ? `its certificate is refused (${code})` : known;
  const message = reason ?? `the connection failed${code === '' ? '' : ` (${code})`}`;
  return new ConnectionError(message, code, cause, progress === 'sent');
}

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_|_TLS_/;
const TLS = /CERT|SELF_SIGNED|UNABLE_TO_|_TLS_|_SSL_/;

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'it refuses connections',
  ENOTFOUND: 'its host name is not known',
  EAI_AGAIN: 'its host name cannot be looked up now',
  EHOSTUNREACH: 'its host cannot be reached',
  ENETUNREACH: 'its host cannot be reached',
  ETIMEDOUT: 'it does not answer',
  ECONNRESET: 'it closed the connection',
  EPIPE: 'it closed the connection',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS: perhaps its address begins with http:',
  ERR_PROXY_REFUSED: 'the proxy does not let the gateway through to it',
  ERR_PROXY_UNREACHABLE: 'the proxy to it cannot be reached',
  ERR_PROXY_FAILED: 'the proxy to it cannot be used',
  ERR_POOL_CLOSED: 'the gateway no longer uses it',
  EMFILE: 'the gateway has too many files open: raise its limit (ulimit -n, LimitNOFILE)',
  ENFILE: 'the system has too many files open',
  EADDRNOTAVAIL: 'the gateway has no port left to connect from',
};

/** The connection to the server could not be opened, or was lost. */
export class ConnectionError extends UpstreamError {
  /** True if an open connection was closed: for one request only, or because the server stopped. */
  readonly isBroken: boolean;

  /** True if every caller would fail: nothing, or a different program, responds at the address. */
  readonly isEverybodys: boolean;
  /** True if this machine has run out of file descriptors, ports or memory, which says nothing about the server. */
  readonly isOwn: boolean;

  constructor(reason: string, code: string, cause: unknown, wasSent: boolean) {
    super(wasSent ? 'interrupted' : 'unavailable', reason, { cause });
    this.isBroken = ['ECONNRESET', 'EPIPE'].includes(code);
    this.isEverybodys = isNobodyThere(code) || code === 'ERR_PROXY_UNREACHABLE' || TLS.test(code);
    this.isOwn = isShortage(code);
  }
}

/** True if a status says that the server as a whole cannot be used now. */
export const isDownStatus = (status: number): boolean =>
  (status >= 300 && status < 400) || (status >= 502 && status <= 504);

/** If several addresses were tried, each has its own error. */
function findCode(cause: unknown): string | undefined {
  const code = getErrorCode(cause);
  if (code !== undefined) return code;
  if (cause instanceof AggregateError) return findCode(cause.errors[0]);
  return cause instanceof Error && cause.cause !== undefined ? findCode(cause.cause) : undefined;
}

/** The server answered with a status that is not a success. */
export class RefusalError extends UpstreamError {
  readonly status: number;

  constructor(status: number, message: string, logReason?: string) {
    super(wasPerhapsHandled(status) ? 'interrupted' : 'unavailable', message, { logReason });
    this.status = status;
  }
}

/**
 * A proxy also answers 503 if a server ended in the middle of a request, and 301 to 303 may lead to the result of a POST (RFC 9110
 * §15.4.4).
 */
const wasPerhapsHandled = (status: number) => status >= 500 || (status >= 301 && status <= 303);

export const isUnauthorizedError = (error: unknown): boolean =>
  error instanceof RefusalError && error.status === 401;

/** Converts a status that is not a success. */
export const toRefusal = (answer: RefusedAnswer): RefusalError =>
  new RefusalError(answer.status, describeRefusal(answer), describeRedirect(answer));

export interface RefusedAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The server's URL. */
  readonly url: string;
  /** True if the request had a token from the configuration file's "headers", and no user's token. */
  readonly hadToken: boolean;
  /** True if the request was sent with a user's connection (§24), which is kept. */
  readonly hadLogin: boolean;
}

function describeRefusal({ status, headers, hadToken, hadLogin }: RefusedAnswer) {
  if (status === 304)
    return 'it answered 304, which is for caches: turn caching off in the proxy in front of it';
  if (status >= 300 && status < 400)
    return `it redirects to a different address (${status}), which is not followed: configure the address where it answers`;
  if (status === 401 && hadLogin)
    return 'it refused this call (401); the login is kept, because something behind the server may have refused, not the server itself; if it refuses all calls, connect it again';
  if (status === 401 && hadToken)
    return 'it refuses the token in its "headers" (401): check that it is complete (that of an Authorization header begins with "Bearer "), is for this server, and has neither expired nor been revoked';
  if (status === 401 && /\bresource_metadata=/i.test(headers['www-authenticate'] ?? ''))
    return 'it requires each user to log in to it (401): give it "auth": {"type": "oauth"} in the configuration file, or a token in its "headers"';
  if (status === 401 || status === 403)
    return `it refuses the credentials in its "headers" or "auth", or requires credentials and gets none (${status})`;
  if (status === 404 || status === 405) {
    const type = readMediaType(headers);
    const what = type === undefined ? status : `${status}, ${type}`;
    return `no MCP server answers at its address (${what}): ${CHECK_PATH}`;
  }
  if (status === 413)
    return 'the request is longer than it, or a proxy in front of it, takes (413)';
  if (status === 429) return 'it gets too many requests (429)';
  return status >= 500 ? `it fails (${status})` : `it refuses the request (${status})`;
}

/** For the log only, since it contains an address; undefined if there is none. */
function describeRedirect({ status, headers, url }: RefusedAnswer): string | undefined {
  const { location = '' } = headers;
  if (status === 304 || status >= 400 || location === '' || !URL.canParse(location, url)) return;
  const { protocol, href } = new URL(location, url);
  if (!/^https?:$/.test(protocol)) return;
  const address = stripUri(href).slice(0, MAX_ADDRESS);
  return `it redirects to ${address} (${status}), which is not followed: write this address in the configuration file`;
}

const MAX_ADDRESS = 500;

/** For an answer that is not JSON: most often from a different program, or from another path of the same one. */
export function createNoJsonError(headers: IncomingHttpHeaders): UpstreamError {
  const type = readMediaType(headers);
  return createInvalidError(
    type === undefined || type.endsWith('json') || type === 'text/event-stream'
      ? 'it answered what is no JSON'
      : `it answered ${type}, which is no MCP: ${CHECK_PATH}`,
  );
}

/** `name` is the name of a content coding. */
export const createCodingError = (name: string): UpstreamError =>
  createInvalidError(
    `it answered with Content-Encoding ${name}, which the gateway did not ask for and cannot decode: turn compression off in it, or in the proxy in front of it`,
  );

/** For JSON that is not a message: it belongs to a different protocol, unless it names JSON-RPC. */
export const createNoMessageError = (value: unknown): UpstreamError =>
  createInvalidError(
    isObject(value) && value.jsonrpc === '2.0'
      ? 'it answered what is no message of MCP'
      : `it answered JSON that is no MCP: ${CHECK_PATH}`,
  );

const CHECK_PATH = 'check the path of its "url", which often is /mcp';

/** The header is untrusted: only a value in the form of a media type is repeated. */
const readMediaType = (headers: IncomingHttpHeaders) =>
  /^[a-z]+\/[a-z0-9.+-]{1,60}(?=$|[ ;])/.exec(headers['content-type']?.toLowerCase() ?? '')?.[0];

export const createInvalidError = (words: string): UpstreamError =>
  new UpstreamError('invalid', words);
