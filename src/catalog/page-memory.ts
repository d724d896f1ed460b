// §18.2: pages of lists as they are sent: made once for all callers who see the same of the same list.

import type { Page, RawItem } from '../mcp/catalog/catalog.ts';
import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { createSizedMap } from '../platform/bounded-map.ts';
import { writeExactJson } from '../platform/exact-json.ts';
import { type Entry, showNumbers } from './prepare-list.ts';

/** The part of a list that a caller may see. Asked anew each time: here it is only looked up how that is written. */
export interface VisiblePage {
  /** `path` of the view that shows it. */
  readonly path: string;
  readonly kind: ListKind;
  /** The very array: a list that was fetched anew, or prepared by another configuration, is another one. */
  readonly list: readonly Entry[];
  /** Positions of its entries in the list, rising. */
  readonly positions: readonly number[];
  readonly nextCursor: string | undefined;
  /** The caller (`nameOwner`); undefined where nobody logs in. */
  readonly caller: string | undefined;
  /** §33: its tools are written otherwise for clients of the session era. */
  readonly isNarrowed?: boolean;
}

/** Writes `items`, and `bytes`: the result of the list's method as JSON, in UTF-8. */
type WrittenPage = Required<Pick<Page<RawItem>, 'items' | 'bytes'>>;

/** `getItem` says what the view shows of an entry. @throws TypeError for what JSON cannot say. */
export type WritePage = (page: VisiblePage, getItem: (entry: Entry) => RawItem) => WrittenPage;

const MAX_BYTES = 33_554_432;
/** For pages that one user was the first to see: however many that are, those of others stay. */
const MAX_USER_BYTES = MAX_BYTES / 8;
/** Memory of an entry beside its part of the bytes. */
const BYTES_AN_ENTRY = 16;

interface KeptPage extends Omit<VisiblePage, 'list'> {
  readonly hash: number;
  readonly written: WrittenPage;
}

/** Those of one list, by hash. */
type PagesOfList = Map<number, KeptPage>;

/** A page of a list that is no longer served is not asked for, and so the first to go. */
export function createWritePage(maxBytes = MAX_BYTES, maxUserBytes = MAX_USER_BYTES): WritePage {
  const lists = new WeakMap<readonly Entry[], PagesOfList>();
  const userBytes = new Map<string, number>();
  const kept = createSizedMap<KeptPage, PagesOfList>({
    maxSize: maxBytes,
    measure,
    onRemove(pages, page) {
      if (pages.get(page.hash) === page) pages.delete(page.hash);
      countForUser(page, -measure(page));
    },
  });

  function countForUser({ caller }: KeptPage, change: number): void {
    if (caller === undefined) return;
    const bytes = (userBytes.get(caller) ?? 0) + change;
    if (bytes === 0) userBytes.delete(caller);
    else userBytes.set(caller, bytes);
  }

  function hasRoom(page: KeptPage): boolean {
    const size = measure(page);
    if (size > maxBytes) return false;
    return page.caller === undefined || (userBytes.get(page.caller) ?? 0) + size <= maxUserBytes;
  }

  return function writePage(page, getItem) {
    const { list, positions } = page;
    const pages = lists.get(list) ?? new Map<number, KeptPage>();
    const hash = hashPositions(positions) ^ Number(page.isNarrowed === true);
    const known = pages.get(hash);
    if (known !== undefined && isSame(known, page)) {
      kept.get(known);
      return known.written;
    }
    if (known !== undefined) kept.delete(known);
    const written = write(page, getItem);
    const { list: _, ...seen } = page;
    const made = { ...seen, hash, written };
    if (!hasRoom(made)) return written;
    lists.set(list, pages.set(hash, made));
    countForUser(made, measure(made));
    kept.set(made, pages);
    return written;
  };
}

const measure = ({ written, positions }: KeptPage): number =>
  written.bytes.length + BYTES_AN_ENTRY * positions.length;

function write(
  { kind, list, positions, nextCursor }: VisiblePage,
  getItem: (entry: Entry) => RawItem,
): WrittenPage {
  const entries = positions.flatMap((position) => list[position] ?? []);
  const items = entries.map((entry) => showNumbers(entry, getItem(entry)));
  const { member } = LIST_KINDS[kind];
  const result = { [member]: items, ...(nextCursor !== undefined && { nextCursor }) };
  return { items, bytes: Buffer.from(writeExactJson(result)) };
}

/** The later one of two pages with one hash is kept. */
function hashPositions(positions: readonly number[]): number {
  let hash = positions.length;
  for (const position of positions) hash = (Math.imul(hash, 31) + position) | 0;
  return hash;
}

function isSame(
  known: KeptPage,
  { path, kind, positions, nextCursor, isNarrowed }: VisiblePage,
): boolean {
  return (
    known.path === path &&
    known.kind === kind &&
    known.isNarrowed === isNarrowed &&
    known.nextCursor === nextCursor &&
    (known.positions === positions ||
      (known.positions.length === positions.length &&
        known.positions.every((position, index) => position === positions[index])))
  );
}
