// §5.11: when a grant ends by itself.
import { type Grant, hasRefreshToken, isRenewable } from './grant.ts';

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
export function computeAgeEnd(
  grant: Grant,
  { maxSeconds, unrenewedSeconds }: Omit<GrantLifetime, 'idleSeconds'>,
): number {
  if (!hasRefreshToken(grant)) return Number.POSITIVE_INFINITY;
  const seconds = [
    maxSeconds > 0 ? maxSeconds : Number.POSITIVE_INFINITY,
    isRenewable(grant.provider) ? Number.POSITIVE_INFINITY : unrenewedSeconds,
  ];
  return grant.createdAt + Math.min(...seconds) * 1000;
}
