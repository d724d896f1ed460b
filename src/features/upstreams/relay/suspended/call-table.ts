// The calls of this replica that wait, or waited, for an answer of their client.
import type { OpenCall } from './open-call.ts';
import type { CallOwner } from './outcome-records.ts';

export interface SuspendedCall extends CallOwner {
  readonly server: string;
  readonly openCall: OpenCall;
}

export interface CallTable {
  /** False when the user, or the process, has too many. */
  add(call: SuspendedCall): boolean;
  /** Undefined where it is another user's, or at another server. */
  find(call: Pick<SuspendedCall, 'id' | 'sub' | 'server'>): OpenCall | undefined;
  remove(id: string): void;
  list(): readonly SuspendedCall[];
}

const MAX_PER_USER = 16;
const MAX_IN_ALL = 512;

export function createCallTable(): CallTable {
  const calls = new Map<string, SuspendedCall>();
  const countOf = (sub: string) =>
    [...calls.values()].reduce((count, call) => (call.sub === sub ? count + 1 : count), 0);

  return {
    add(call) {
      if (calls.has(call.id)) return true;
      if (calls.size >= MAX_IN_ALL) return false;
      if (call.sub !== undefined && countOf(call.sub) >= MAX_PER_USER) return false;
      calls.set(call.id, call);
      return true;
    },
    find({ id, sub, server }) {
      const call = calls.get(id);
      return call?.sub === sub && call?.server === server ? call?.openCall : undefined;
    },
    remove: (id) => void calls.delete(id),
    list: () => [...calls.values()],
  };
}
