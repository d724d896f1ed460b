// The sessions of one user on a cluster, in a sorted set by expiry (§12). Its scores lag
// behind touches, which are many: they are corrected where it matters, when one more session is opened,
// and by the sweep. The set outlives its sessions, and no user who went away leaves one behind.
import type { Clock } from '../../platform/clock.ts';
import type { CommandRunner } from './command-runner.ts';
import { addUserSessionScript, claimUserSessionScript } from './session-hash.ts';
import { removeFromSet } from './sorted-sets.ts';

export interface ClusterUserSessions {
  /** Adds a new session, and ends those that are too many. Resolves to the ids of those. */
  add(session: NewUserSession, max: number): Promise<readonly string[]>;
}

export interface NewUserSession {
  readonly id: string;
  /** Key of the user's set. */
  readonly userSet: string;
  readonly ttlSeconds: number;
}

export interface ClusterUserSessionsOptions {
  readonly commands: CommandRunner;
  readonly clock: Clock;
  /** Key of the sorted set of live sessions. */
  readonly index: string;
  buildKey(id: string): string;
}

/** Most entries are right at once; where the first ones are not, more are looked at together. */
const MAX_BATCH = 64;

/** The next session that is opened goes on where this one stopped. */
const MAX_ROUNDS = 100;

/**
 * On a cluster the set and the sessions lie in different slots, so they cannot be judged in one script.
 * Who ends a session has taken it out of the set before, and only while there were too many: whatever
 * many replicas do at once, as many are left as are allowed.
 */
export function createClusterUserSessions(
  options: ClusterUserSessionsOptions,
): ClusterUserSessions {
  const { commands, clock, index, buildKey } = options;

  async function readFirst(userSet: string, limit: number): Promise<readonly Entry[]> {
    const flat = await commands.run((client) =>
      client.zrangebyscore(userSet, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, limit),
    );
    return flat.flatMap((id, at) => (at % 2 === 0 ? [{ id, dueAt: Number(flat[at + 1]) }] : []));
  }

  /** False when the entry was right already. */
  async function correctEntry(userSet: string, { id, dueAt }: Entry, corrected: Set<string>) {
    const leftMs = await commands.run((client) => client.pttl(buildKey(id)));
    const expiresAt = clock.now() + leftMs;
    // Once each: clocks and distances differ by more than a millisecond.
    const isRight = leftMs >= 0 && (expiresAt <= dueAt || corrected.has(id));
    if (isRight) return false;
    corrected.add(id);
    if (leftMs < 0) await commands.run((client) => client.zrem(userSet, id));
    else await commands.run((client) => client.zadd(userSet, 'XX', expiresAt, id));
    return true;
  }

  /** False when it is gone. */
  async function endClaimed(id: string): Promise<boolean> {
    const removed = await commands.run((client) => client.del(buildKey(id)));
    await removeFromSet(commands, index, id);
    return removed === 1;
  }

  return {
    async add({ id: newId, userSet, ttlSeconds }, max) {
      const ttlMs = ttlSeconds * 1000;
      await commands.run((client) =>
        addUserSessionScript.run(client, [userSet], [newId, clock.now() + ttlMs, ttlMs, 0]),
      );
      const ended: string[] = [];
      const corrected = new Set<string>();
      for (let round = 0; round < MAX_ROUNDS; round += 1) {
        if ((await commands.run((client) => client.zcard(userSet))) <= max) break;
        const limit = Math.min(2 ** (round + 1), MAX_BATCH);
        const others = (await readFirst(userSet, limit)).filter(({ id }) => id !== newId);
        const [first] = others;
        if (first === undefined) break;
        const corrections = await Promise.all(
          others.map((entry) => correctEntry(userSet, entry, corrected)),
        );
        if (corrections.includes(true)) continue;
        const claimed = await commands.run((client) =>
          claimUserSessionScript.run(client, [userSet], [max, first.id]),
        );
        if (claimed === 1 && (await endClaimed(first.id))) ended.push(first.id);
      }
      return ended;
    },
  };
}

interface Entry {
  readonly id: string;
  /** Epoch milliseconds; the session may expire later. */
  readonly dueAt: number;
}
