// Values that can also be listed, and short lists of the last values. Value and index lie in different slots of a
// cluster: each is a step of its own, sent together.
import type { Store } from '../store.ts';
import type { CommandRunner } from './command-runner.ts';
import { addRecentScript, addToListScript } from './scripts.ts';
import { removeFromSet } from './session-sweep.ts';
import { readSetPage } from './set-page.ts';

export function createRedisLists(
  commands: CommandRunner,
): Pick<Store, 'setListed' | 'deleteListed' | 'readListed' | 'addRecent' | 'readRecent'> {
  return {
    /** Where only one of the two is done, the caller hears of a failure, and an entry without a value is not listed. */
    async setListed(list, key, value, ttlSeconds) {
      await commands.run((client) =>
        Promise.all([
          addToListScript.run(client, [list], [key, ttlSeconds]),
          client.set(key, value, 'EX', ttlSeconds),
        ]),
      );
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
    async addRecent(key, value, { max, ttlSeconds }) {
      await commands.run((client) => addRecentScript.run(client, [key], [value, max, ttlSeconds]));
    },
    readRecent: (key) => commands.run((client) => client.lrange(key, 0, -1)),
  };
}
