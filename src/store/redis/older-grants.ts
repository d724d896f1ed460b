// How many grants an older secret sealed, for `postern doctor`: the secret may go once there is none.
import { buildGrantKey, buildListedGrantKey, GRANT_LIST_KEY } from '../keys.ts';
import { SEAL_ENDING_LENGTH } from '../seal/seal.ts';
import type { CommandRunner } from './command-runner.ts';
import { readSetPage } from './sorted-sets.ts';

export interface GrantCount {
  readonly all: number;
  readonly older: number;
}

const PAGE = 500;
const LISTED = buildListedGrantKey('all', '');

/**
 * Only the last characters of each grant are read: they name the secret, and a grant may have 20 KB.
 *
 * @throws StoreUnavailable
 */
export async function countOlderGrants(
  commands: CommandRunner,
  isOlder: (ending: string) => boolean,
): Promise<GrantCount> {
  let all = 0;
  let older = 0;
  let from: Awaited<ReturnType<typeof readSetPage>>['next'];
  do {
    const { entries, next } = await readSetPage(commands, GRANT_LIST_KEY, { from, limit: PAGE });
    const keys = entries.map(({ id }) => buildGrantKey(id.slice(LISTED.length)));
    const endings = await commands.run((client) =>
      Promise.all(keys.map((key) => client.getrange(key, -SEAL_ENDING_LENGTH, -1))),
    );
    // The list may name what has ended.
    const standing = endings.filter((ending) => ending !== '');
    all += standing.length;
    older += standing.filter(isOlder).length;
    from = next;
  } while (from !== undefined);
  return { all, older };
}
