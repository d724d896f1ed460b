// §18.3: what a call came to, for the replica where the client's retry waits: sealed, for one use.
import type { Seal } from '../../../../core/seal/seal.ts';
import { hashSha256 } from '../../../../core/sha256.ts';
import { buildSuspendedCallKey } from '../../../../core/store/keys.ts';
import type { Store } from '../../../../core/store/store.ts';
import { createKeptBytes } from './kept-bytes.ts';
import { type Outcome, parseOutcome } from './outcome.ts';

/** Another user's look does not find it. */
export interface CallOwner {
  readonly id: string;
  readonly sub: string | undefined;
}

export interface OutcomeRecords {
  /** Where there is no room for it, its owner is told so in its place. */
  put(owner: CallOwner, outcome: Outcome): Promise<void>;
  /** For one of many at the same moment. */
  take(owner: CallOwner): Promise<Outcome | undefined>;
}

export interface OutcomeRecordsDeps {
  readonly store: Pick<Store, 'set' | 'getAndDelete' | 'reserveBytes' | 'releaseBytes'>;
  getSeal(): Promise<Seal>;
  /** `MCP_SESSION_KEY_PREFIX`. */
  readonly keyPrefix: string;
  /** `MAX_UPSTREAM_BYTES`. */
  readonly maxAnswerBytes: number;
}

const TTL_SECONDS = 300;

const NO_ROOM: Outcome = {
  kind: 'failed',
  failure: 'overloaded',
  message:
    'it came before your answer to its question, and too much is kept already until clients come back for it',
};

export function createOutcomeRecords(deps: OutcomeRecordsDeps): OutcomeRecords {
  const { store, getSeal, keyPrefix } = deps;
  const keptBytes = createKeptBytes({ ...deps, ttlSeconds: TTL_SECONDS });

  const buildKey = ({ id, sub }: CallOwner) =>
    buildSuspendedCallKey(keyPrefix, hashSha256(JSON.stringify([id, sub ?? null])));

  /** False where there is no room. */
  async function write(
    { id, sub }: CallOwner,
    outcome: Outcome,
    size: 'any' | 'small',
  ): Promise<boolean> {
    const key = buildKey({ id, sub });
    const sealed = (await getSeal()).seal(key, JSON.stringify(outcome));
    const hasRoom = await keptBytes.reserve(sub, toEntry(key, sealed), size);
    if (hasRoom) await store.set(key, sealed, TTL_SECONDS);
    return hasRoom;
  }

  return {
    async put(owner, outcome) {
      if (!(await write(owner, outcome, 'any'))) await write(owner, NO_ROOM, 'small');
    },
    async take(owner) {
      const key = buildKey(owner);
      const sealed = await store.getAndDelete(key);
      if (sealed === undefined) return undefined;
      // What cannot be released now counts until its time is over.
      await keptBytes.release(owner.sub, toEntry(key, sealed)).catch(() => {});
      const text = (await getSeal()).open(key, sealed);
      return text === undefined ? undefined : parseOutcome(text);
    },
  };
}

const toEntry = (name: string, sealed: string) => ({ name, bytes: sealed.length });
