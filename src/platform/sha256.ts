import { hash, timingSafeEqual } from 'node:crypto';

/**
 * SHA-256 as base64url. What is stored in place of a secret or of a caller's text: as long as a
 * key, so that it cannot be found by trial. Also the S256 code challenge of a verifier (RFC 7636 §4.2).
 */
export const hashSha256 = (data: string | Uint8Array): string => hash('sha256', data, 'base64url');

/** Whether two secrets are the same; how long it takes says nothing of either. */
export const isEqualSecret = (one: string, other: string): boolean =>
  timingSafeEqual(Buffer.from(hashSha256(one)), Buffer.from(hashSha256(other)));
