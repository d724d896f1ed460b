// Which client a refresh token belongs to. Only its hash is stored.
import { hashOf } from '../../../core/seal/seal.ts';
import { oauthKey } from '../../../core/store/keys.ts';
import type { Store } from '../../../core/store/store.ts';

export interface RefreshBindings {
  /** The client's id; undefined for a token from before the gateway knew of it. */
  ownerOf(refreshToken: string): Promise<string | undefined>;
  /** Binds it, or begins its time anew. */
  bind(refreshToken: string, clientId: string): Promise<void>;
  unbind(refreshToken: string): Promise<void>;
}

export function createRefreshBindings(store: Store, ttlSeconds: number): RefreshBindings {
  const keyOf = (refreshToken: string) => oauthKey('refresh', hashOf(refreshToken));
  return {
    ownerOf: (refreshToken) => store.get(keyOf(refreshToken)),
    bind: (refreshToken, clientId) => store.set(keyOf(refreshToken), clientId, ttlSeconds),
    unbind: (refreshToken) => store.delete(keyOf(refreshToken)),
  };
}
