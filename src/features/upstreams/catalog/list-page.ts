// MCP "Pagination": a joined list in pages.
import { fail } from '../../../core/errors/gateway-error.ts';
import type { Context, Cursor, Page, RawItem } from '../../mcp/catalog/catalog.ts';
import type { Access } from './access.ts';
import type { Entry } from './entry.ts';
import type { ListKind } from './list-kinds.ts';
import type { ListView, View, Who } from './view.ts';

/** Many clients read one page only. */
const PAGE_SIZE = 1_000;

export interface ListPageDeps {
  readonly view: View;
  readonly access: Access;
  identify(context: Context): Who | Promise<Who>;
  hasRules(): boolean;
}

export type ListPage = (kind: ListKind, cursor: Cursor, context: Context) => Promise<Page<RawItem>>;

export function createListPage({ view, access, identify, hasRules }: ListPageDeps): ListPage {
  const getName = (entry: Entry) => (view.shown === 'own' ? entry.ownName : entry.name);
  const getItem = (entry: Entry) => (view.shown === 'own' ? entry.ownItem : entry.item);

  return async function listPage(kind, cursor, context) {
    const who = await identify(context);
    const list = await view.list(kind, who, context);
    const isVisible = (entry: Entry) =>
      view.findServer(entry.server)?.isDown() !== true && access.mayList(kind, entry, who);
    const start = cursor === undefined ? 0 : findStart(cursor, list, isVisible);
    const { page, hasMore } = takeVisible(list.entries, start, isVisible);
    const last = page.at(-1);
    return {
      items: page.map(getItem),
      ...(hasMore && last && { nextCursor: encodeCursor(getName(last)) }),
      cache: {
        ttlMs: list.ttlMs,
        scope: list.isPersonal || hasRules() ? 'private' : 'public',
      },
    };
  };
}

/**
 * A cursor is the name after which the page begins. One that names what the caller cannot see is as wrong as any
 * other: nobody finds out by it what there is.
 */
function findStart(
  cursor: string,
  { entries, positions }: ListView,
  isVisible: (entry: Entry) => boolean,
): number {
  const position = positions.get(decodeCursor(cursor));
  const entry = position === undefined ? undefined : entries[position];
  if (position === undefined || entry === undefined || !isVisible(entry)) {
    return fail('invalid_params', {
      details: 'params.cursor is not from this list. Leave it out to start with the first page.',
    });
  }
  return position + 1;
}

function takeVisible(
  entries: readonly Entry[],
  start: number,
  isVisible: (entry: Entry) => boolean,
): { readonly page: readonly Entry[]; readonly hasMore: boolean } {
  const page: Entry[] = [];
  for (let at = start; at < entries.length; at += 1) {
    const entry = entries[at];
    if (entry === undefined || !isVisible(entry)) continue;
    if (page.length === PAGE_SIZE) return { page, hasMore: true };
    page.push(entry);
  }
  return { page, hasMore: false };
}

const encodeCursor = (name: string) => Buffer.from(name).toString('base64url');
const decodeCursor = (cursor: string) => Buffer.from(cursor, 'base64url').toString();
