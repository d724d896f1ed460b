// §4.7: which grant a token belongs to, and which grants were ended. Only hashes of tokens are stored.
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { parseObject } from '../../platform/json.ts';
import { buildOAuthKey, RECORD_VERSION } from '../../store/keys.ts';
import type { KeyValue } from '../../store/store.ts';

export interface KnownGrant {
  /** Stays the same from refresh to refresh. */
  readonly grantId: string;
  /** Who got the token. */
  readonly clientId: string;
  /** Whether the client had another refresh token given in place of this one. */
  readonly isReplaced: boolean;
}

interface KnownGrants {
  /** By the hash of a token that the gateway handed out within the last day, or of a current refresh token of the last 30 days. */
  find(hash: string): Promise<KnownGrant | undefined>;
  keep(hash: string, grant: KnownGrant, isCurrent: boolean): Promise<void>;
  /** Nothing that was kept of the grant is given again. */
  end(grantId: string): Promise<void>;
  isEnded(grantId: string): Promise<boolean>;
}

/** A token that was stolen and replaced long ago still ends what came after it. */
const GRANT_SECONDS = 86_400;
/** After a weekend or a holiday it still says whose login comes. */
const CURRENT_SECONDS = 2_592_000;

export function createKnownGrants(store: KeyValue, endSeconds: number): KnownGrants {
  return {
    async find(hash) {
      const text = await store.get(buildGrantKey(hash));
      const { grantId, clientId, isReplaced } = (text && parseObject(text)) || {};
      if (typeof grantId !== 'string' || typeof clientId !== 'string') return undefined;
      return { grantId, clientId, isReplaced: isReplaced === true };
    },
    async keep(hash, grant, isCurrent) {
      const text = JSON.stringify({ version: RECORD_VERSION, ...grant });
      await store.set(buildGrantKey(hash), text, isCurrent ? CURRENT_SECONDS : GRANT_SECONDS);
    },
    end: (grantId) => store.set(buildEndKey(grantId), '1', endSeconds),
    isEnded: async (grantId) => (await store.get(buildEndKey(grantId))) !== undefined,
  };
}

const buildGrantKey = (hash: string): string => buildOAuthKey('recent-grant', hash);

const buildEndKey = (grantId: string): string => buildOAuthKey('recent-ended', hashSha256(grantId));

// §8: refresh tokens that this process handed out or looked up lately. They are served however many made-up ones come
// from the same address.

interface KnownRefreshTokens {
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
