// Reads lists of the store page by page, the latest entries first.

/** A part of a list. */
export interface StoredPage<Item> {
  /** May be fewer than requested if some were gone. */
  readonly items: readonly Item[];
  /** The start of the next page; undefined at the end. */
  readonly next: PagePlace | undefined;
}

export interface PageRequest {
  /** Undefined for the first page. */
  readonly from: PagePlace | undefined;
  readonly limit: number;
}

/** A position after `skip` entries of this time; entries are ordered by their times, the latest first. */
export interface PagePlace {
  /** Epoch milliseconds. */
  readonly time: number;
  readonly skip: number;
}

const PAGE_ITEMS = 100;

/** Reads all items of a list, page by page. */
export async function* readPages<Item>(
  readPage: (request: PageRequest) => Promise<StoredPage<Item>>,
  limit = PAGE_ITEMS,
): AsyncGenerator<readonly Item[]> {
  let from: PagePlace | undefined;
  do {
    const { items, next } = await readPage({ from, limit });
    yield items;
    from = next;
  } while (from !== undefined);
}

/** An entry of a list: its subject, and its time in epoch milliseconds. */
export interface TimedEntry {
  readonly id: string;
  readonly time: number;
}

/** Finds the start of the page after these entries; undefined after the last one. */
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
