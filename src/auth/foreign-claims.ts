// A provider signs tokens of many kinds with the same keys. These claims, and the typ header, tell
// access tokens from the others.
import type { ProviderConfig } from '../config/groups/provider.ts';

/** A claim that access tokens do not have. */
export interface ForeignClaim {
  readonly claim: string;
  /** Only with this value is the claim foreign; undefined for any value. */
  readonly value?: string;
  /** What kind of token has it. */
  readonly kind: string;
  /** What to send in its place. */
  readonly advice: string;
}

const ACCESS_TOKEN_ONLY = 'Send the access token.';
const NOT_BOUND =
  'Only plain bearer tokens are accepted: switch off DPoP and certificate-bound tokens for this client at the provider.';
const NO_ID_TOKEN =
  'Send the access token (an ID token is accepted only with OAUTH_ACCESS_TOKEN=id_token).';

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
  { claim: 'at_hash', kind: 'an ID token', advice: NO_ID_TOKEN },
  { claim: 'c_hash', kind: 'an ID token', advice: NO_ID_TOKEN },
  { claim: 's_hash', kind: 'an ID token', advice: NO_ID_TOKEN },
  { claim: 'typ', value: 'ID', kind: 'an ID token', advice: NO_ID_TOKEN },
];

/** Which claims are refused depends on the provider, and on the kind of token that clients get. */
export function listForeignClaims({
  accessToken,
  quirks,
}: Pick<ProviderConfig, 'accessToken' | 'quirks'>): readonly ForeignClaim[] {
  if (accessToken === 'id_token') return NEVER_IN_ACCESS_TOKENS;
  const { accessTokenHashes = [] } = quirks;
  return [
    ...NEVER_IN_ACCESS_TOKENS,
    ...ID_TOKEN_CLAIMS.filter(({ claim }) => !accessTokenHashes.includes(claim)),
  ];
}

/** The first of them that a token has. */
export const findForeignClaim = (
  claims: Readonly<Record<string, unknown>>,
  foreignClaims: readonly ForeignClaim[],
): ForeignClaim | undefined =>
  foreignClaims.find(({ claim, value }) =>
    value === undefined ? Object.hasOwn(claims, claim) : claims[claim] === value,
  );

/** RFC 7519 §5.1, RFC 9068 §2.1: the `typ` header of an access token, where there is one. */
export const isAccessTokenType = (typ: unknown): boolean =>
  typ === undefined || (typeof typ === 'string' && /^(jwt|(application\/)?at\+jwt)$/i.test(typ));

export const ACCESS_TOKEN_TYPES = 'JWT, at+jwt, application/at+jwt, or no typ';
