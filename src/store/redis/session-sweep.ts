// Goes through the index entries that are due: those of gone sessions are removed, those of touched
// sessions get their new time.
import type { Clock } from '../../platform/clock.ts';
import type { Store } from '../store.ts';
import type { CommandRunner } from './command-runner.ts';
import { addUserSessionScript } from './scripts.ts';

export interface SessionSweepOptions {
  readonly commands: CommandRunner;
  readonly clock: Clock;
  /** Key of the sorted set of live sessions. */
  readonly index: string;
  buildKey(id: string): string;
  buildUserSetKey(userId: string): string;
}

/** Small enough for one deadline. */
const BATCH = 200;

export function createSessionSweep(options: SessionSweepOptions): Store['sweepSessions'] {
  const { commands, clock, index, buildKey, buildUserSetKey } = options;

  return async function sweepSessions() {
    let removed = 0;
    for (;;) {
      const due = await commands.run((client) =>
        client.zrangebyscore(index, '-inf', clock.now(), 'LIMIT', 0, BATCH),
      );
      removed += (await Promise.all(due.map(sweepEntry))).filter(Boolean).length;
      if (due.length < BATCH) return removed;
    }
  };

  /** True when the entry was removed. */
  async function sweepEntry(id: string): Promise<boolean> {
    const [leftMs, userId] = await Promise.all([
      commands.run((client) => client.pttl(buildKey(id))),
      commands.run((client) => client.hget(buildKey(id), 'userId')),
    ]);
    if (leftMs < 0) return removeFromSet(commands, index, id);
    const expiresAt = clock.now() + leftMs;
    // XX: a session that is ended at this moment must not come back into the index.
    await commands.run((client) => client.zadd(index, 'XX', expiresAt, id));
    if (userId !== null) await updateUserSet(buildUserSetKey(userId), id, { expiresAt, leftMs });
    return false;
  }

  /** Where sessions are limited: also those that were opened before they were. */
  async function updateUserSet(userSet: string, id: string, { expiresAt, leftMs }: Remaining) {
    const args = [id, expiresAt, leftMs, 1];
    const added = await commands.run((client) => addUserSessionScript.run(client, [userSet], args));
    if (added === 0) return;
    // It may have been ended meanwhile.
    const exists = await commands.run((client) => client.exists(buildKey(id)));
    if (exists === 0) await removeFromSet(commands, userSet, id);
  }
}

interface Remaining {
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  readonly leftMs: number;
}

/** True when it was there: of many at the same moment, for one. */
export const removeFromSet = async (commands: CommandRunner, set: string, member: string) =>
  (await commands.run((client) => client.zrem(set, member))) === 1;
