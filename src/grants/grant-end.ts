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
export function computeGrantEnd(
  grant: Grant,
  { idleSeconds, maxSeconds, unrenewedSeconds }: GrantLifetime,
): number {
  const { createdAt, issued, provider } = grant;
  if (!hasRefreshToken(grant)) return issued.expiresAt;
  const ends = [
    issued.issuedAt + idleSeconds * 1000,
    ...(maxSeconds > 0 ? [createdAt + maxSeconds * 1000] : []),
    ...(isRenewable(provider) ? [] : [createdAt + unrenewedSeconds * 1000]),
  ];
  return Math.min(...ends);
}
