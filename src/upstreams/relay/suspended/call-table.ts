// The calls of this replica that wait, or waited, for an answer of their client.
import type { OpenCall } from './open-call.ts';
import type { CallOwner } from './outcome-records.ts';

export interface SuspendedCall extends CallOwner {
  readonly server: string;
  /** Of its params; its open questions count beside them. */
  readonly bytes: number;
  readonly openCall: OpenCall;
}

export interface CallTable {
  has(id: string): boolean;
  /** False when the user, or the process, has too many, or too much is kept for them. */
  add(call: SuspendedCall): boolean;
  /** False when what this user's calls keep, or those of all, has become too much. */
  hasRoom(sub: string | undefined): boolean;
  /** Undefined where it is another user's, or at another server. */
  find(call: Pick<SuspendedCall, 'id' | 'sub' | 'server'>): OpenCall | undefined;
  remove(id: string): void;
  list(): readonly SuspendedCall[];
}

/** The bytes are those that a user's other calls may have. */
const MAX_PER_USER = { calls: 16, bytes: 8 * 1024 * 1024 };
const MAX_IN_ALL = { calls: 512, bytes: 64 * 1024 * 1024 };

export function createCallTable(): CallTable {
  const calls = new Map<string, SuspendedCall>();

  function hasRoom(sub: string | undefined): boolean {
    const all = [...calls.values()];
    // Without authentication nothing is counted per user.
    const ofUser = sub === undefined ? [] : all.filter((call) => call.sub === sub);
    return fits(all, MAX_IN_ALL) && fits(ofUser, MAX_PER_USER);
  }

  return {
    has: (id) => calls.has(id),
    add(call) {
      calls.set(call.id, call);
      if (hasRoom(call.sub)) return true;
      calls.delete(call.id);
      return false;
    },
    hasRoom,
    find({ id, sub, server }) {
      const call = calls.get(id);
      return call?.sub === sub && call?.server === server ? call?.openCall : undefined;
    },
    remove: (id) => void calls.delete(id),
    list: () => [...calls.values()],
  };
}

const fits = (calls: readonly SuspendedCall[], max: typeof MAX_IN_ALL): boolean =>
  calls.length <= max.calls && calls.reduce((sum, call) => sum + countBytes(call), 0) <= max.bytes;

const countBytes = ({ bytes, openCall }: SuspendedCall): number =>
  bytes + openCall.countQuestionBytes();
