import type { JsonObject } from '../../platform/json.ts';
import type { Cursor } from './catalog.ts';
import { LISTING_CONTEXT } from './listing-context.ts';
import type { ServedCatalog } from './served-catalog.ts';

/** As a caller without a user gets them: rules about groups, claims and clients allow nothing. */
export async function listTools({ offers, list }: ServedCatalog): Promise<readonly JsonObject[]> {
  if (!offers.tools) return [];
  const tools: JsonObject[] = [];
  let cursor: Cursor;
  do {
    const page = await list('tools', cursor, LISTING_CONTEXT);
    tools.push(...page.items.map((item) => ({ ...item })));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
}
