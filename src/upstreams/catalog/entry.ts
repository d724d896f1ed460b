import type { RawItem } from '../../mcp/catalog/catalog.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { ItemKind } from '../../protocol/list-kinds.ts';

/** One member of a list, of a server or of the built-in catalogue. */
export interface Entry {
  readonly kind: ItemKind;
  /** Name of the server; `''` for the built-in catalogue. */
  readonly server: string;
  /** Name, URI or template as the server has it. */
  readonly ownName: string;
  /** As clients of `/mcp` see it; by this rules decide, at any path. */
  readonly name: string;
  /** As clients of `/mcp/<server>` see it. */
  readonly ownItem: RawItem;
  /** As clients of `/mcp` see it. */
  readonly item: RawItem;
  /** The server's own claim. */
  readonly annotations: JsonObject;
}

export const BUILT_IN = '';
