// The port KeyValue on Redis. Each step that must be atomic is a script over one key, as a cluster wants it.
import type { KeyValue } from '../store.ts';
import {
  type CommandRunner,
  createScript,
  NOW,
  readSetPage,
  removeFromSet,
} from './command-runner.ts';

/**
 * A listed value and its index lie in different slots of a cluster: each is a step of its own. Where only one of the two
 * is done, the caller hears of a failure, and an entry without a value is not listed.
 */
export function createRedisKeyValue(commands: CommandRunner): KeyValue {
  /**
   * The stored value, where it is what was read as `expected`. A value that is not UTF-8, of another program or by a fault, is
   * read with U+FFFD in its place: as such it would never be found again, and could never be replaced.
   */
  async function toStored(key: string, expected: string): Promise<string | Buffer> {
    if (!expected.includes(REPLACEMENT_CHARACTER)) return expected;
    const bytes = await commands.run((client) => client.getBuffer(key));
    return bytes?.toString() === expected ? bytes : expected;
  }

  return {
    get: async (key) => (await commands.run((client) => client.get(key))) ?? undefined,
    async set(key, value, ttlSeconds) {
      await commands.run((client) => client.set(key, value, 'EX', ttlSeconds));
    },
    async getOrSet(key, value, ttlSeconds) {
      const args = [value, ttlSeconds];
      return String(await commands.run((client) => getOrSetScript.run(client, [key], args)));
    },
    async compareAndSet(key, expected, value, ttlSeconds) {
      const stored = expected === undefined ? undefined : await toStored(key, expected);
      const written = await commands.run<unknown>((client) =>
        stored === undefined
          ? client.set(key, value, 'EX', ttlSeconds, 'NX')
          : compareAndSetScript.run(client, [key], [stored, value, ttlSeconds]),
      );
      return written === 'OK' || written === 1;
    },
    async compareAndDelete(key, expected) {
      const args = [await toStored(key, expected)];
      const deleted = await commands.run((client) =>
        compareAndDeleteScript.run(client, [key], args),
      );
      return deleted === 1;
    },
    async getAndDelete(key) {
      const value = await commands.run((client) => getAndDeleteScript.run(client, [key], []));
      return typeof value === 'string' ? value : undefined;
    },
    async delete(key) {
      await commands.run((client) => client.del(key));
    },

    async setListed(list, key, value, ttlSeconds) {
      await commands.run((client) =>
        Promise.all([
          addToListScript.run(client, [list], [key, ttlSeconds]),
          client.set(key, value, 'EX', ttlSeconds),
        ]),
      );
    },
    /** The value first: whether it is listed is decided by whether it is there. */
    async replaceListed(list, key, value, ttlSeconds) {
      const set = await commands.run((client) => client.set(key, value, 'EX', ttlSeconds, 'XX'));
      if (set !== 'OK') return false;
      await commands.run((client) => addToListScript.run(client, [list], [key, ttlSeconds]));
      return true;
    },
    async deleteListed(list, key) {
      const [removed] = await Promise.all([
        commands.run((client) => client.del(key)),
        removeFromSet(commands, list, key),
      ]);
      return removed === 1;
    },
    async readListed(list, request) {
      const { entries, next } = await readSetPage(commands, list, request);
      const items = await Promise.all(
        entries.map(async ({ id: key, time: expiresAt }) => {
          const value = await commands.run((client) => client.get(key));
          return value === null ? [] : [{ key, value, expiresAt }];
        }),
      );
      return { items: items.flat(), next };
    },
    async countListed(list) {
      return Number(await commands.run((client) => countListScript.run(client, [list], [])));
    },
    async addRecent(key, value, { max, ttlSeconds }) {
      await commands.run((client) => addRecentScript.run(client, [key], [value, max, ttlSeconds]));
    },
    readRecent: (key) => commands.run((client) => client.lrange(key, 0, -1)),
  };
}

const REPLACEMENT_CHARACTER = '\uFFFD';

/** KEYS: one. ARGV: value, ttl (s). SET with NX and GET, which servers before 7.0 refuse. */
const getOrSetScript = createScript(`
local stored = redis.call('GET', KEYS[1])
if stored then return stored end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
return ARGV[1]
`);

/** KEYS: one. ARGV: what stands there, value, ttl (s). */
const compareAndSetScript = createScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
return 1
`);

/** KEYS: one. ARGV: what stands there. */
const compareAndDeleteScript = createScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`);

/** KEYS: one. GETDEL, which servers before 6.2 do not have. */
const getAndDeleteScript = createScript(`
local value = redis.call('GET', KEYS[1])
redis.call('DEL', KEYS[1])
return value
`);

/**
 * KEYS: the sorted set of a list. ARGV: key, ttl (s). Entries of values that have expired go; the set lives as long
 * as the last of its values.
 */
const addToListScript = createScript(`${NOW}
local lifetime = ARGV[2] * 1000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + lifetime, ARGV[1])
if redis.call('PTTL', KEYS[1]) < lifetime then redis.call('PEXPIRE', KEYS[1], lifetime) end
return 1
`);

/** KEYS: the sorted set of a list. */
const countListScript = createScript(`${NOW}
return redis.call('ZCOUNT', KEYS[1], '(' .. now, '+inf')
`);

/** KEYS: a list. ARGV: value, how many are kept, ttl (s). */
const addRecentScript = createScript(`
redis.call('LPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], 0, ARGV[2] - 1)
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
`);
