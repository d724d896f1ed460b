// §18.2: the built-in catalogue among the servers: first in order, without a prefix.
import { isObject } from '../../../core/json.ts';
import type { Catalog, Context, Cursor, ListItems } from '../../mcp/catalog/catalog.ts';
import { BUILT_IN, type Entry } from './entry.ts';
import { LIST_KINDS, type ListKind } from './list-kinds.ts';

export interface BuiltIn {
  readonly catalog: Catalog;
  /** All pages. The same object as long as the catalogue lists the same. */
  list(kind: ListKind, context: Context): Promise<BuiltInList>;
  /** What it listed last. */
  peek(kind: ListKind): BuiltInList;
  /** What it lists, where that is known without asking it. */
  getFixed(kind: ListKind): BuiltInList | undefined;
}

export interface BuiltInList {
  readonly entries: readonly Entry[];
  readonly byName: ReadonlyMap<string, Entry>;
}

const EMPTY: BuiltInList = { entries: [], byName: new Map() };

/** For a catalogue whose cursors lead round in circles. */
const MAX_PAGES = 1_000;

export function createBuiltIn(catalog: Catalog): BuiltIn {
  const kept = new Map<ListKind, KeptList>();
  const getFixed = (kind: ListKind) => (isFixed(catalog, kind) ? kept.get(kind)?.list : undefined);
  return {
    catalog,
    async list(kind, context) {
      const fixed = getFixed(kind);
      if (fixed) return fixed;
      const items = await listAll(catalog, kind, context);
      const known = kept.get(kind);
      if (known && isSame(known.items, items)) return known.list;
      const entries = items.map((item) => createEntry(kind, item));
      const list = { entries, byName: new Map(entries.map((entry) => [entry.name, entry])) };
      kept.set(kind, { items, list });
      return list;
    },
    peek: (kind) => kept.get(kind)?.list ?? EMPTY,
    getFixed,
  };
}

interface KeptList {
  readonly items: readonly object[];
  readonly list: BuiltInList;
}

const isFixed = (catalog: Catalog, kind: ListKind): boolean =>
  LISTS[kind](catalog).isFixed === true || !catalog.offers[LIST_KINDS[kind].list];

const isSame = (one: readonly object[], other: readonly object[]): boolean =>
  one.length === other.length && one.every((item, index) => item === other[index]);

async function listAll(
  catalog: Catalog,
  kind: ListKind,
  context: Context,
): Promise<readonly object[]> {
  const items: object[] = [];
  if (!catalog.offers[LIST_KINDS[kind].list]) return items;
  let cursor: Cursor;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { items: some, nextCursor } = await LISTS[kind](catalog).call(catalog, cursor, context);
    items.push(...some);
    if (nextCursor === undefined) break;
    cursor = nextCursor;
  }
  return items;
}

const LISTS: Readonly<Record<ListKind, (catalog: Catalog) => ListItems<object>>> = {
  tools: ({ listTools }) => listTools,
  prompts: ({ listPrompts }) => listPrompts,
  resources: ({ listResources }) => listResources,
  templates: ({ listResourceTemplates }) => listResourceTemplates,
};

function createEntry(kind: ListKind, object: object): Entry {
  const item = { ...object };
  const members = new Map<string, unknown>(Object.entries(item));
  const name = String(members.get(LIST_KINDS[kind].key));
  const annotations = members.get('annotations');
  return {
    server: BUILT_IN,
    ownName: name,
    name,
    ownItem: item,
    item,
    annotations: isObject(annotations) ? annotations : {},
  };
}
