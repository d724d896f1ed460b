// A request, its body and its reply as plain data; the user of a request; readers of headers and claims.
import type { CancelSignal } from '../../platform/cancellation.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { WindowVerdict } from '../../store/store.ts';
import type { RequestTrace } from '../../telemetry/tracing/tracing.ts';

/** One HTTP request as the features see it: plain data, no socket. */
export interface GatewayRequest {
  /** Upper case, as received. */
  readonly method: string;
  /** The path as received, not decoded, without the query, the path of BASE_URL and a slash after an MCP endpoint. */
  readonly path: string;
  /** The query as received, without its question mark. */
  readonly query: string;
  /** Lower-case names; repeated headers as node:http joins them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** §8.2: the caller's address, canonical, or `unknown`. */
  readonly clientIp: string;
  /** Aborted when the client hangs up before the reply. Created on first use. */
  signal(): CancelSignal;
  /** Undefined without tracing. A member, since a WeakMap of all requests would slow garbage collection. */
  readonly trace?: RequestTrace | undefined;
}

/** A request body, read once at the edge. */
export interface RequestBody {
  /** `form` is `application/x-www-form-urlencoded`. */
  readonly type: 'json' | 'form';
  /** The parsed JSON; undefined for a form. */
  readonly value?: unknown;
  readonly text: string;
  /**
   * Counts the bytes against the budget of the user (§12) until the returned function is called, maybe after the client has left.
   */
  hold(): () => void;
}

/** The body of a request without a body, or whose body is not read. */
export const NO_BODY: RequestBody = { type: 'json', text: '', hold: () => () => {} };

/** Values by their names on the wire. */
export type ReplyHeaders = Readonly<Record<string, string>>;

/** A reply of the service. */
export interface Reply {
  readonly status: number;
  readonly headers?: ReplyHeaders;
  readonly body?: string | Uint8Array | undefined;
  /** Replaces `body` if it consists of existing buffers, which are not copied. */
  readonly pieces?: readonly Uint8Array[] | undefined;
  /**
   * Replaces `body`: sent piece by piece until it ends. Ended early, by its iterator's `return`, when the client hangs up or the
   * service closes. Each piece is one or more whole events of an event stream: between them comments are sent.
   */
  readonly stream?: ReplyStream;
  /** Describes the request for the log, in addition to `facts`; called only if a line is written. */
  describe?(): Reply['facts'];
  /** Returns the outcome of a streamed reply for the log when it has ended. */
  outcome?(): Pick<Reply, 'error' | 'facts'>;
  /** The error behind the reply, for the log only; never sent. */
  readonly error?: ReplyError;
  /** Further facts for the log: never a secret. */
  readonly facts?: JsonObject;
  /** The trace of its request. */
  readonly trace?: RequestTrace;
}

export interface ReplyStream extends AsyncIterable<string> {
  /** Reports the number of waiting characters, now and on every change; for one watcher. */
  watchWaiting?(watcher: WaitingWatcher): void;
}

export interface WaitingWatcher {
  noteWaiting(characters: number): void;
}

/** An error for the log. */
interface ReplyError {
  readonly key: string;
  readonly message: string;
  readonly cause?: unknown;
  /** Set if the status alone does not determine the level. */
  readonly logLevel?: 'debug' | 'warn' | undefined;
}

/** The rest of the work once a request was checked and admitted. */
export type PendingReply = () => Reply | Promise<Reply>;

/** Returns a header of a request; of a repeated one the first. */
export function getHeader(
  request: Pick<GatewayRequest, 'headers'>,
  name: string,
): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' || value === undefined ? value : value[0];
}

export const createJsonReply = (status: number, body: unknown, headers?: ReplyHeaders): Reply => ({
  status,
  headers: { 'Content-Type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

/** Redirects with 303: the browser continues with a GET. */
export const createRedirectReply = (location: string, headers: Reply['headers'] = {}): Reply => ({
  status: 303,
  headers: {
    Location: location,
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    ...headers,
  },
});

/** §4.12: `X-RateLimit-*`. */
export const createLimitHeaders = ({ limit, remaining, resetAt }: WindowVerdict) => ({
  'X-RateLimit-Limit': String(limit),
  'X-RateLimit-Remaining': String(remaining),
  // Rounded up: at that second the entry has certainly left the window.
  'X-RateLimit-Reset': String(Math.ceil(resetAt / 1000)),
});

const SCHEME = 'bearer ';

/** RFC 6750 §2.1: reads the token of an Authorization header; undefined for any other header. */
export function readBearerToken(authorization = ''): string | undefined {
  if (authorization.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return undefined;
  let start = SCHEME.length;
  while (authorization[start] === ' ') start += 1;
  const token = authorization.slice(start);
  // A regular expression would take a microsecond. A header can have no other white space (RFC 9110 §5.5).
  const hasSpace = token.includes(' ') || token.includes('\t') || token.includes('\u00A0');
  return token === '' || hasSpace ? undefined : token;
}

// §2.3: the user and the OAuth client of a request, as its token names them.

/**
 * §2.3: the user of a verified token. Immutable: built for each request with a provider token, and shared by all requests
 * with the tokens of one grant.
 */
export interface UserContext {
  /** The subject: the user's id at the provider. Never empty. */
  readonly sub: string;
  /** The provider that `sub` is a user of; absent for those of `OIDC_ISSUER`. */
  readonly issuer?: string;
  readonly email?: string;
  /** True if the provider has verified `email`; undefined if it does not say. Do not use `email` if false. */
  readonly emailVerified?: boolean;
  readonly name?: string;
  readonly groups?: readonly string[];
  /** All claims of the token, as the provider signed them; for the gateway's own token, those that its grant has. */
  readonly claims: JsonObject;
  /**
   * The original JWT, for tools that call other services on the user's behalf. A secret. Absent if the gateway's own token admitted
   * the user.
   */
  readonly token?: string;
  /** The grant, if the gateway's own token admitted the user. The step that counts the call checks that it is still valid. */
  readonly grant?: GrantCheck;
}

/** Identifies the user's credential in caches. No part of a token can be read from it. */
export const identifyCredential = ({ token, grant }: UserContext): string =>
  grant === undefined ? hashSha256(token ?? '') : `${grant.id}.${grant.version}`;

/** A grant as this process knows it. It is valid for a call if the store has the same version under its key. */
interface GrantCheck {
  readonly id: string;
  /** The OAuth client that it was issued to. */
  readonly clientId: string;
  /** The key in the store. */
  readonly key: string;
  /** The first `GRANT_VERSION_LENGTH` characters of the value there (store.ts), which differ after each change. */
  readonly version: string;
  /** Epoch milliseconds when it expires because of its age, along with the client's open streams; infinity for never. */
  readonly endsAt?: number;
  /** True if the client logged in as itself: there is no person, and no provider token. */
  readonly isMachine?: true;
  /** The most calls in a window; overrides the limit of a user. */
  readonly maxCalls?: number | undefined;
}

/**
 * Returns the provider's access token for a user: the one that admitted the user, or the one of the grant, refreshed if it is about
 * to expire. Undefined if there is no valid one.
 */
export type GetProviderToken = (user: UserContext) => Promise<string | undefined>;

/** For modes where clients get the provider's tokens. */
export const getOriginalToken: GetProviderToken = async ({ token }) => token;

// §2.3: the user's e-mail address, and whether it was verified.

/**
 * Reads the e-mail address. `emailVerified` is undefined if the token has no claim for it: many companies' providers, which alone
 * set the addresses of their users, have none. Any value that does not mean true counts as false.
 */
export function readEmail(claims: JsonObject): Pick<UserContext, 'email' | 'emailVerified'> {
  const { email, email_verified: verified, xms_edov: domainVerified } = claims;
  if (typeof email !== 'string') return {};
  // Microsoft Entra has its own claim: the owner of the address's domain was verified.
  const said = verified === undefined ? domainVerified : verified;
  return said === undefined ? { email } : { email, emailVerified: YES.has(said) };
}

/** OpenID Connect Core §5.1 has a boolean; Amazon Cognito and Apple write text, Entra a number or text. */
const YES: ReadonlySet<unknown> = new Set([true, 'true', 1, '1']);

/** RFC 9068 §2.2, OpenID Connect Core §2, and the names that Okta and Microsoft Entra use. */
const CLIENT_CLAIMS = ['azp', 'client_id', 'cid', 'appid'] as const;

/** Reads the OAuth client that a token was issued to. */
export function readClaimedClient(claims: JsonObject): string | undefined {
  for (const name of CLIENT_CLAIMS) {
    const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}

// RFC 9110 §8.8.3, §13.1.2: conditional requests.

/** Creates a weak ETag, which is the same for every content coding. */
export const createEtag = (body: string | Uint8Array): string =>
  `W/"${hashSha256(body).slice(0, 27)}"`;

/** Compares weakly with each entry of `If-None-Match`. */
export const matchesEtag = (ifNoneMatch: string | undefined, etag: string): boolean =>
  ifNoneMatch?.split(',').some((entry) => ['*', etag, etag.slice(2)].includes(entry.trim())) ??
  false;

export const createNotModifiedReply = (etag: string, caching: ReplyHeaders): Reply => ({
  status: 304,
  headers: { ...caching, ETag: etag },
});
