// §18.3: how much of what calls came to lies in the store: a budget for each user, and one for all users of all replicas.
import { hashSha256 } from '../../../../core/sha256.ts';
import { buildSuspendedBytesKey } from '../../../../core/store/keys.ts';
import type { ByteEntry, Store } from '../../../../core/store/store.ts';

export interface KeptBytes {
  /** False where there is no room. Entries of all users have names of their own. A `small` entry may go a little beyond what the others may fill. */
  reserve(sub: string | undefined, entry: ByteEntry, size: 'any' | 'small'): Promise<boolean>;
  release(sub: string | undefined, entry: ByteEntry): Promise<void>;
}

export interface KeptBytesDeps {
  readonly store: Pick<Store, 'reserveBytes' | 'releaseBytes'>;
  /** `MCP_SESSION_KEY_PREFIX`. */
  readonly keyPrefix: string;
  /** `MAX_UPSTREAM_BYTES`. */
  readonly maxAnswerBytes: number;
  readonly ttlSeconds: number;
}

const MEBIBYTE = 1_048_576;
const USER_BYTES = 16 * MEBIBYTE;
const ALL_BYTES = 128 * MEBIBYTE;
/** For what is told in place of answers that had no room. */
const SMALL_BYTES = MEBIBYTE;
/** Sealing makes a third more of an answer; and it may be written longer than it came. */
const SEALED_PER_BYTE = 1.5;

interface Budget {
  readonly key: string;
  readonly maxBytes: number;
}

export function createKeptBytes(deps: KeptBytesDeps): KeptBytes {
  const { store, keyPrefix, maxAnswerBytes, ttlSeconds } = deps;
  // One answer of a server has room.
  const oneAnswer = maxAnswerBytes * SEALED_PER_BYTE;
  const all: Budget = {
    key: buildSuspendedBytesKey(keyPrefix, 'all'),
    maxBytes: Math.max(ALL_BYTES, oneAnswer),
  };

  /** The user's first: a user whose budget is full takes nothing of the others'. */
  function listBudgets(sub: string | undefined): readonly Budget[] {
    if (sub === undefined) return [all];
    const key = buildSuspendedBytesKey(keyPrefix, hashSha256(sub));
    return [{ key, maxBytes: Math.max(USER_BYTES, oneAnswer) }, all];
  }

  return {
    async reserve(sub, entry, size) {
      const reserved: Budget[] = [];
      for (const budget of listBudgets(sub)) {
        const maxBytes = budget.maxBytes + (size === 'small' ? SMALL_BYTES : 0);
        if (!(await store.reserveBytes(budget.key, entry, { maxBytes, ttlSeconds }))) {
          await Promise.all(reserved.map(({ key }) => store.releaseBytes(key, entry)));
          return false;
        }
        reserved.push(budget);
      }
      return true;
    },
    async release(sub, entry) {
      await Promise.all(listBudgets(sub).map(({ key }) => store.releaseBytes(key, entry)));
    },
  };
}
