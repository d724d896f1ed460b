// What one path serves: /mcp everything, /mcp/<server> one server behind the gateway.

import type { Caller, Catalog, CatalogDescription } from '../catalog/catalog.ts';
import type { Era } from '../protocol/revisions.ts';
import type { Methods } from './methods.ts';

export interface View {
  /** Undefined for `/mcp`. A session belongs to the path that opened it. */
  readonly server: string | undefined;
  readonly catalog: Catalog;
  /** Those that both eras have. */
  readonly methods: Readonly<Record<Era, Methods>>;
}

/** What there is for this caller. */
export async function describeCatalog(
  catalog: Catalog,
  caller: Caller,
): Promise<CatalogDescription> {
  const { offers, instructions } = catalog;
  return catalog.describe === undefined ? { offers, instructions } : catalog.describe(caller);
}
