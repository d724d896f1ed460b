// The interface of the catalogue on one path: the gateway's own tools, prompts and resources, those of the servers behind it, or
// both.

import type { JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { Question } from '../calls/guards.ts';
import type { PolicyItem } from '../calls/policy.ts';
import type { ListKind, ListName } from '../protocol/list-kinds.ts';
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
  SkillResult,
  TaskTool,
} from './catalog.ts';
import type { MirroredParam } from './content.ts';

/** A caller whose OAuth client is known. */
export interface IdentifiedCaller extends Caller {
  readonly clientId: string | undefined;
  /** §25: the view whose path was called; undefined for `/mcp` and the paths of servers. */
  readonly view: string | undefined;
}

/** The context of a call by such a caller. */
export interface CallerContext extends Context, IdentifiedCaller {
  /**
   * §27, in the stateless era: how the approval of a call proceeds over several rounds. Undefined if approvals are not supported.
   */
  readonly approvalRounds?: ApprovalRounds | undefined;
  /** True if the response to the call can carry any kind of notification to the client. */
  readonly takesStream?: boolean;
}

/** MCP 2026-07-28 "Multi Round-Trip Requests": a call that needs approval, which its client sends repeatedly. */
export interface ApprovalRounds {
  /** The secret that an earlier round gave to the client, and the client's response to that round's request. */
  readonly brought: { readonly secret: string; readonly response: unknown } | undefined;
  /** @throws always: the call ends with the request. */
  require(question: object, secret: string): never;
  /** The call runs. If it ends with other requests, its next round has this secret, and needs no new approval. */
  passOn(createSecret: () => Promise<string>): void;
}

/** The catalogues by path. */
export interface Catalogs {
  /** `/mcp`. */
  readonly all: ServedCatalog;
  /**
   * `/mcp/<server>`, under the server's own names, or `/mcp/<view>` (§25); always the same object for a name. Undefined for an
   * unknown name.
   */
  findNamed(name: string): ServedCatalog | undefined;
}

export interface ServedCatalog extends Pick<Catalog, 'mirrorHeaders'> {
  /**
   * The name of its server or view, which are distinct (§25.1); undefined for `/mcp`. A session belongs to the path that opened
   * it.
   */
  readonly name: string | undefined;
  /** The server on whose path the catalogue is; undefined for `/mcp` and views. */
  readonly server: string | undefined;
  /** The view (§25) that the catalogue serves; undefined for `/mcp` and the paths of servers. */
  readonly view: string | undefined;
  /** The view's title for people; undefined for other paths. */
  readonly title?: string | undefined;
  /** The features that any caller may get at any time; others are neither advertised nor answered. */
  readonly offers: Offers;
  /** True if the description and all lists are the same for every caller. */
  readonly isShared: boolean;
  /** Describes the features for this caller, and how to use them. */
  describe(caller: IdentifiedCaller): CatalogDescription | Promise<CatalogDescription>;
  list(kind: ListKind, cursor: Cursor, context: CallerContext): Promise<Page<object>>;
  /**
   * Finds the object of a call. Does not check whether the caller may use it.
   *
   * @throws GatewayError `invalid_params` if no server has it, `upstream_error` if that is currently unknown.
   */
  resolve(wanted: WantedItem, context: CallerContext): Target | Promise<Target>;
  /**
   * §25.3: the inner call of a tool that calls others; undefined for any other tool. All later steps, from rules to the audit
   * log, apply to the inner call.
   *
   * @throws GatewayError `invalid_tool_input` if the arguments do not contain a call.
   */
  unwrapCall?(tool: string, args: JsonObject): InnerCall | undefined;
  /** SEP-2640: the skill with this URI of its `SKILL.md`. @throws GatewayError `invalid_params` if no server has it. */
  getSkill(uri: string, context: CallerContext): Promise<SkillResult>;
  /** SEP-2640: the contents of a directory. @throws GatewayError `invalid_params` if it is not a directory. */
  readDirectory(uri: string, cursor: Cursor, context: CallerContext): Promise<Page<object>>;
  complete(completion: CompletionRequest, context: CallerContext): Promise<ServedCompletion>;
  /** True if the caller may see the resource's changes, and the resource reports them. */
  canWatch(uri: string, caller: IdentifiedCaller): boolean | Promise<boolean>;
  setWatched(uri: string, isWatched: boolean, caller: IdentifiedCaller): Promise<void>;
  /**
   * Reports changes to one caller while it has an open stream. `uris` come from a subscription in the stateless era; a session
   * uses `setWatched`.
   *
   * @throws the error of an author's `watch`
   */
  listen(caller: IdentifiedCaller, listener: CatalogListener, uris?: readonly string[]): () => void;
  /**
   * §18.4: sessions that received incomplete lists, by their ids, and those lists that have changed since. Each change is returned
   * once.
   */
  readonly missedLists?: {
    readonly sessions: ReadonlyMap<string, unknown>;
    take(sessionId: string): readonly ListName[];
  };
  /** A client has ended its session: resources held for it can be released. Never throws. */
  endSession(caller: IdentifiedCaller): void;
}

/** Includes `_meta` of the server's result. */
export interface ServedCompletion extends Completion {
  readonly meta?: JsonObject;
}

/** The name or URI as clients of this path see it. */
export interface WantedItem {
  readonly list: CallableList;
  readonly name: string;
}

/** Clients fill in templates, and skills are files: both are read as resources. */
export type CallableList = Exclude<ListKind, 'templates' | 'skills'>;

/** §25.3: a call contained in the arguments of another one. */
export interface InnerCall {
  /** As clients of this path see it. */
  readonly name: string;
  readonly args: JsonObject;
}

/** A tool, prompt or resource that was found. */
export interface Target {
  /** The subject of policy decisions. */
  readonly item: PolicyItem;
  /** The server behind the gateway that owns the item; undefined for the gateway's own. */
  readonly server: string | undefined;
  /** For a tool: arguments that clients mirror in headers (`x-mcp-header`). */
  listMirroredParams(
    caller: IdentifiedCaller,
  ): readonly MirroredParam[] | Promise<readonly MirroredParam[]>;
  /**
   * For a tool: its entry, with the server's description as it wrote it, under its own name; an approval is bound to it (§27).
   * Undefined if unknown.
   */
  readonly entry?: { readonly ownName: string; readonly ownItem: object } | undefined;
  /**
   * The server's lists are not known yet: `run` fetches them first, and runs nothing unless the policies allow it without an
   * approval. So no approval is requested yet.
   */
  readonly isAbsent?: true;
  /** Validates arguments that do not come unchanged from the client; undefined if the schema allows them. */
  findProblem?(args: JsonObject): string | undefined;
  /** Validates a result that does not come unchanged from the server; undefined if the schema allows it. */
  findResultProblem?(result: JsonObject): string | undefined;
  /** For a tool whose calls can become tasks (§29). */
  readonly task?: TaskTool | undefined;
  /** For a tool whose server may respond with its own task (§29.5). */
  readonly relayedTasks?: RelayedTasks | undefined;
  /** @throws GatewayError for a mistake of the caller; any other throw is an unexpected failure (§4.4). */
  run(args: JsonObject, context: CallerContext): Promise<object>;
  /**
   * Rejects a caller without access with the response for an unknown item.
   *
   * @throws GatewayError always, with the facts for the log.
   */
  failAsUnknown(context: CallerContext, facts: JsonObject): Promise<never>;
}

/** §29.5: a request about a server's task, with the server's own task ID. */
export interface TaskRequest {
  readonly method: 'tasks/get' | 'tasks/update' | 'tasks/cancel';
  readonly taskId: string;
  /** For `tasks/update`. */
  readonly inputResponses?: JsonObject | undefined;
}

/** The relayed part of a server's description of its task. */
export interface RelayedTask {
  readonly taskId: string;
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly ttlMs: number | null;
  readonly pollIntervalMs?: number;
  readonly result?: JsonObject;
  readonly error?: JsonRpcErrorObject;
  readonly inputRequests?: Readonly<Record<string, Question>>;
}

/** §29.5: tasks of the item's server. */
export interface RelayedTasks {
  /** The task that the server returned for the call; undefined if there is none. @throws GatewayError */
  readHandle(result: object): RelayedTask | undefined;
  /** Undefined for a request that is only acknowledged. @throws GatewayError */
  request(request: TaskRequest, context: CallerContext): Promise<RelayedTask | undefined>;
}
