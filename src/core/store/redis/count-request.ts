// §8: limits and session in one round trip, on one server and on a cluster.
import { randomBytes } from 'node:crypto';
import type { LimitWindow, RequestCount, RequestCountAndSession } from '../store.ts';
import type { CommandRunner } from './command-runner.ts';
import type { RedisClient } from './connect.ts';
import { countRequestScript } from './scripts.ts';
import { parseSessionHash, readSession } from './session-hash.ts';

/** The keys of the windows are in them; that of the session is given. */
export type CountAndRead = (
  windows: readonly LimitWindow[],
  sessionKey: string | undefined,
) => Promise<RequestCountAndSession>;

/** One script over all windows and the session. */
export function createServerCount(commands: CommandRunner): CountAndRead {
  const runScript = createScriptRunner();
  return (windows, sessionKey) => commands.run((client) => runScript(client, windows, sessionKey));
}

/**
 * The keys lie in different slots: one script per window, in order; a later refusal takes the
 * earlier entries back. The session is read beside, and may be readable where a window is not.
 */
export function createClusterCount(commands: CommandRunner): CountAndRead {
  const runScript = createScriptRunner();

  async function countInAll(windows: readonly LimitWindow[]): Promise<RequestCount> {
    let first: RequestCount = { verdict: undefined, entry: undefined };
    const counted: { key: string; entry: string | undefined }[] = [];
    for (const window of windows) {
      const { verdict, entry } = await commands.run((client) =>
        runScript(client, [window], undefined),
      );
      if (verdict?.isAdmitted === false) {
        await Promise.all(counted.map((one) => uncount(one.key, one.entry)));
        return { verdict, entry: undefined };
      }
      if (counted.length === 0) first = { verdict, entry };
      counted.push({ key: window.key, entry });
    }
    return first;
  }

  const uncount = async (key: string, entry = '') => {
    await commands.run((client) => client.zrem(key, entry)).catch(() => 0);
  };

  return async function countAndRead(windows, sessionKey) {
    const [count, read] = await Promise.allSettled([
      countInAll(windows),
      sessionKey === undefined ? undefined : readSession(commands, sessionKey),
    ]);
    if (read.status === 'rejected') throw read.reason;
    const session = read.value;
    return count.status === 'fulfilled'
      ? { ...count.value, session }
      : { verdict: undefined, entry: undefined, limitFailure: count.reason, session };
  };
}

function createScriptRunner() {
  // Unique over processes and within one: two requests of a millisecond count twice.
  const instance = randomBytes(6).toString('base64url');
  let serial = 0;

  return async function runScript(
    client: RedisClient,
    windows: readonly LimitWindow[],
    sessionKey: string | undefined,
  ): Promise<RequestCountAndSession> {
    const suffix = `${instance}${(serial++).toString(36)}`;
    const keys = windows.map(({ key }) => key);
    const reply = await countRequestScript.run(
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

function readReply(
  reply: unknown,
  windows: readonly LimitWindow[],
  suffix: string,
): RequestCountAndSession {
  if (!Array.isArray(reply)) throw new Error('Redis answered the limit script with no list');
  const [index, admitted, entries, oldest, now, fields]: readonly unknown[] = reply;
  const window = windows[Number(index) - 1];
  const isAdmitted = admitted === 1;
  const resetAt = Number(oldest) + (window?.windowMs ?? 0);
  return {
    session: parseSessionHash(fields),
    entry: window && isAdmitted ? `${now}-${suffix}` : undefined,
    verdict: window && {
      isAdmitted,
      scope: window.scope,
      limit: window.max,
      remaining: isAdmitted ? window.max - Number(entries) : 0,
      resetAt,
      resetInMs: resetAt - Number(now),
    },
  };
}
