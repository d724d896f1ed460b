// Sorted sets of times: page by page, the latest first, and what is taken out of them.
import { findNextPlace, type PagePlace, type PageRequest, type TimedEntry } from '../page.ts';
import type { CommandRunner } from './command-runner.ts';

export interface SetPage {
  readonly entries: readonly TimedEntry[];
  readonly next: PagePlace | undefined;
}

export async function readSetPage(
  commands: CommandRunner,
  set: string,
  request: PageRequest,
): Promise<SetPage> {
  const { from, limit } = request;
  const flat = await commands.run((client) =>
    client.zrevrangebyscore(
      set,
      from?.time ?? '+inf',
      '-inf',
      'WITHSCORES',
      'LIMIT',
      from?.skip ?? 0,
      limit,
    ),
  );
  const entries = flat.flatMap((id, at) =>
    at % 2 === 0 ? [{ id, time: Number(flat[at + 1]) }] : [],
  );
  return { entries, next: findNextPlace(entries, request) };
}

/** True when it was there: of many at the same moment, for one. */
export const removeFromSet = async (commands: CommandRunner, set: string, member: string) =>
  (await commands.run((client) => client.zrem(set, member))) === 1;
