// In what providers differ: one value of this type for each of them, and emulator.ts behaves as it says.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../../src/platform/clock.ts';
import type { Issuer } from '../oauth/issuer.ts';

export type Claims = Readonly<Record<string, unknown>>;

/** Who logs in. Each provider says the same of a person in its own claims. */
export interface Person {
  readonly sub: string;
  readonly name: string;
  readonly email: string;
  readonly isEmailVerified: boolean;
  readonly groups: readonly string[];
}

/** A person who is logged in by the client, until it ends: all tokens that come of it belong to it. */
export interface Login {
  readonly person: Person;
  /** The authorization request. */
  readonly asked: URLSearchParams;
  readonly scopes: readonly string[];
  /** The session at the provider that it belongs to. */
  readonly sid: string;
  /** Epoch seconds. */
  readonly authTime: number;
  /** Epoch seconds: the last time that a code or a refresh token of it was used. */
  usedAt: number;
  hasEnded: boolean;
}

/** RFC 6749 §4.1.2.1, §5.2. */
export interface Refusal {
  /** Of the token endpoint; 400 unless given. */
  readonly status?: number;
  readonly error: string;
  readonly error_description: string;
}

export interface TokenAnswer {
  readonly access_token: string;
  readonly token_type: string;
  readonly expires_in?: number;
  readonly refresh_token?: string;
  readonly id_token?: string;
  readonly scope: string;
}

/** What a habit may need beside its arguments. */
export interface Surroundings {
  /** `http://127.0.0.1:<port>`. */
  readonly origin: string;
  readonly issuer: Issuer;
  readonly clock: Clock;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The login of an access token that is still good. */
  findLogin(accessToken: string): Login | undefined;
  /** Ends the login of a token. */
  revoke(token: string): void;
}

/** Epoch seconds, as the claims of tokens have them. */
export const readSeconds = ({ clock }: Pick<Surroundings, 'clock'>): number =>
  Math.floor(clock.now() / 1000);

export interface Paths {
  readonly keys: string;
  readonly authorize: string;
  readonly token: string;
  readonly userinfo: string;
  /** Undefined for those that have no such endpoint (RFC 7009). */
  readonly revoke?: string;
  /** OpenID Connect RP-Initiated Logout 1.0. */
  readonly endSession?: string;
}

/** What a refresh token is worth once it was used. */
export type UsedRefreshToken =
  /** It stays, and the answer has no other. */
  | 'is kept'
  /** The answer has another, and it stays good, too. */
  | 'stays good'
  | 'is refused'
  /** It is taken for stolen: nothing that came of the login is good any more. */
  | 'ends the login';

export interface Habits {
  readonly title: string;
  /** Settings of a gateway in front of it, beside the address and the client. */
  readonly settings: Readonly<Record<string, string>>;
  /** The variable that names its address; its value is the issuer, or the origin where there is no issuer. */
  readonly addressSetting: 'OIDC_ISSUER' | 'GITHUB_URL';
  /** Whether there are a discovery document, a key set and ID tokens. */
  readonly isOpenId: boolean;
  /** What its issuer has after host and port. */
  readonly issuerPath: string;
  readonly paths: Paths;
  /** Members of the discovery document over those that follow from the rest. */
  readonly document: Claims;
  readonly clientAuth: readonly ('post' | 'basic')[];
  /** Those that it says it knows. */
  readonly scopes: readonly string[];
  readonly refusesUnknownScopes: boolean;
  readonly idTokenMembers: readonly ('at_hash' | 'auth_time' | 'sid')[];
  /** Whether a refresh is answered with an ID token, too (OpenID Connect Core §12.2 leaves that open). */
  readonly renewsIdToken: boolean;
  /** Of access tokens; undefined where they live until they are revoked. */
  readonly expiresIn: number | undefined;
  readonly usedRefreshToken: UsedRefreshToken;
  /** For so many seconds a refresh token that was used is good once more. */
  readonly reuseSeconds: number;
  readonly spentRefusal: Refusal;
  readonly revocationEnds: 'the login' | 'all of the user';
  /** OpenID Connect Back-Channel Logout 1.0: whom its logout tokens name. */
  readonly logoutTokenNames: readonly ('sid' | 'sub')[];
  /** Seconds for which a logout token is good; undefined where it does not say. */
  readonly logoutTokenSeconds: number | undefined;
  /** Whether tokens of a login are good after its session has ended. */
  survivesLogout(login: Login): boolean;

  /** Whether a code is answered with a refresh token; `isFirst` where this person never logged in by the client before. */
  givesRefreshToken(login: Login, isFirst: boolean): boolean;
  /** The ID token's claims about a person, over those that every ID token has. */
  describeInIdToken(login: Login, here: Surroundings): Claims;
  describeInUserinfo(login: Login, here: Surroundings): Claims;
  createAccessToken(login: Login, here: Surroundings): string | Promise<string>;
  createRefreshToken(): string;
  refuseAuthorization(asked: URLSearchParams): Refusal | undefined;
  refuseRefresh(login: Login, form: URLSearchParams, here: Surroundings): Refusal | undefined;
  /** What a good answer of the token endpoint has beside, or in another form. */
  renderTokens(answer: TokenAnswer): object;
  /** What is told of a refusal, with the status of that. */
  renderRefusal(refusal: Refusal): { readonly status: number; readonly body: object };
  /** How the body of an answer of the token endpoint is written. */
  send(req: IncomingMessage, res: ServerResponse, status: number, body: object): void;
  /** Endpoints that only this provider has, by their path. */
  createRoutes(here: Surroundings): Readonly<Record<string, Route>>;
}

/** `body` is the request's; `form` the same, read as a form. */
export type Route = (
  req: IncomingMessage,
  res: ServerResponse,
  form: URLSearchParams,
  body: string,
) => Promise<void> | void;

export const sendJson = (res: ServerResponse, status: number, body: object): void =>
  void res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
