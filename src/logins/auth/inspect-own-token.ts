// What a token says to those who have the secret that made it (§5.11), for people who ask what it is; never to let anybody in.
import { isOwnToken, REFRESH_TOKEN_PREFIX } from '../../http/endpoint/bearer.ts';
import { createSeal } from '../../store/seal/seal.ts';
import { createTokenCodec } from '../grants/token-codec.ts';

export type OwnTokenFacts =
  /** Nothing of this or of another gateway's. */
  | { readonly kind: 'foreign' }
  | { readonly kind: 'refresh' }
  /** Whoever has no secret sees no more of it. */
  | { readonly kind: 'sealed' }
  /** None of the secrets made it, or not for this gateway. */
  | { readonly kind: 'unknown' }
  /** `expiresAt` in epoch seconds. */
  | { readonly kind: 'access'; readonly grantId: string; readonly expiresAt: number };

export interface TokenMaker {
  /** `OAUTH_STATE_SECRET`; undefined where it is not known. */
  readonly secrets: readonly string[] | undefined;
  /** `BASE_URL`. */
  readonly baseUrl: string;
}

export function inspectOwnToken(
  token: string,
  { secrets, baseUrl }: Partial<TokenMaker> = {},
): OwnTokenFacts {
  if (!isOwnToken(token)) return { kind: 'foreign' };
  if (token.startsWith(REFRESH_TOKEN_PREFIX)) return { kind: 'refresh' };
  if (secrets === undefined || baseUrl === undefined) return { kind: 'sealed' };
  const opened = createTokenCodec(createSeal(secrets), baseUrl).readAccessToken(token);
  if (opened === undefined) return { kind: 'unknown' };
  return { kind: 'access', grantId: opened.grantId, expiresAt: opened.expiresAt };
}

/** Whether it is one of the gateway's own, a good one or not. */
export const isOfGateway = (token: string): boolean => inspectOwnToken(token).kind !== 'foreign';
