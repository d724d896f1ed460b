// §4.7: which grant a token belongs to, and what happened to the grant last. Only hashes of tokens are stored.
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { parseObject } from '../../platform/json.ts';
import { buildOAuthKey } from '../../store/keys.ts';
import { writeVersioned } from '../../store/records.ts';
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
  /**
   * Changes whenever something happens to the grant: the provider answers a refresh, or a token of it is revoked or refused. It says
   * which answer is the last one, and that nothing came after it; on all replicas, whatever their clocks say.
   */
  readMark(grantId: string): Promise<string | undefined>;
  /** False, and nothing is done, where `before` is the mark no more, and for a grant that has ended. */
  changeMark(grantId: string, before: string | undefined, mark: string): Promise<boolean>;
  /** For some minutes the mark stays what it is then. */
  end(grantId: string): Promise<void>;
}

/** A token that was stolen and replaced long ago still ends what came after it. */
const GRANT_SECONDS = 86_400;
/** After a weekend or a holiday it still says whose login comes. */
const CURRENT_SECONDS = 2_592_000;

export function createKnownGrants(store: KeyValue): KnownGrants {
  return {
    async find(hash) {
      const text = await store.get(buildGrantKey(hash));
      const { grantId, clientId, isReplaced } = (text && parseObject(text)) || {};
      if (typeof grantId !== 'string' || typeof clientId !== 'string') return undefined;
      return { grantId, clientId, isReplaced: isReplaced === true };
    },
    async keep(hash, grant, isCurrent) {
      const ttlSeconds = isCurrent ? CURRENT_SECONDS : GRANT_SECONDS;
      await store.set(buildGrantKey(hash), writeVersioned(grant), ttlSeconds);
    },
    readMark: (grantId) => store.get(buildMarkKey(grantId)),
    changeMark: async (grantId, before, mark) =>
      before !== ENDED && store.compareAndSet(buildMarkKey(grantId), before, mark, MARK_SECONDS),
    end: (grantId) => store.set(buildMarkKey(grantId), ENDED, MARK_SECONDS),
  };
}

/** The mark of a grant that has ended. */
const ENDED = 'ended';
/** Longer than an answer is given again and the provider may take for one. Without its mark no answer is. */
const MARK_SECONDS = 600;

const buildGrantKey = (hash: string): string => buildOAuthKey('recent-grant', hash);

const buildMarkKey = (grantId: string): string => buildOAuthKey('recent-mark', hashSha256(grantId));

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
