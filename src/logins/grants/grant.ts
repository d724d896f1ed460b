// A grant: the permission of one user for one client, with the provider's tokens for it. The gateway's own tokens refer to it.
import { randomBytes } from 'node:crypto';
import type { UserGrant } from '../../http/endpoint/grants.ts';

/** A user of a provider. `sub` alone is ambiguous: each issuer has its own (OpenID Connect Core §5.7). */
export type UserIdentity = UserGrant['user'];

/** For the log and the audit log. */
export const nameUser = ({ issuer, sub }: UserIdentity) => ({ user: sub, issuer });

/** Sealed in the store under its ID. Its claims have at most 16 KiB. Times are epoch milliseconds. */
export interface Grant extends UserGrant {
  /** 16 random bytes, base64url. */
  readonly id: string;
  /** Claims that only the userinfo endpoint gave: a renewal that cannot query it keeps them. */
  readonly userinfoClaims?: readonly string[] | undefined;
  /** `mark` of the client (`MachineClient`) that authenticated as itself. Such a grant has no refresh token. */
  readonly clientMark?: string | undefined;
  /** Set for a grant by an assertion (ID-JAG). Such a grant has no refresh token. */
  readonly assertion?:
    | {
        /** `mark` of its client; undefined for a client identified by its document. */
        readonly clientMark: string | undefined;
      }
    | undefined;
  /** Scopes of the consent page. */
  readonly scopes: readonly string[];
  /** RFC 8707: audience of its tokens. */
  readonly resources: readonly string[];
  readonly createdAt: number;
  /** OpenID Connect Back-Channel Logout §2.1: session at the provider. */
  readonly sid?: string | undefined;
  readonly provider: ProviderTokens;
  /** When the provider last confirmed that the user still has access. */
  readonly renewedAt: number;
  /** When the first renewal failed since then. */
  readonly renewalFailedAt?: number | undefined;
  /** When a failed renewal was last tried. */
  readonly renewalTriedAt?: number | undefined;
  /** When its entries in the lists expire; the grant may end earlier. */
  readonly listedUntil?: number | undefined;
  /** The `sid` under which it is listed. */
  readonly listedSid?: string | undefined;
  /** Tokens that its client has. */
  readonly issued: IssuedPair;
  /** The refresh token that those replaced. */
  readonly replaced?: { readonly generation: number; readonly replacedAt: number } | undefined;
}

/** The mark of a client in the configuration file; undefined for the grant of any other client. */
export const getClientMark = ({ clientMark, assertion }: Grant): string | undefined =>
  clientMark ?? assertion?.clientMark;

/** A client that authenticates for each token needs no refresh token. */
export const hasRefreshToken = ({ clientMark, assertion }: Grant): boolean =>
  clientMark === undefined && assertion === undefined;

export const createGrantId = (): string => randomBytes(16).toString('base64url');

/** True for the form of a grant's ID; any other text must never reach the store. */
export const isGrantId = (value: string): boolean => GRANT_ID.test(value);

const GRANT_ID = /^[\w-]{22}$/;

/** The provider's tokens for it, which no client ever sees. */
export interface ProviderTokens {
  readonly accessToken?: string | undefined;
  /** Expiry of the access token, if the provider gave one. */
  readonly expiresAt?: number | undefined;
  readonly refreshToken?: string | undefined;
  /** The access token lives until it is revoked. It is used for renewals, instead of a refresh token. */
  readonly isLasting?: boolean | undefined;
}

/** True if the gateway can check with the provider again. */
export const isRenewable = ({ refreshToken, isLasting = false }: ProviderTokens): boolean =>
  refreshToken !== undefined || isLasting;

/** An access token and its refresh token. Both can be computed again from this, byte by byte. */
export interface IssuedPair {
  /** Number of the pair within the grant, which is a part of its tokens. */
  readonly generation: number;
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly scopes: readonly string[];
  readonly resources: readonly string[];
  /** One of the two tokens was used. */
  readonly isUsed: boolean;
}

/** The client has the last tokens: apart from requests under way, only a thief would still use the replaced refresh token. */
export const noteFirstUse = (grant: Grant): Grant => ({
  ...grant,
  issued: { ...grant.issued, isUsed: true },
});

// §5.11: expiry of a grant.

/** Lifetime of a grant, in seconds. */
export interface GrantLifetime {
  /** Since its last refresh: `OAUTH_REFRESH_TTL_SECONDS`. */
  readonly idleSeconds: number;
  /** In total: `OAUTH_GRANT_MAX_SECONDS`; 0 for no limit. */
  readonly maxSeconds: number;
  /** In total, if the provider gave nothing to renew it with: `OAUTH_GRANT_UNRENEWED_SECONDS`. */
  readonly unrenewedSeconds: number;
}

/** Epoch milliseconds. */
export function computeGrantEnd(grant: Grant, lifetime: GrantLifetime): number {
  const { issued } = grant;
  if (!hasRefreshToken(grant)) return issued.expiresAt;
  return Math.min(issued.issuedAt + lifetime.idleSeconds * 1000, computeAgeEnd(grant, lifetime));
}

/**
 * Expiry by age, however often its client refreshes; epoch milliseconds. Infinity without such a limit, and for a grant with a
 * single token.
 */
export function computeAgeEnd(grant: Grant, { maxSeconds, unrenewedSeconds }: GrantLifetime) {
  if (!hasRefreshToken(grant)) return Number.POSITIVE_INFINITY;
  const seconds = Math.min(
    maxSeconds > 0 ? maxSeconds : Number.POSITIVE_INFINITY,
    isRenewable(grant.provider) ? Number.POSITIVE_INFINITY : unrenewedSeconds,
  );
  return grant.createdAt + seconds * 1000;
}
