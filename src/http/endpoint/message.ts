import type { CancelSignal } from '../../platform/cancellation.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { RequestTrace } from '../../telemetry/tracing/tracing.ts';

/** One HTTP request as the features see it: plain data, no socket. */
export interface GatewayRequest {
  /** Upper case, as received. */
  readonly method: string;
  /** The path as received, not decoded, without the query, the path of BASE_URL and a slash behind an MCP endpoint. */
  readonly path: string;
  /** The query as received, without its question mark. */
  readonly query: string;
  /** Lower-case names; repeated headers as node:http joins them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** §8.2: the caller's address, canonical, or `unknown`. */
  readonly clientIp: string;
  /** Aborted when the caller hangs up before the reply. Made on first use. */
  signal(): CancelSignal;
  /** Undefined where nothing is traced. A member, since a WeakMap of all requests makes garbage collection dear. */
  readonly trace?: RequestTrace | undefined;
}

/** A request body, read once at the edge. */
export type RequestBody = JsonBody | FormBody;

interface JsonBody extends CountedBytes {
  readonly type: 'json';
  readonly value: unknown;
  readonly text: string;
}

/** `application/x-www-form-urlencoded`, not yet parsed. */
interface FormBody extends CountedBytes {
  readonly type: 'form';
  readonly text: string;
}

/** The body of a request that has none, or whose body is not read. */
export const NO_BODY: RequestBody = {
  type: 'json',
  value: undefined,
  text: '',
  hold: () => () => {},
};

/** The parsed JSON of a body; undefined of a form. */
export const getJson = (body: RequestBody): unknown =>
  body.type === 'json' ? body.value : undefined;

interface CountedBytes {
  /**
   * To be called by whoever works with the body, maybe for longer than its caller waits: until what is
   * returned is called, its bytes count against the budget of its user (§12).
   */
  hold(): () => void;
}

/** Values by names as they are sent. */
export type ReplyHeaders = Readonly<Record<string, string>>;

/** A reply of the service. */
export interface Reply {
  readonly status: number;
  readonly headers?: ReplyHeaders;
  readonly body?: string | Uint8Array | undefined;
  /** In place of `body`, where that is put together of what is there already: nothing is copied. */
  readonly pieces?: readonly Uint8Array[] | undefined;
  /**
   * In place of `body`: sent piece by piece as it comes, until it ends. Ended early – its iterator's
   * `return` – when the caller hangs up or the service closes. Each piece is one or more whole events
   * of an event stream: between them comments are sent.
   */
  readonly stream?: ReplyStream;
  /** Describes the request for a line of the log, beside `facts`: asked only where one is written. */
  describe?(): Reply['facts'];
  /** Tells the log about a streamed reply when it has ended. */
  outcome?(): Pick<Reply, 'error' | 'facts'>;
  /** The error behind the reply, for the log only; never sent. */
  readonly error?: ReplyError;
  /** Further facts for the log: never a secret. */
  readonly facts?: JsonObject;
  /** The trace of its request. */
  readonly trace?: RequestTrace;
}

export interface ReplyStream extends AsyncIterable<string> {
  /** Tells it now, and when that changes, how many characters wait to be read; for one watcher. */
  watchWaiting?(watcher: WaitingWatcher): void;
}

export interface WaitingWatcher {
  noteWaiting(characters: number): void;
}

/** An error as the log tells it. */
export interface ReplyError {
  readonly key: string;
  readonly message: string;
  readonly cause?: unknown;
  /** Set where the status alone does not decide it. */
  readonly logLevel?: 'debug' | 'warn' | undefined;
}

/** The work that is left once a request was judged and admitted. */
export type PendingReply = () => Reply | Promise<Reply>;

/** A request's header, or undefined; of a repeated one the first. */
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

/** 303: whatever the browser sent here, it goes on with a GET. */
export const createRedirectReply = (location: string, headers: Reply['headers'] = {}): Reply => ({
  status: 303,
  headers: {
    Location: location,
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    ...headers,
  },
});

const SCHEME = 'bearer ';

/** RFC 6750 §2.1: the token of an Authorization header; undefined for any other header. */
export function readBearerToken(authorization = ''): string | undefined {
  if (authorization.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return undefined;
  let start = SCHEME.length;
  while (authorization[start] === ' ') start += 1;
  const token = authorization.slice(start);
  // A regular expression would take a microsecond for a token. Of white space, a header can only have these (RFC 9110 §5.5).
  const hasSpace = token.includes(' ') || token.includes('\t') || token.includes('\u00A0');
  return token === '' || hasSpace ? undefined : token;
}

// §2.3: who sends a request: what its token says of the user, and of the OAuth client.

/** §2.3: what a verified token says of its user. Built anew for every request. */
export interface UserContext {
  /** The subject: the user's id at the provider. Never empty. */
  readonly sub: string;
  /** The provider that `sub` is a user of; absent for those of `OIDC_ISSUER`. */
  readonly issuer?: string;
  readonly email?: string;
  /** True if the provider says that `email` is the user's; undefined where it does not say. False is a reason not to use it. */
  readonly emailVerified?: boolean;
  readonly name?: string;
  readonly groups?: readonly string[];
  /** All claims of the token, as the provider signed them. */
  readonly claims: JsonObject;
  /**
   * The original JWT, for tools that call other services on the user's behalf. A secret. Absent where the gateway's own
   * token let the user in.
   */
  readonly token?: string;
  /** The grant, where the gateway's own token let the user in: if it still holds is asked in the step that counts the call. */
  readonly grant?: GrantCheck;
}

/** Tells the user's credential from every other: for what is remembered of it. Nothing of a token can be read from it. */
export const identifyCredential = ({ token, grant }: UserContext): string =>
  grant === undefined ? hashSha256(token ?? '') : `${grant.id}.${grant.version}`;

/** A grant as this process knows it. It holds for a call when the store, asked by its key, has the same version. */
export interface GrantCheck {
  readonly id: string;
  /** The OAuth client that it was given to. */
  readonly clientId: string;
  /** Under which it lies in the store. */
  readonly key: string;
  /** The beginning of the value there: `GRANT_VERSION_LENGTH` characters (store.ts), others after each change. */
  readonly version: string;
  /** Epoch milliseconds: when it ends by its age, and with it what its client has open; never where there is none. */
  readonly endsAt?: number;
  /** The client logged in as itself: there is no person, and nothing of a provider. */
  readonly isMachine?: true;
  /** The most calls of it in a window, in place of those of a user. */
  readonly maxCalls?: number | undefined;
}

/**
 * The provider's access token for a user: the one that let it in, or the one of its grant, renewed where it is about to
 * expire. Undefined where there is none that is good now.
 */
export type GetProviderToken = (user: UserContext) => Promise<string | undefined>;

/** For modes in which clients get the provider's tokens. */
export const getOriginalToken: GetProviderToken = async ({ token }) => token;

// §2.3: what a token says of its user's e-mail address, and whether somebody checked that it is the user's.

type UserEmail = Pick<UserContext, 'email' | 'emailVerified'>;

/**
 * Nothing without an address. Whether it was verified is left open where the token does not say: many companies'
 * providers, which alone set the addresses of their users, have no claim for it. What is there and does not say yes is a no.
 */
export function readEmail(claims: JsonObject): UserEmail {
  const { email, email_verified: verified, xms_edov: domainVerified } = claims;
  if (typeof email !== 'string') return {};
  // Microsoft Entra has a claim of its own: the owner of the address's domain was verified.
  const said = verified === undefined ? domainVerified : verified;
  return said === undefined ? { email } : { email, emailVerified: YES.has(said) };
}

/** OpenID Connect Core §5.1 has a boolean; Amazon Cognito and Apple write text, Entra a number or text, too. */
const YES: ReadonlySet<unknown> = new Set([true, 'true', 1, '1']);

/** RFC 9068 §2.2, OpenID Connect Core §2, and what Okta and Microsoft Entra call it. */
const CLIENT_CLAIMS = ['azp', 'client_id', 'cid', 'appid'] as const;

/** The OAuth client that a token was issued to, as its provider says it. */
export function readClaimedClient(claims: JsonObject): string | undefined {
  for (const name of CLIENT_CLAIMS) {
    const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}

// RFC 9110 §8.8.3, §13.1.2: documents that callers ask for again only to learn whether they have changed.

/** Weak: the same whatever coding it is sent in. */
export const createEtag = (body: string | Uint8Array): string =>
  `W/"${hashSha256(body).slice(0, 27)}"`;

/** Weak comparison with each entry of `If-None-Match`. */
export const matchesEtag = (ifNoneMatch: string | undefined, etag: string): boolean =>
  ifNoneMatch?.split(',').some((entry) => ['*', etag, etag.slice(2)].includes(entry.trim())) ??
  false;

export const createNotModifiedReply = (etag: string, caching: ReplyHeaders): Reply => ({
  status: 304,
  headers: { ...caching, ETag: etag },
});
