// The catalogue of one path: the gateway's own tools, prompts and resources, those of the servers behind it, or both.

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

/** A caller whose OAuth client is known, where anything depends on it. */
export interface IdentifiedCaller extends Caller {
  readonly clientId: string | undefined;
  /** §25: the view at whose path it calls; undefined for `/mcp` and the paths of servers. */
  readonly view: string | undefined;
}

/** The context of a call of such a caller. */
export interface CallerContext extends Context, IdentifiedCaller {
  /** §27, in the stateless era: how a call is asked about, from round to round. Undefined where none is made. */
  readonly approvalRounds?: ApprovalRounds | undefined;
  /** True if the answer to the call can carry notifications of any kind to the client. */
  readonly takesStream?: boolean;
}

/** MCP 2026-07-28 "Multi Round-Trip Requests": a call that somebody is asked about, as its client sends it again and again. */
export interface ApprovalRounds {
  /** The secret that a round before gave the client, and the client's response to the question of that round. */
  readonly brought: { readonly secret: string; readonly response: unknown } | undefined;
  /** @throws always: the call ends with the question. */
  require(question: object, secret: string): never;
  /** The call runs. Where it ends with other questions, its next round has this secret, and nobody is asked again. */
  passOn(createSecret: () => Promise<string>): void;
}

/** The catalogue behind each path. */
export interface Catalogs {
  /** `/mcp`. */
  readonly all: ServedCatalog;
  /**
   * `/mcp/<server>`, under the server's own names, or `/mcp/<view>` (§25); the same object each time. Undefined for an unknown
   * name.
   */
  findNamed(name: string): ServedCatalog | undefined;
}

export interface ServedCatalog extends Pick<Catalog, 'mirrorHeaders'> {
  /** The name of its server or view, which are never the same (§25.1); undefined for `/mcp`. A session belongs to the path that opened it. */
  readonly path: string | undefined;
  /** The server at whose path it is; undefined for `/mcp` and views. */
  readonly server: string | undefined;
  /** The view (§25) that it is; undefined for `/mcp` and the paths of servers. */
  readonly view: string | undefined;
  /** Its name for people; undefined for all but views. */
  readonly title?: string | undefined;
  /** All that there can be, for any caller at any time: the rest is neither advertised nor answered. */
  readonly offers: Offers;
  /** True if the description and all lists are the same for every caller. */
  readonly isShared: boolean;
  /** Describes what there is for this caller, and how it is used. */
  describe(caller: IdentifiedCaller): CatalogDescription | Promise<CatalogDescription>;
  list(kind: ListKind, cursor: Cursor, context: CallerContext): Promise<Page<object>>;
  /**
   * Finds what a call is about. The caller's right to use it is not checked here.
   *
   * @throws GatewayError `invalid_params` where nobody has it, `upstream_error` where that cannot be known now.
   */
  resolve(wanted: WantedItem, context: CallerContext): Target | Promise<Target>;
  /**
   * §25.3: what is called by a tool that calls others; undefined for any other tool. All that follows, from rules to the
   * audit log, is about the inner call.
   *
   * @throws GatewayError `invalid_tool_input` where the arguments do not name a call.
   */
  unwrapCall?(tool: string, args: JsonObject): InnerCall | undefined;
  /** SEP-2640: the skill whose `SKILL.md` has this URI. @throws GatewayError `invalid_params` where nobody has it. */
  getSkill(uri: string, context: CallerContext): Promise<SkillResult>;
  /** SEP-2640: what lies in a directory. @throws GatewayError `invalid_params` for what is no directory. */
  readDirectory(uri: string, cursor: Cursor, context: CallerContext): Promise<Page<object>>;
  complete(completion: CompletionRequest, context: CallerContext): Promise<ServedCompletion>;
  /** True if the caller may hear of the resource's changes, and it tells of them. */
  canWatch(uri: string, caller: IdentifiedCaller): boolean | Promise<boolean>;
  setWatched(uri: string, isWatched: boolean, caller: IdentifiedCaller): Promise<void>;
  /**
   * Tells one caller what changes, while a stream of its is open. `uris` are those of a subscription of the stateless
   * era; a session has them by `setWatched`.
   *
   * @throws what an author's `watch` throws.
   */
  listen(caller: IdentifiedCaller, listener: CatalogListener, uris?: readonly string[]): () => void;
  /** §18.4: lists in which something was missing when the session got them, and that have changed since. Each change is told once. */
  takeMissedLists?(sessionId: string): readonly ListName[];
  /** A client has ended its session: what was opened for it can be closed. Never throws. */
  endSession(caller: IdentifiedCaller): void;
}

/** With `_meta` of the server's result. */
export interface ServedCompletion extends Completion {
  readonly meta?: JsonObject;
}

/** The name or URI, as clients of this path see it. */
export interface WantedItem {
  readonly list: CallableList;
  readonly name: string;
}

/** Templates are filled in by clients, and skills are files: both are read as resources. */
export type CallableList = Exclude<ListKind, 'templates' | 'skills'>;

/** §25.3: a call in the arguments of another. */
export interface InnerCall {
  /** As clients of this path see it. */
  readonly name: string;
  readonly args: JsonObject;
}

/** One tool, prompt or resource, found. */
export interface Target {
  /** Judged by policies. */
  readonly item: PolicyItem;
  /** The server behind the gateway whose it is; undefined for the gateway's own. */
  readonly server: string | undefined;
  /** For a tool: arguments that clients repeat in headers (`x-mcp-header`). */
  listMirroredParams(
    caller: IdentifiedCaller,
  ): readonly MirroredParam[] | Promise<readonly MirroredParam[]>;
  /**
   * For a tool: what its server says of it, as it wrote it, under its own name; an approval is bound to it (§27). Undefined where that
   * is not known.
   */
  readonly own?: { readonly ownName: string; readonly ownItem: object } | undefined;
  /**
   * Its server has not said what it has: `run` finds out first, and runs nothing that the policies do not allow without
   * asking anybody. So nobody is asked about it yet.
   */
  readonly isAbsent?: true;
  /** Says what is wrong with arguments that did not come from the client as they are; undefined where its schema allows them. */
  findProblem?(args: JsonObject): string | undefined;
  /** Says what is wrong with a result that did not come from the server as it is; undefined where its schema allows it. */
  findResultProblem?(result: JsonObject): string | undefined;
  /** For a tool whose calls may go on as tasks (§29). */
  readonly task?: TaskTool | undefined;
  /** For a tool whose server may answer with a task of its own (§29.5). */
  readonly relayedTasks?: RelayedTasks | undefined;
  /** @throws GatewayError for what the caller did wrong; any other throw is an unexpected failure (§4.4). */
  run(args: JsonObject, context: CallerContext): Promise<object>;
  /**
   * Answers a caller that may not use it: the same as all where nobody has it.
   *
   * @throws GatewayError always, with the facts for the log.
   */
  failAsUnknown(context: CallerContext, facts: JsonObject): Promise<never>;
}

/** §29.5: about a task of a server, under the server's own id of it. */
export interface TaskRequest {
  readonly method: 'tasks/get' | 'tasks/update' | 'tasks/cancel';
  readonly taskId: string;
  /** For `tasks/update`. */
  readonly inputResponses?: JsonObject | undefined;
}

/** A server's description of its task, as far as it is passed on. */
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

/** §29.5: tasks that its server has. */
export interface RelayedTasks {
  /** The task that the call was answered with; undefined where there is none. @throws GatewayError */
  readHandle(result: object): RelayedTask | undefined;
  /** Undefined for what is only acknowledged. @throws GatewayError */
  request(request: TaskRequest, context: CallerContext): Promise<RelayedTask | undefined>;
}
