// §18.2: the built-in catalogue in its place among the servers: first in order, without a prefix.
import type { Cursor } from '../mcp/catalog/catalog.ts';
import type { CacheHint } from '../mcp/catalog/content.ts';
import type { OwnCatalog } from '../mcp/catalog/own-catalog.ts';
import type { CallerContext } from '../mcp/catalog/served-catalog.ts';
import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { isObject } from '../platform/json.ts';
import { listFiles } from './check-item.ts';
import { isSameList } from './join-lists.ts';
import type { JudgedKind, ListGuards } from './list-guards.ts';
import { BUILT_IN, type Entry } from './prepare-list.ts';

export interface BuiltIn {
  readonly catalog: OwnCatalog;
  /** Lists all pages. The entries are the same objects as long as the catalogue's list is unchanged. */
  list(kind: ListKind, context: CallerContext): Promise<BuiltInList>;
  /** The list as it was last seen. */
  peek(kind: ListKind): BuiltInList;
  /** Lists that never change, from their first request on. */
  readonly fixed: ReadonlyMap<ListKind, BuiltInList>;
}

interface BuiltInList {
  readonly entries: readonly Entry[];
  readonly byName: ReadonlyMap<string, Entry>;
  /** The lifetime and scope of the cached list; applies to all of its pages. */
  readonly cache: CacheHint;
}

const ALWAYS: CacheHint = { ttlMs: Number.POSITIVE_INFINITY, scope: 'public' };
/** The cache hint of a page without one. */
const NOT_CACHED: CacheHint = { ttlMs: 0, scope: 'private' };
const EMPTY: BuiltInList = { entries: [], byName: new Map(), cache: ALWAYS };

/** Limit for a catalogue whose cursors form a cycle. */
const MAX_PAGES = 1_000;

export function createBuiltIn(catalog: OwnCatalog): BuiltIn {
  const kept = new Map<
    ListKind,
    { readonly items: readonly object[]; readonly list: BuiltInList }
  >();
  const fixed = new Map<ListKind, BuiltInList>();
  return {
    catalog,
    async list(kind, context) {
      const unchanging = fixed.get(kind);
      if (unchanging) return unchanging;
      const { items, cache } = await listAll(catalog, kind, context);
      const known = kept.get(kind);
      if (known && isSameList(known.items, items)) return { ...known.list, cache };
      const entries = items.map((item) => createEntry(kind, item));
      const list = toList(entries, cache);
      kept.set(kind, { items, list });
      if (isFixed(catalog, kind)) fixed.set(kind, list);
      return list;
    },
    peek: (kind) => kept.get(kind)?.list ?? EMPTY,
    fixed,
  };
}

const toList = (entries: readonly Entry[], cache: CacheHint): BuiltInList => ({
  entries,
  byName: new Map(entries.map((entry) => [entry.name, entry])),
  cache,
});

/** True if the catalogue's list is always the same, for all callers. */
export const isFixed = (catalog: OwnCatalog, kind: ListKind): boolean =>
  catalog.isFixed(kind) || !hasList(catalog, kind);

const hasList = ({ offers }: OwnCatalog, kind: ListKind): boolean =>
  kind === 'skills' ? offers.skills === true : offers[LIST_KINDS[kind].list];

async function listAll(
  catalog: OwnCatalog,
  kind: ListKind,
  context: CallerContext,
): Promise<{ readonly items: readonly object[]; readonly cache: CacheHint }> {
  const items: object[] = [];
  let cache = ALWAYS;
  if (!hasList(catalog, kind)) return { items, cache };
  let cursor: Cursor;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { items: some, nextCursor, ...said } = await catalog.list(kind, cursor, context);
    items.push(...some);
    const { ttlMs, scope } = said.cache ?? NOT_CACHED;
    cache = {
      ttlMs: Math.min(cache.ttlMs, ttlMs),
      scope: cache.scope === 'public' ? scope : 'private',
    };
    if (nextCursor === undefined) break;
    cursor = nextCursor;
  }
  return { items, cache };
}

function createEntry(kind: ListKind, object: object): Entry {
  const item = { ...object };
  const members = new Map<string, unknown>(Object.entries(item));
  const name = String(members.get(LIST_KINDS[kind].key));
  const annotations = members.get('annotations');
  return {
    kind: LIST_KINDS[kind].ruled,
    server: BUILT_IN,
    ownName: name,
    name,
    ownItem: item,
    item,
    annotations: isObject(annotations) ? annotations : {},
    ...(kind === 'skills' && { files: listFiles(item, BUILT_IN) }),
  };
}

// §26.2: the built-in catalogue after its guards.

/** A list of the built-in catalogue, as guards see it: its names are the same on all paths. */
export const toJudgedKind = (kind: ListKind): JudgedKind => ({
  server: BUILT_IN,
  kind,
  join: (ownName) => ownName,
});

export function guardBuiltIn(builtIn: BuiltIn, listGuards: ListGuards): BuiltIn {
  /** Keyed by the original list; a list is not cached if a guard failed. */
  const known = new WeakMap<readonly Entry[], BuiltInList>();
  const fixed = new Map<ListKind, BuiltInList>();

  function select(kind: ListKind, { entries, cache }: BuiltInList): BuiltInList {
    const shown = entries.flatMap((entry) => {
      const verdict = listGuards.peek(toJudgedKind(kind), entry.item);
      if (verdict === undefined) return [entry];
      if (verdict.kind === 'hidden') return [];
      return [{ ...entry, item: verdict.item, ownItem: verdict.item }];
    });
    return toList(shown, cache);
  }

  return {
    catalog: builtIn.catalog,
    fixed,
    async list(kind, context) {
      const list = await builtIn.list(kind, context);
      const made = known.get(list.entries);
      if (made !== undefined) return { ...made, cache: list.cache };
      const items = list.entries.map(({ item }) => item);
      const { hasFailed } = await listGuards.judge({ ...toJudgedKind(kind), items });
      const selected = select(kind, list);
      if (hasFailed) return { ...selected, cache: { ttlMs: 0, scope: list.cache.scope } };
      known.set(list.entries, selected);
      if (builtIn.fixed.has(kind)) fixed.set(kind, selected);
      return selected;
    },
    peek(kind) {
      const list = builtIn.peek(kind);
      return known.get(list.entries) ?? select(kind, list);
    },
  };
}
