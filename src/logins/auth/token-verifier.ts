// §5.1–§5.4: authenticates a request by its bearer token: the Authorization header, then the signature, then the claims; and what
// claims of all kinds of tokens have in common.

import type { ProviderConfig, RequiredAuthConfig } from '../../config/groups/provider.ts';
import { fail, type GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import {
  type AuthRequest,
  addChallenge,
  type GetChallenge,
  type OnRefusal,
  type VerifyBearer,
} from '../../http/endpoint/bearer.ts';
import {
  getHeader,
  readBearerToken,
  readEmail,
  type UserContext,
} from '../../http/endpoint/message.ts';
import { describeIssuerMismatch } from '../../http/oauth-client/provider-metadata.ts';
import { readUnverifiedClaims } from '../../http/oauth-client/token-answer.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import { isStringArray, type JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { readText } from '../identity/identity.ts';
import type { VerificationKey } from './jwk.ts';
import {
  ACCESS_TOKEN,
  createTokenParser,
  failToken,
  fetchSigner,
  findSignerAtHand,
  type ParsedToken,
  readPayload,
} from './jws.ts';
import type { KeySet } from './key-set.ts';

/**
 * If a key or a grant has to be fetched, `beforeFetch` is called first, and its error ends the check. With `recording` the metrics
 * have the duration and the result of each check (§4.11).
 *
 * @throws GatewayError with a reason of §7.1 and the challenge, or `key_set_unavailable`.
 */
export function createAuthenticate(
  verify: VerifyBearer,
  getChallenge: GetChallenge,
  onRefusal?: OnRefusal,
  recording?: Pick<Runtime, 'metrics' | 'clock'>,
) {
  return async function authenticate(
    request: AuthRequest,
    beforeFetch?: () => Promise<void>,
  ): Promise<UserContext> {
    const startedAt = recording?.clock.monotonic() ?? 0;
    try {
      const authorization = getHeader(request, 'authorization') ?? fail('missing_token');
      const token = readBearerToken(authorization);
      // No JWT contains a comma: it separates two joined headers.
      if (token === undefined || token.includes(',')) fail('invalid_format');
      const user = await verify(token, beforeFetch, request.path);
      record('success', startedAt);
      return user;
    } catch (thrown) {
      const error = toGatewayError(thrown);
      const { row, key } = error;
      // 429: a limit was reached before the token was verified.
      if (row.status !== 429) record(row.jsonrpc?.reason ?? key, startedAt);
      if (row.status !== 401) throw error;
      onRefusal?.(error, request);
      throw addChallenge(error, getChallenge(request.path));
    }
  };

  function record(result: string, startedAt: number) {
    recording?.metrics.recordAuthAttempt(result, (recording.clock.monotonic() - startedAt) / 1000);
  }
}

interface TokenInspection {
  /** The user that the token names, for the log; may be set for a token with a problem, too. */
  readonly sub: string | undefined;
  /**
   * The refusal of the token; undefined if the gateway would accept it. `message` is for its bearer, `key` is the reason of §7.1,
   * and `failure.facts` are for the log: found and expected, or exp (nbf) and now.
   */
  readonly problem: GatewayError | undefined;
}

interface TokenRules
  extends Pick<ProviderConfig, 'issuer' | 'audience' | 'audienceClaim'>,
    Pick<RequiredAuthConfig, 'clockToleranceSeconds'> {
  /** `BASE_URL`, which identifies the gateway, including to servers (§18.6). No user's `sub` may equal it. */
  readonly baseUrl: string;
  /** Claims that only tokens of other kinds have. */
  readonly foreignClaims: readonly ForeignClaim[];
  /** Returns true for the audience of a server behind the gateway, which is also accepted (§18.2). */
  readonly isServerAudience: (audience: string) => boolean;
  /** `MAX_TOKEN_BYTES`. */
  readonly maxTokenBytes: number;
  /** `TOKEN_SIGNATURE_MEMORY`: the number of tokens with a valid signature that are remembered. */
  readonly signatureMemory: number;
}

export function createTokenVerifier(clock: Clock, keySet: KeySet, rules: TokenRules) {
  const { issuer, signatureMemory } = rules;
  const signers =
    signatureMemory > 0 ? createBoundedMap<string, string>(signatureMemory) : undefined;
  const parseToken = createTokenParser(rules.maxTokenBytes, ACCESS_TOKEN, signers);

  /**
   * Reads the user of a token with a valid signature; without `signer`, of a token that its issuer has just sent. A valid
   * signature is remembered; an invalid one never is, since there may be new keys.
   *
   * @throws GatewayError with the reason of §7.1.
   */
  function readUser(token: ParsedToken, signer?: VerificationKey): UserContext {
    const { digest, signedBy } = token;
    if (digest !== undefined && signer !== undefined && signer.identity !== signedBy)
      signers?.set(digest, signer.identity);
    const claims = readPayload(token);
    const { iss } = claims;
    if (iss !== issuer)
      failToken(
        `${describeIssuerMismatch('iss claim of the token', iss, issuer)} (OIDC_ISSUER).`,
        { found: iss, expected: issuer },
        'invalid_issuer',
      );
    const foreign = findForeignClaim(claims, rules.foreignClaims);
    if (foreign !== undefined) failKind(foreign);
    checkAudience[rules.audienceClaim](claims, rules);
    checkTimes(claims, rules.clockToleranceSeconds, clock.now() / 1000, signer === undefined);
    const user = describeClaims(readSubject(claims, rules.baseUrl), claims);
    user.token = token.text;
    return user;
  }

  return {
    /**
     * Verifies a token. A promise only if a key has to be fetched: `beforeFetch` is called then, and an error of it ends the check.
     *
     * @throws GatewayError with a reason of §7.1, or `key_set_unavailable`, at once or through the promise.
     */
    verify(text: string, beforeFetch?: () => Promise<void>): UserContext | Promise<UserContext> {
      const token = parseToken(text);
      const signer = keySet.isFetched ? findSignerAtHand(token, keySet) : undefined;
      return signer === undefined
        ? fetchSigner(token, keySet, beforeFetch).then((fetched) => readUser(token, fetched))
        : readUser(token, signer);
    },
    /**
     * Checks form and claims as `verify` does, and neither checks nor remembers the signature. For tokens that came from the
     * provider itself, over TLS; never to admit a caller. Does not throw.
     */
    inspect(text: string): TokenInspection {
      try {
        const { sub } = readUser(parseToken(text));
        return { sub, problem: undefined };
      } catch (thrown) {
        const sub = readText(readUnverifiedClaims(text)?.sub);
        return { sub, problem: toGatewayError(thrown) };
      }
    },
  };
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

/** §2.3: describes a user by its claims. Optional claims of the wrong type are left out, not refused. */
export function describeClaims(sub: string, claims: JsonObject): Writable<UserContext> {
  const user: Writable<UserContext> = { sub, ...readEmail(claims), claims };
  const { name, groups } = claims;
  if (typeof name === 'string') user.name = name;
  if (isStringArray(groups)) user.groups = groups;
  return user;
}

function failKind({ claim, value, kind, advice = 'Send the access token.' }: ForeignClaim): never {
  const found = value === undefined ? claim : `${claim} ${value}`;
  return failToken(`The token is ${kind}: it has the claim ${found}. ${advice}`, {
    found: `${kind} (${found})`,
    expected: 'an access token',
  });
}

const checkAudience: Readonly<
  Record<TokenRules['audienceClaim'], (claims: JsonObject, rules: TokenRules) => void>
> = {
  aud({ aud }, { audience, isServerAudience }) {
    if (includesOneOf(aud, audience)) return;
    const isOfServer = (one: unknown) => typeof one === 'string' && isServerAudience(one);
    if (![aud].flat().some(isOfServer)) failAudience('aud', aud, audience);
  },
  // Amazon Cognito: an access token names its client in client_id, and has an aud only if it was issued for one resource. An ID
  // token names the client in aud, and grants no access.
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

/** Describes something that is missing or wrong. */
export const describeWrong = (what: string, found: unknown, mustBe: string): string =>
  found === undefined
    ? `The ${what} is missing; it must ${mustBe}.`
    : `The ${what} is ${quote(found)} and must ${mustBe}.`;

/** All lone surrogates are encoded as U+FFFD: two subjects could share one key. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** @throws GatewayError `missing_claim` or `invalid_token`. */
export function readSubject({ sub }: JsonObject, baseUrl: string): string {
  if (typeof sub === 'string' && sub !== '' && !LONE_SURROGATE.test(sub)) {
    // A server may compare addresses in any case, and without slashes at the end.
    const isGateway =
      sub.slice(0, baseUrl.length).toLowerCase() === baseUrl.toLowerCase() &&
      /^\/*$/.test(sub.slice(baseUrl.length));
    if (isGateway)
      failToken(
        `The sub claim of the token is ${quote(sub)}, which is what this gateway is called.`,
        { found: sub, expected: 'a user' },
      );
    return sub;
  }
  const details = describeWrong('sub claim of the token', sub, 'be a non-empty string');
  return failToken(details, { found: sub, expected: 'a non-empty string' }, 'missing_claim');
}

function includesOneOf(aud: unknown, audience: readonly string[]) {
  for (const allowed of audience)
    if (allowed === aud || (Array.isArray(aud) && aud.includes(allowed))) return true;
  return false;
}

// RFC 7519 §4.1.4, §4.1.5: exp and nbf, with advice if a clock may be wrong.

/** A smaller difference may be clock skew. */
const MAX_CLOCK_DIFFERENCE_SECONDS = 600;

/**
 * `tolerance` and `now` in seconds, the latter since the epoch. `isNew`: the provider has just issued it.
 *
 * @throws GatewayError `expired_token`, or `invalid_token`.
 */
function checkTimes(claims: JsonObject, tolerance: number, now: number, isNew: boolean) {
  const exp = readTime('exp', claims.exp);
  if (now >= exp + tolerance)
    fail('expired_token', {
      details: `The token expired ${formatSeconds(now - exp)} ago.${adviseOnClocks(now - exp, tolerance, isNew)}`,
      facts: { exp, now },
    });
  if (claims.nbf === undefined) return;
  const nbf = readTime('nbf', claims.nbf);
  if (now < nbf - tolerance)
    fail('invalid_token', {
      details: `The token is not valid yet: its nbf claim is ${formatSeconds(nbf - now)} in the future.${adviseOnClocks(nbf - now, tolerance, isNew)}`,
      facts: { nbf, now },
    });
}

function readTime(claim: string, found: unknown) {
  if (typeof found === 'number' && Number.isFinite(found)) return found;
  const details = describeWrong(`${claim} claim of the token`, found, 'be a number');
  return failToken(details, { found, expected: 'a number of seconds' });
}

export const isTime = (value: unknown): value is number => Number.isFinite(value);

/** Longer than a request takes from the check of its token to the note that it was used. */
const SLOW_REQUEST_SECONDS = 60;

/**
 * Computes for how long the use of a single-use token is noted. Its times refuse it from `acceptedUntil` on (epoch seconds); a
 * request that was checked just before must also find the record.
 */
export const computeNotedSeconds = (acceptedUntil: number, nowMs: number): number =>
  Math.max(0, Math.ceil(acceptedUntil - nowMs / 1000)) + SLOW_REQUEST_SECONDS;

export function formatSeconds(difference: number): string {
  const seconds = Math.ceil(difference);
  return seconds === 1 ? '1 second' : `${seconds} seconds`;
}

export function adviseOnClocks(difference: number, tolerance: number, isNew: boolean): string {
  if (!isNew && difference >= MAX_CLOCK_DIFFERENCE_SECONDS) return '';
  return ` If it was issued just now, the clock of the provider or of this service is wrong: compare them (OIDC_CLOCK_TOLERANCE_SECONDS allows ${formatSeconds(tolerance)}).`;
}

// A provider signs tokens of many kinds with the same keys. These claims and the typ header distinguish access tokens.

/** A claim that access tokens do not have. */
export interface ForeignClaim {
  readonly claim: string;
  /** The claim is foreign only with this value; undefined for any value. */
  readonly value?: string;
  /** The kind of token that has it. */
  readonly kind: string;
  /** Advice on the token to send instead; by default, the access token. */
  readonly advice?: string;
}

const NOT_BOUND =
  'Only plain bearer tokens are accepted: switch off DPoP and certificate-bound tokens for this client at the provider.';

/** The `typ` claim that Keycloak writes. */
export const KEYCLOAK_TYPES: readonly ForeignClaim[] = [
  { claim: 'typ', value: 'Refresh', kind: 'a refresh token' },
  { claim: 'typ', value: 'Offline', kind: 'a refresh token' },
  { claim: 'typ', value: 'Logout', kind: 'a logout token' },
];

/** RFC 8417 §2.2, RFC 7800 §3.1. */
const NEVER_IN_ACCESS_TOKENS: readonly ForeignClaim[] = [
  { claim: 'events', kind: 'a security event or logout token' },
  { claim: 'cnf', kind: 'a token bound to a key of its client', advice: NOT_BOUND },
  ...KEYCLOAK_TYPES,
];

/** OpenID Connect Core §3.1.3.6, §3.3.2.11, FAPI 1.0 part 2 §5.1, and Keycloak's `typ`. */
const ID_TOKEN_CLAIMS: readonly ForeignClaim[] = [
  { claim: 'at_hash', kind: 'an ID token' },
  { claim: 'c_hash', kind: 'an ID token' },
  { claim: 's_hash', kind: 'an ID token' },
  { claim: 'typ', value: 'ID', kind: 'an ID token' },
];

/** Lists the claims that are refused from this provider. */
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

/** Finds the first foreign claim of a token. A loop, since every call runs it. */
export function findForeignClaim(
  claims: JsonObject,
  foreignClaims: readonly ForeignClaim[],
): ForeignClaim | undefined {
  for (const foreign of foreignClaims) {
    const { claim, value } = foreign;
    if (value === undefined ? Object.hasOwn(claims, claim) : claims[claim] === value)
      return foreign;
  }
  return undefined;
}
