// Decisions 10 "Bounds": the sessions of one user, in a sorted set by expiry. Its scores lag behind
// touches, which are many: they are put right where it matters, when one more is opened, and by the
// sweep. The set outlives its sessions, and no user who went away leaves one behind.
import type { Clock } from '../../clock.ts';
import type { Link } from './link.ts';
import { claimUserSessionScript, enterUserSessionScript } from './scripts.ts';

export interface ClusterUserSessions {
  /** Enters a new session, and ends those that are too many. Resolves to the ids of those. */
  enter(session: NewUserSession, max: number): Promise<readonly string[]>;
}

export interface NewUserSession {
  readonly id: string;
  /** Of the user's set. */
  readonly key: string;
  readonly ttlSeconds: number;
}

export interface ClusterUserSessionsOptions {
  readonly link: Link;
  readonly clock: Clock;
  keyOf(id: string): string;
  /** Ends a session that was claimed; false when it is gone. */
  end(id: string): Promise<boolean>;
}

/** Most are right at once; where the first ones are not, more are looked at together. */
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
  const { link, clock, keyOf, end } = options;

  async function firstOf(key: string, size: number): Promise<readonly Entry[]> {
    const flat = await link.run((client) =>
      client.zrangebyscore(key, '-inf', '+inf', 'WITHSCORES', 'LIMIT', 0, size),
    );
    return flat.flatMap((id, at) => (at % 2 === 0 ? [{ id, dueAt: Number(flat[at + 1]) }] : []));
  }

  /** Puts the entry right. False when it already was. */
  async function settle(key: string, { id, dueAt }: Entry, settled: Set<string>) {
    const leftMs = await link.run((client) => client.pttl(keyOf(id)));
    const expiresAt = clock.now() + leftMs;
    // Once each: clocks and distances differ by more than a millisecond.
    const isRight = leftMs >= 0 && (expiresAt <= dueAt || settled.has(id));
    if (isRight) return false;
    settled.add(id);
    if (leftMs < 0) await link.run((client) => client.zrem(key, id));
    else await link.run((client) => client.zadd(key, 'XX', expiresAt, id));
    return true;
  }

  return {
    async enter({ id: own, key, ttlSeconds }, max) {
      const ttlMs = ttlSeconds * 1000;
      await link.run((client) =>
        enterUserSessionScript(client, [key], [own, clock.now() + ttlMs, ttlMs, 0]),
      );
      const ended: string[] = [];
      const settled = new Set<string>();
      for (let round = 0; round < MAX_ROUNDS; round += 1) {
        if ((await link.run((client) => client.zcard(key))) <= max) break;
        const size = Math.min(2 ** (round + 1), MAX_BATCH);
        const others = (await firstOf(key, size)).filter(({ id }) => id !== own);
        const [first] = others;
        if (first === undefined) break;
        const changes = await Promise.all(others.map((entry) => settle(key, entry, settled)));
        if (changes.includes(true)) continue;
        const claimed = await link.run((client) =>
          claimUserSessionScript(client, [key], [max, first.id]),
        );
        if (claimed === 1 && (await end(first.id))) ended.push(first.id);
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
