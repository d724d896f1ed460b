// §8: refresh tokens that this process handed out or looked up lately. They are served however many made-up ones come
// from the same address.
import { hashSha256 } from '../../../core/sha256.ts';

export interface KnownRefreshTokens {
  has(refreshToken: string, clientId: string): boolean;
  add(refreshToken: string, clientId: string): void;
  remove(refreshToken: string, clientId: string): void;
}

const MAX_TOKENS = 10_000;

export function createKnownRefreshTokens(): KnownRefreshTokens {
  /** The one that was used longest ago first. */
  const known = new Set<string>();

  return {
    has: (refreshToken, clientId) => known.has(toKey(refreshToken, clientId)),
    add(refreshToken, clientId) {
      const key = toKey(refreshToken, clientId);
      known.delete(key);
      known.add(key);
      const [oldest] = known;
      if (known.size > MAX_TOKENS && oldest !== undefined) known.delete(oldest);
    },
    remove: (refreshToken, clientId) => void known.delete(toKey(refreshToken, clientId)),
  };
}

const toKey = (refreshToken: string, clientId: string): string =>
  hashSha256(JSON.stringify([clientId, refreshToken]));
