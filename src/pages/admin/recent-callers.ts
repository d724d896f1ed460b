// §22.2: who called without a session within the last day, on whatever replica, for operators.

import type { UserContext } from '../../http/endpoint/message.ts';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import { parseObject } from '../../platform/json.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildCallerKey, CALLER_LIST_KEY } from '../../store/keys.ts';
import { hashOwner, nameOwner } from '../../store/owner.ts';
import type { PageRequest } from '../../store/page.ts';
import type { Owner } from '../../store/store.ts';
import type { People, Person } from './people.ts';

export interface RecentCaller {
  readonly user: Owner;
  readonly person: Person;
  /** ISO 8601, UTC; up to five minutes before the last call. */
  readonly lastSeenAt: string;
}

export type RecentCallers = ReturnType<typeof createRecentCallers>;

const TTL_SECONDS = 86_400;
/** A process writes of each user at most once in this time. */
const PAUSE_MS = 300_000;
/** Users of whom a process knows that it has written. */
const MAX_KNOWN = 10_000;
const MAX_CALLERS = 5_000;
/** So often a process drops those that are too many, so many at once. */
const TRIM_PAUSE_MS = 60_000;
const TRIMMED = 100;
/** Later than any entry: the place of the first. */
const AFTER_ALL = Number.MAX_SAFE_INTEGER;

/** `maxCallers` are kept in all. */
export function createRecentCallers(
  { store, clock, log }: Pick<Runtime, 'store' | 'clock' | 'log'>,
  people: People,
  maxCallers = MAX_CALLERS,
) {
  /** By user; ends when they may be written again. */
  const written = createExpiringMap<true>(MAX_KNOWN, clock.monotonic);
  let trimAt = Number.NEGATIVE_INFINITY;
  const warn = createWarnThrottle(clock, (cause: unknown) =>
    log.warn("A user without a session could not be noted for the operators' page.", { cause }),
  );

  async function write(user: UserContext): Promise<void> {
    const key = buildCallerKey(hashOwner(user));
    const lastSeenAt = new Date(clock.now()).toISOString();
    const person = await people.seal(user, key);
    const value = JSON.stringify({ user: user.sub, issuer: user.issuer, lastSeenAt, person });
    await store.setListed(CALLER_LIST_KEY, key, value, TTL_SECONDS);
    if (clock.monotonic() < trimAt) return;
    trimAt = clock.monotonic() + TRIM_PAUSE_MS;
    await trim();
  }

  async function trim(): Promise<void> {
    const from = { time: AFTER_ALL, skip: maxCallers };
    const { items } = await store.readListed(CALLER_LIST_KEY, { from, limit: TRIMMED });
    for (const { key } of items) await store.deleteListed(CALLER_LIST_KEY, key);
  }

  async function read(key: string, value: string): Promise<readonly RecentCaller[]> {
    const { user: sub, issuer, lastSeenAt, person: sealed } = parseObject(value) ?? {};
    if (typeof sub !== 'string' || typeof lastSeenAt !== 'string') return [];
    const person = await people.open(typeof sealed === 'string' ? sealed : undefined, key);
    const user = { sub, ...(typeof issuer === 'string' && { issuer }) };
    return [{ user, person, lastSeenAt }];
  }

  return {
    /** With each call: at once, and nobody waits for what it writes now and then. */
    note(user: UserContext) {
      const name = nameOwner(user);
      if (written.get(name)) return;
      written.set(name, true, clock.monotonic() + PAUSE_MS);
      write(user).catch(warn);
    },
    /** Who was seen last comes first. */
    async list(request: PageRequest) {
      const { items, next } = await store.readListed(CALLER_LIST_KEY, request);
      const callers = await Promise.all(items.map(({ key, value }) => read(key, value)));
      return { items: callers.flat(), next };
    },
  };
}
