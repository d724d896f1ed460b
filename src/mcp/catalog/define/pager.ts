// MCP "Pagination": a list in pages.
import { fail } from '../../../errors/gateway-error.ts';
import type { Cursor, ListItems, Page } from '../catalog.ts';
import type { CacheHint } from '../content.ts';

/** The lists are the same for everybody, and change only with a deploy. */
const LIST_CACHE: CacheHint = { ttlMs: 60_000, scope: 'public' };

/** A cursor is the name after which the page begins: it holds over a deploy that adds entries. */
export function createPager<Description>(
  entries: ReadonlyMap<string, { readonly description: Description }>,
  pageSize: number,
): ListItems<Description> {
  const names = [...entries.keys()];
  const descriptions = [...entries.values()].map(({ description }) => description);

  return Object.assign(listPage, { isFixed: true } as const);

  async function listPage(cursor: Cursor): Promise<Page<Description>> {
    const start = cursor === undefined ? 0 : names.indexOf(decodeCursor(cursor)) + 1;
    if (cursor !== undefined && start === 0) {
      fail('invalid_params', {
        details: 'params.cursor is not from this list. Leave it out to start with the first page.',
      });
    }
    const end = start + pageSize;
    const last = names[end - 1];
    return {
      items: descriptions.slice(start, end),
      ...(end < names.length && last !== undefined && { nextCursor: encodeCursor(last) }),
      cache: LIST_CACHE,
    };
  }
}

const encodeCursor = (name: string) => Buffer.from(name).toString('base64url');
const decodeCursor = (cursor: string) => Buffer.from(cursor, 'base64url').toString();
