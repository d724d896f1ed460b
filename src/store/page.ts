import type { PagePlace, PageRequest } from './store.ts';

/** An entry of a list: what it names, and its time in epoch milliseconds. */
export interface TimedEntry {
  readonly id: string;
  readonly time: number;
}

/** Where the page after these entries begins; undefined after the last. */
export function findNextPlace(
  entries: readonly TimedEntry[],
  { from, limit }: PageRequest,
): PagePlace | undefined {
  const last = entries.at(-1);
  if (last === undefined || entries.length < limit) return undefined;
  const { time } = last;
  const ofSameTime = entries.filter((entry) => entry.time === time).length;
  return { time, skip: ofSameTime + (from?.time === time ? from.skip : 0) };
}
