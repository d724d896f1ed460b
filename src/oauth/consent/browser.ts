// The browser in which a login began: a cookie that only it has, of which only the hash is stored.
import { generateSecret } from '../../platform/ids.ts';
import { hashSha256 } from '../../platform/sha256.ts';

export interface Browser {
  /** Stands in records for the cookie. */
  readonly hash: string;
  /** Headers that give a new browser its cookie, or let a known one keep it. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface Browsers {
  /** The browser of a Cookie header, or a new one. */
  getOrCreate(cookie: string | undefined): Browser;
  /** The hash of the cookie that was sent; undefined without one. */
  readHash(cookie: string | undefined): string | undefined;
}

/** `ttlSeconds` is how long approvals are remembered; the cookie has to outlive a login. */
export function createBrowsers(baseUrl: string, ttlSeconds: number): Browsers {
  const isSecure = /^https:/i.test(baseUrl);
  // With the prefix no other host below the same domain can set it (RFC 6265bis §4.1.3).
  const name = isSecure ? '__Host-postern' : 'postern';
  const maxAge = Math.max(ttlSeconds, 3600);
  const attributes = `Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  const pattern = new RegExp(`(?:^|;)\\s*${name}=([A-Za-z0-9_-]{43})\\s*(?:;|$)`);

  const readSecret = (cookie: string | undefined) => pattern.exec(cookie ?? '')?.[1];
  return {
    getOrCreate(cookie) {
      const secret = readSecret(cookie) ?? generateSecret();
      return {
        hash: hashSha256(secret),
        headers: { 'Set-Cookie': `${name}=${secret}; ${attributes}` },
      };
    },
    readHash(cookie) {
      const secret = readSecret(cookie);
      return secret === undefined ? undefined : hashSha256(secret);
    },
  };
}
