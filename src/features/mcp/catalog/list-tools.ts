import type { JsonObject } from '../../../core/json.ts';
import type { Catalog, Cursor } from './catalog.ts';
import { LISTING_CONTEXT } from './listing-context.ts';

/** As a caller without a user gets them: rules about groups, claims and clients allow nothing. */
export async function listTools(catalog: Catalog): Promise<readonly JsonObject[]> {
  if (!catalog.offers.tools) return [];
  const tools: JsonObject[] = [];
  let cursor: Cursor;
  do {
    const page = await catalog.listTools(cursor, LISTING_CONTEXT);
    tools.push(...page.items.map((item) => ({ ...item })));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
}
