// Spec §8, decisions 7: limits and session in one round trip, on one server and on a cluster.
import { randomBytes } from 'node:crypto';
import type { Admission, LimitWindow, SessionRecord, Verdict } from '../store.ts';
import type { Client, Link } from './link.ts';
import { fromFields } from './records.ts';
import { admitScript } from './scripts.ts';

export type Admit = (
  windows: readonly LimitWindow[],
  sessionKey: string | undefined,
) => Promise<Admission>;

interface Counted {
  readonly verdict: Verdict | undefined;
  readonly session: SessionRecord | undefined;
  /** The member that was added, by which it can be taken back. */
  readonly entry: string | undefined;
}

/** One script over both windows and the session. */
export const createSingleAdmit = (link: Link): Admit => {
  const count = createCount();
  return (windows, sessionKey) => link.run((client) => count(client, windows, sessionKey));
};

/**
 * The keys lie in different slots: one script per window, in order; a later refusal takes the
 * earlier entries back. The session is read beside, and may be readable where a window is not.
 */
export const createClusterAdmit = (link: Link): Admit => {
  const count = createCount();

  async function countAll(windows: readonly LimitWindow[]): Promise<Omit<Counted, 'session'>> {
    let first: Omit<Counted, 'session'> = { verdict: undefined, entry: undefined };
    const counted: { key: string; entry: string | undefined }[] = [];
    for (const window of windows) {
      const { verdict, entry } = await link.run((client) => count(client, [window], undefined));
      if (verdict?.admitted === false) {
        await Promise.all(counted.map((one) => takeBack(one.key, one.entry)));
        return { verdict, entry: undefined };
      }
      if (counted.length === 0) first = { verdict, entry };
      counted.push({ key: window.key, entry });
    }
    return first;
  }

  const takeBack = async (key: string, entry = '') => {
    await link.run((client) => client.zrem(key, entry)).catch(() => 0);
  };

  return async function admit(windows, sessionKey) {
    const [limits, read] = await Promise.allSettled([
      countAll(windows),
      sessionKey === undefined ? undefined : link.run((client) => count(client, [], sessionKey)),
    ]);
    if (read.status === 'rejected') throw read.reason;
    const session = read.value?.session;
    return limits.status === 'fulfilled'
      ? { ...limits.value, session }
      : { verdict: undefined, entry: undefined, limitFailure: limits.reason, session };
  };
};

function createCount() {
  // Unique over processes and within one: two requests of a millisecond count twice.
  const instance = randomBytes(6).toString('base64url');
  let serial = 0;

  return async function count(
    client: Client,
    windows: readonly LimitWindow[],
    sessionKey: string | undefined,
  ): Promise<Counted> {
    const suffix = `${instance}${(serial++).toString(36)}`;
    const keys = windows.map(({ key }) => key);
    const reply = await admitScript(
      client,
      sessionKey === undefined ? keys : [...keys, sessionKey],
      [
        windows.length,
        suffix,
        sessionKey === undefined ? 0 : 1,
        ...windows.flatMap(({ windowMs, max }) => [windowMs, max]),
      ],
    );
    return readReply(reply, windows, suffix);
  };
}

function readReply(reply: unknown, windows: readonly LimitWindow[], suffix: string): Counted {
  if (!Array.isArray(reply)) throw new Error('Redis answered the limit script with no list');
  const [index, admitted, entries, oldest, now, fields] = reply as unknown[];
  const window = windows[Number(index) - 1];
  const resetAt = Number(oldest) + (window?.windowMs ?? 0);
  return {
    session: fromFields(fields),
    entry: window && admitted === 1 ? `${now}-${suffix}` : undefined,
    verdict: window && {
      admitted: admitted === 1,
      scope: window.scope,
      limit: window.max,
      remaining: admitted === 1 ? window.max - Number(entries) : 0,
      resetAt,
      resetInMs: resetAt - Number(now),
    },
  };
}
