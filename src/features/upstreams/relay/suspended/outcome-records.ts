// §18.3: what a call came to, for the replica where the client's retry waits: sealed, for one use.
import type { Seal } from '../../../../core/seal/seal.ts';
import { hashSha256 } from '../../../../core/sha256.ts';
import { buildSuspendedCallKey } from '../../../../core/store/keys.ts';
import type { Store } from '../../../../core/store/store.ts';
import { type Outcome, parseOutcome } from './outcome.ts';

/** Another user's look does not find it. */
export interface CallOwner {
  readonly id: string;
  readonly sub: string | undefined;
}

export interface OutcomeRecords {
  put(owner: CallOwner, outcome: Outcome): Promise<void>;
  /** For one of many at the same moment. */
  take(owner: CallOwner): Promise<Outcome | undefined>;
}

export interface OutcomeRecordsDeps {
  readonly store: Pick<Store, 'set' | 'getAndDelete'>;
  getSeal(): Promise<Seal>;
  /** `MCP_SESSION_KEY_PREFIX`. */
  readonly keyPrefix: string;
}

const TTL_SECONDS = 300;

export function createOutcomeRecords({
  store,
  getSeal,
  keyPrefix,
}: OutcomeRecordsDeps): OutcomeRecords {
  const buildKey = ({ id, sub }: CallOwner) =>
    buildSuspendedCallKey(keyPrefix, hashSha256(JSON.stringify([id, sub ?? null])));

  return {
    async put(owner, outcome) {
      const key = buildKey(owner);
      const sealed = (await getSeal()).seal(key, JSON.stringify(outcome));
      await store.set(key, sealed, TTL_SECONDS);
    },
    async take(owner) {
      const key = buildKey(owner);
      const sealed = await store.getAndDelete(key);
      const text = sealed && (await getSeal()).open(key, sealed);
      return text ? parseOutcome(text) : undefined;
    },
  };
}
