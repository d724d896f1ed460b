// §5.2, §5.3: claims, after the signature.

import type { ProviderConfig, RequiredAuthConfig } from '../../config/groups/provider.ts';
import { fail } from '../../errors/gateway-error.ts';
import { readEmail, type UserContext } from '../../http/endpoint/message.ts';
import { describeIssuerMismatch } from '../../http/oauth-client/provider-metadata.ts';
import { isStringArray, type JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { failToken } from './parse-token.ts';

export interface ClaimRules
  extends Pick<ProviderConfig, 'issuer' | 'audience' | 'audienceClaim'>,
    Pick<RequiredAuthConfig, 'clockToleranceSeconds'> {
  /** `BASE_URL`: what the gateway is called, also towards servers (§18.6). No user may be. */
  readonly baseUrl: string;
  /** JsonObject that only tokens of another kind have. */
  readonly foreignClaims: readonly ForeignClaim[];
  /** Tells whether an audience is that of a server behind the gateway, which counts, too (§18.2). */
  readonly isServerAudience: (audience: string) => boolean;
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

/**
 * The user that a verified token speaks for. `now` in epoch milliseconds.
 *
 * @throws GatewayError with the reason of §7.1.
 */
export function readUserContext(claims: JsonObject, rules: ClaimRules, now: number, age: TokenAge) {
  const { iss } = claims;
  if (iss !== rules.issuer)
    failToken(
      `${describeIssuerMismatch('iss claim of the token', iss, rules.issuer)} (OIDC_ISSUER).`,
      { found: iss, expected: rules.issuer },
      'invalid_issuer',
    );
  checkKind(claims, rules.foreignClaims);
  checkAudience[rules.audienceClaim](claims, rules);
  checkTimes(claims, rules.clockToleranceSeconds, now / 1000, age);
  return describeClaims(readSubject(claims, rules.baseUrl), claims);
}

/** §2.3: what claims say of a user. Optional ones of another type are left out, not refused. */
export function describeClaims(sub: string, claims: JsonObject): Writable<UserContext> {
  const user: Writable<UserContext> = { sub, ...readEmail(claims), claims };
  const { name, groups } = claims;
  if (typeof name === 'string') user.name = name;
  if (isStringArray(groups)) user.groups = groups;
  return user;
}

function checkKind(claims: JsonObject, foreignClaims: readonly ForeignClaim[]) {
  const foreign = findForeignClaim(claims, foreignClaims);
  if (foreign === undefined) return;
  const { claim, value, kind, advice } = foreign;
  const found = value === undefined ? claim : `${claim} ${value}`;
  failToken(`The token is ${kind}: it has the claim ${found}. ${advice}`, {
    found: `${kind} (${found})`,
    expected: 'an access token',
  });
}

const checkAudience: Readonly<
  Record<ClaimRules['audienceClaim'], (claims: JsonObject, rules: ClaimRules) => void>
> = {
  aud({ aud }, { audience, isServerAudience }) {
    if (!includesOneOf(aud, audience) && !listTexts(aud).some(isServerAudience))
      failAudience('aud', aud, audience);
  },
  // Amazon Cognito: an access token names its client there, and has an aud only when it was made
  // for one resource. An ID token names the client in aud, and grants no access.
  client_id({ client_id: client, aud, token_use: use }, { audience }) {
    if (!includesOneOf(client, audience)) failAudience('client_id', client, audience);
    if (aud !== undefined && !includesOneOf(aud, audience)) failAudience('aud', aud, audience);
    if (use !== 'access')
      failToken(`The token_use claim of the token is ${quote(use)} and must be "access".`, {
        found: use,
        expected: 'access',
      });
  },
};

function failAudience(claim: string, found: unknown, expected: readonly string[]): never {
  const allowed = `one of ${expected.map((name) => quote(name)).join(', ')} (OIDC_AUDIENCE)`;
  const details = describeWrong(`${claim} claim of the token`, found, `name ${allowed}`);
  return failToken(details, { found, expected }, 'invalid_audience');
}

/** Says that something is missing, or is not what it must be. */
export const describeWrong = (what: string, found: unknown, mustBe: string): string =>
  found === undefined
    ? `The ${what} is missing; it must ${mustBe}.`
    : `The ${what} is ${quote(found)} and must ${mustBe}.`;

/** Lone surrogates are all encoded as U+FFFD, so two subjects could share one key. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** @throws GatewayError `missing_claim` or `invalid_token`. */
export function readSubject({ sub }: JsonObject, baseUrl: string): string {
  if (typeof sub === 'string' && sub !== '' && !LONE_SURROGATE.test(sub)) {
    if (isNameOf(sub, baseUrl))
      failToken(
        `The sub claim of the token is ${quote(sub)}, which is what this gateway is called.`,
        { found: sub, expected: 'a user' },
      );
    return sub;
  }
  const details = describeWrong('sub claim of the token', sub, 'be a non-empty string');
  return failToken(details, { found: sub, expected: 'a non-empty string' }, 'missing_claim');
}

/** Also as a server may read it that compares addresses: in any case, with slashes at the end. */
const isNameOf = (sub: string, baseUrl: string) =>
  sub.slice(0, baseUrl.length).toLowerCase() === baseUrl.toLowerCase() &&
  /^\/*$/.test(sub.slice(baseUrl.length));

const includesOneOf = (aud: unknown, audience: readonly string[]) =>
  Array.isArray(aud)
    ? audience.some((allowed) => aud.includes(allowed))
    : audience.some((allowed) => allowed === aud);

const listTexts = (aud: unknown): readonly string[] =>
  (Array.isArray(aud) ? aud : [aud]).filter((one: unknown) => typeof one === 'string');

// RFC 7519 §4.1.4, §4.1.5: exp and nbf, with advice where a clock may be wrong.

/** A difference below this may well be one between two clocks. */
const MAX_CLOCK_DIFFERENCE_SECONDS = 600;

/** `new`: it came from the provider with this very answer. */
export type TokenAge = 'new' | 'unknown';

/**
 * `tolerance` and `now` in seconds, the latter since the epoch.
 *
 * @throws GatewayError `expired_token`, or `invalid_token`.
 */
function checkTimes(claims: JsonObject, tolerance: number, now: number, age: TokenAge) {
  const exp = readTime('exp', claims.exp);
  if (now >= exp + tolerance)
    fail('expired_token', {
      details: `The token expired ${formatSeconds(now - exp)} ago.${adviseOnClocks(now - exp, tolerance, age)}`,
      facts: { exp, now },
    });
  if (claims.nbf === undefined) return;
  const nbf = readTime('nbf', claims.nbf);
  if (now < nbf - tolerance)
    fail('invalid_token', {
      details: `The token is not valid yet: its nbf claim lies ${formatSeconds(nbf - now)} ahead.${adviseOnClocks(nbf - now, tolerance, age)}`,
      facts: { nbf, now },
    });
}

function readTime(claim: string, found: unknown) {
  if (isTime(found)) return found;
  const details = describeWrong(`${claim} claim of the token`, found, 'be a number');
  return failToken(details, { found, expected: 'a number of seconds' });
}

export const isTime = (value: unknown): value is number => Number.isFinite(value);

/** Longer than a request takes from the judgement of its token to the note that it was used. */
const SLOW_REQUEST_SECONDS = 60;

/**
 * For how long it is noted that a token was used which is good once. Its own times refuse it from `acceptedUntil` on (epoch
 * seconds); one that was judged just before that must find the note, too.
 */
export const computeNotedSeconds = (acceptedUntil: number, nowMs: number): number =>
  Math.max(0, Math.ceil(acceptedUntil - nowMs / 1000)) + SLOW_REQUEST_SECONDS;

export function formatSeconds(difference: number): string {
  const seconds = Math.ceil(difference);
  return seconds === 1 ? '1 second' : `${seconds} seconds`;
}

export function adviseOnClocks(difference: number, tolerance: number, age: TokenAge): string {
  if (age !== 'new' && difference >= MAX_CLOCK_DIFFERENCE_SECONDS) return '';
  return ` If it was issued just now, the clock of the provider or of this service is wrong: compare them (OIDC_CLOCK_TOLERANCE_SECONDS allows ${formatSeconds(tolerance)}).`;
}

// A provider signs tokens of many kinds with the same keys. These claims, and the typ header, tell
// access tokens from the others.

/** A claim that access tokens do not have. */
export interface ForeignClaim {
  readonly claim: string;
  /** Only with this value is the claim foreign; undefined for any value. */
  readonly value?: string;
  /** The kind of token that has it. */
  readonly kind: string;
  /** Advice on the token to send in its place. */
  readonly advice: string;
}

const ACCESS_TOKEN_ONLY = 'Send the access token.';
const NOT_BOUND =
  'Only plain bearer tokens are accepted: switch off DPoP and certificate-bound tokens for this client at the provider.';

/** RFC 8417 §2.2, RFC 7800 §3.1, and the `typ` claim that Keycloak writes. */
const NEVER_IN_ACCESS_TOKENS: readonly ForeignClaim[] = [
  { claim: 'events', kind: 'a security event or logout token', advice: ACCESS_TOKEN_ONLY },
  { claim: 'cnf', kind: 'a token bound to a key of its client', advice: NOT_BOUND },
  { claim: 'typ', value: 'Refresh', kind: 'a refresh token', advice: ACCESS_TOKEN_ONLY },
  { claim: 'typ', value: 'Offline', kind: 'a refresh token', advice: ACCESS_TOKEN_ONLY },
  { claim: 'typ', value: 'Logout', kind: 'a logout token', advice: ACCESS_TOKEN_ONLY },
];

/** OpenID Connect Core §3.1.3.6, §3.3.2.11, FAPI 1.0 part 2 §5.1, and Keycloak's `typ`. */
const ID_TOKEN_CLAIMS: readonly ForeignClaim[] = [
  { claim: 'at_hash', kind: 'an ID token', advice: ACCESS_TOKEN_ONLY },
  { claim: 'c_hash', kind: 'an ID token', advice: ACCESS_TOKEN_ONLY },
  { claim: 's_hash', kind: 'an ID token', advice: ACCESS_TOKEN_ONLY },
  { claim: 'typ', value: 'ID', kind: 'an ID token', advice: ACCESS_TOKEN_ONLY },
];

/** Which claims are refused depends on the provider. */
export function listForeignClaims({
  opaqueAccessTokens,
  accessTokenHashes = [],
}: ProviderConfig['quirks']): readonly ForeignClaim[] {
  if (opaqueAccessTokens) return NEVER_IN_ACCESS_TOKENS;
  return [
    ...NEVER_IN_ACCESS_TOKENS,
    ...ID_TOKEN_CLAIMS.filter(({ claim }) => !accessTokenHashes.includes(claim)),
  ];
}

/** The first of them that a token has. */
export const findForeignClaim = <Foreign extends Pick<ForeignClaim, 'claim' | 'value'>>(
  claims: JsonObject,
  foreignClaims: readonly Foreign[],
): Foreign | undefined =>
  foreignClaims.find(({ claim, value }) =>
    value === undefined ? Object.hasOwn(claims, claim) : claims[claim] === value,
  );
