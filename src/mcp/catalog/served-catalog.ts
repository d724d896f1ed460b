// What one path serves: the gateway's own tools, prompts and resources, those of the servers behind it, or both.
import type { JsonObject } from '../../platform/json.ts';
import type { PolicyItem } from '../../policy/policy.ts';
import type { ListKind } from '../../protocol/list-kinds.ts';
import type {
  Caller,
  Catalog,
  CatalogDescription,
  CatalogListener,
  Completion,
  CompletionRequest,
  Context,
  Cursor,
  Offers,
  Page,
} from './catalog.ts';
import type { MirroredParam } from './descriptions.ts';

/** A caller whose OAuth client is known, where anything depends on it. */
export interface IdentifiedCaller extends Caller {
  readonly clientId: string | undefined;
}

/** The context of a call of such a caller. */
export interface CallerContext extends Context, IdentifiedCaller {}

/** What stands behind each path. */
export interface Catalogs {
  /** `/mcp`. */
  readonly all: ServedCatalog;
  /** `/mcp/<server>`, under the server's own names; the same object each time. Undefined for an unknown server. */
  findServer(name: string): ServedCatalog | undefined;
}

export interface ServedCatalog extends Pick<Catalog, 'mirrorHeaders'> {
  /** The server at whose path it is; undefined for `/mcp`. A session belongs to the path that opened it. */
  readonly server: string | undefined;
  /** What there can be, for any caller at any time: the rest is neither advertised nor answered. */
  readonly offers: Offers;
  /** Whether the description and all lists are the same for every caller. */
  readonly isShared: boolean;
  /** What there is for this caller, and how it is used. */
  describe(caller: IdentifiedCaller): CatalogDescription | Promise<CatalogDescription>;
  list(kind: ListKind, cursor: Cursor, context: CallerContext): Promise<Page<object>>;
  /**
   * What a call is about. Whether the caller may use it is not asked here.
   *
   * @throws GatewayError `invalid_params` where nobody has it, `upstream_error` where that cannot be known now.
   */
  resolve(wanted: WantedItem, context: CallerContext): Target | Promise<Target>;
  complete(completion: CompletionRequest, context: CallerContext): Promise<Completion>;
  /** Whether the caller may hear of the resource's changes, and it tells of them. */
  canWatch(uri: string, caller: IdentifiedCaller): boolean | Promise<boolean>;
  setWatched(uri: string, isWatched: boolean, caller: IdentifiedCaller): Promise<void>;
  /**
   * Tells one caller what changes, while a stream of its is open. `uris` are those of a subscription of the stateless
   * era; a session has them by `setWatched`.
   *
   * @throws what an author's `watch` throws.
   */
  listen(caller: IdentifiedCaller, listener: CatalogListener, uris?: readonly string[]): () => void;
  /** A client has ended its session: what was opened for it can be closed. Never throws. */
  endSession(caller: IdentifiedCaller): void;
}

/** The name or URI, as clients of this path see it. */
export interface WantedItem {
  readonly list: CallableList;
  readonly name: string;
}

/** Templates are filled in by clients, and read as resources. */
export type CallableList = Exclude<ListKind, 'templates'>;

/** One tool, prompt or resource, found. */
export interface Target {
  /** By which policies judge it. */
  readonly item: PolicyItem;
  /** The server behind the gateway whose it is; undefined for the gateway's own. */
  readonly server: string | undefined;
  /** Of a tool: arguments that clients repeat in headers (`x-mcp-header`). */
  listMirroredParams(
    caller: IdentifiedCaller,
  ): readonly MirroredParam[] | Promise<readonly MirroredParam[]>;
  /** @throws GatewayError for what the caller did wrong; any other throw is an unexpected failure (§4.4). */
  run(args: JsonObject, context: CallerContext): Promise<object>;
  /**
   * What a caller gets that may not use it: the same as all where nobody has it.
   *
   * @throws GatewayError always, with the facts for the log.
   */
  failAsUnknown(context: CallerContext, facts: Readonly<Record<string, unknown>>): Promise<never>;
}
