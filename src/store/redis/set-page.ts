// A sorted set of times, page by page, the latest first.
import { findNextPlace, type TimedEntry } from '../page.ts';
import type { PagePlace, PageRequest } from '../store.ts';
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
