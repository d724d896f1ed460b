// A grant: one user let one client act, with the provider's tokens for it. The gateway's own tokens stand for it.
import { randomBytes } from 'node:crypto';
import type { JsonObject } from '../../platform/json.ts';

/** Somebody at a provider. A `sub` alone says nothing: each issuer has its own (OpenID Connect Core §5.7). */
export interface UserIdentity {
  readonly issuer: string;
  readonly sub: string;
}

/** For the log and the audit log. */
export const nameUser = ({ issuer, sub }: UserIdentity) => ({ user: sub, issuer });

/** Sealed in the store under its id. Times are epoch milliseconds. */
export interface Grant {
  /** 16 random bytes, base64url. */
  readonly id: string;
  readonly user: UserIdentity;
  /** All that the provider said of the user, at most 16 KiB: rules, tools and pages read it. */
  readonly claims: JsonObject;
  /** Those that the userinfo endpoint alone gave: a renewal that cannot ask it keeps them. */
  readonly userinfoClaims?: readonly string[] | undefined;
  readonly client: {
    readonly id: string;
    readonly name?: string | undefined;
    /** The host where its codes went; undefined where it logged in as itself. */
    readonly redirectHost?: string | undefined;
  };
  /** The mark that the client had then, if it logged in as itself (`MachineClient`). It has no refresh token. */
  readonly clientMark?: string | undefined;
  /** There if an assertion of the user's issuer stands behind it (ID-JAG). It has no refresh token. */
  readonly assertion?:
    | {
        /** The mark that its client had then; undefined where a document describes the client. */
        readonly clientMark: string | undefined;
      }
    | undefined;
  /** Those of the consent page. */
  readonly scopes: readonly string[];
  /** RFC 8707: what its tokens are for. */
  readonly resources: readonly string[];
  readonly createdAt: number;
  /** OpenID Connect Back-Channel Logout §2.1: the session at the provider. */
  readonly sid?: string | undefined;
  readonly provider: ProviderTokens;
  /** When the provider last said that the user still may. */
  readonly renewedAt: number;
  /** When the first renewal failed since then. */
  readonly renewalFailedAt?: number | undefined;
  /** When the last one was tried, where it failed. */
  readonly renewalTriedAt?: number | undefined;
  /** Until when the lists of grants name it; it may end before. */
  readonly listedUntil?: number | undefined;
  /** The `sid` by whose list it is found. */
  readonly listedSid?: string | undefined;
  /** The tokens that its client has. */
  readonly issued: IssuedPair;
  /** The refresh token that those took the place of. */
  readonly replaced?: { readonly generation: number; readonly replacedAt: number } | undefined;
}

/** The mark that a client of the configuration file had then; undefined for the grant of another client. */
export const getClientMark = ({ clientMark, assertion }: Grant): string | undefined =>
  clientMark ?? assertion?.clientMark;

/** A client that authenticates each time it gets a token asks for the next one as it asked for this. */
export const hasRefreshToken = ({ clientMark, assertion }: Grant): boolean =>
  clientMark === undefined && assertion === undefined;

export const createGrantId = (): string => randomBytes(16).toString('base64url');

/** True for what could be a grant's id at all; anything else must never reach the store. */
export const isGrantId = (value: string): boolean => GRANT_ID.test(value);

const GRANT_ID = /^[\w-]{22}$/;

/** The provider's tokens for it; no client ever sees them. */
export interface ProviderTokens {
  readonly accessToken?: string | undefined;
  /** The end of the access token, where the provider said it. */
  readonly expiresAt?: number | undefined;
  readonly refreshToken?: string | undefined;
  /** The access token lives until it is revoked: it asks whether the user still may, in place of a refresh token. */
  readonly isLasting?: boolean | undefined;
}

/** Tells whether the provider can be asked again. */
export const isRenewable = ({ refreshToken, isLasting = false }: ProviderTokens): boolean =>
  refreshToken !== undefined || isLasting;

/** An access token and the refresh token that came with it. They are made anew from this, always to the letter. */
export interface IssuedPair {
  /** Counts the pairs of a grant: a token of an earlier one is told by it. */
  readonly generation: number;
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly scopes: readonly string[];
  readonly resources: readonly string[];
  /** One of the two was used. */
  readonly isUsed: boolean;
}

/** The client has the tokens that were given last: the refresh token before is of use to nobody but a thief. */
export const noteFirstUse = (grant: Grant): Grant => ({
  ...grant,
  issued: { ...grant.issued, isUsed: true },
});

// §5.11: when a grant ends by itself.

/** Seconds for which a grant lives from now on. */
export interface GrantLifetime {
  /** Past its last refresh: `OAUTH_REFRESH_TTL_SECONDS`. */
  readonly idleSeconds: number;
  /** In all: `OAUTH_GRANT_MAX_SECONDS`; 0 for no end. */
  readonly maxSeconds: number;
  /** In all, where the provider gave nothing to renew it with: `OAUTH_GRANT_UNRENEWED_SECONDS`. */
  readonly unrenewedSeconds: number;
}

/** Epoch milliseconds. */
export function computeGrantEnd(grant: Grant, lifetime: GrantLifetime): number {
  const { issued } = grant;
  if (!hasRefreshToken(grant)) return issued.expiresAt;
  return Math.min(issued.issuedAt + lifetime.idleSeconds * 1000, computeAgeEnd(grant, lifetime));
}

/** Likewise: by its age, however often its client refreshes. Infinity where it has no such end, and where it is as old as its one token. */
export function computeAgeEnd(grant: Grant, { maxSeconds, unrenewedSeconds }: GrantLifetime) {
  if (!hasRefreshToken(grant)) return Number.POSITIVE_INFINITY;
  const seconds = Math.min(
    maxSeconds > 0 ? maxSeconds : Number.POSITIVE_INFINITY,
    isRenewable(grant.provider) ? Number.POSITIVE_INFINITY : unrenewedSeconds,
  );
  return grant.createdAt + seconds * 1000;
}
