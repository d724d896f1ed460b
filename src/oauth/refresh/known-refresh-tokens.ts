// §8: refresh tokens that this process handed out or looked up lately. They are served however many made-up ones come
// from the same address.
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { hashSha256 } from '../../platform/sha256.ts';

export interface KnownRefreshTokens {
  /** The grant that it belongs to. */
  find(refreshToken: string, clientId: string): string | undefined;
  add(refreshToken: string, clientId: string, grantId: string): void;
  remove(refreshToken: string, clientId: string): void;
}

const MAX_TOKENS = 10_000;

export function createKnownRefreshTokens(): KnownRefreshTokens {
  const known = createBoundedMap<string, string>(MAX_TOKENS);

  return {
    find: (refreshToken, clientId) => known.get(toKey(refreshToken, clientId)),
    add: (refreshToken, clientId, grantId) =>
      void known.set(toKey(refreshToken, clientId), grantId),
    remove: (refreshToken, clientId) => void known.delete(toKey(refreshToken, clientId)),
  };
}

const toKey = (refreshToken: string, clientId: string): string =>
  hashSha256(JSON.stringify([clientId, refreshToken]));
