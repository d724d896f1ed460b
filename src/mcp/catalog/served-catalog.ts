// What one path serves: the gateway's own tools, prompts and resources, those of the servers behind it, or both.
import type { JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import { createCountedBus } from '../../platform/counted-bus.ts';
import type { JsonObject } from '../../platform/json.ts';
import { createThrottle } from '../../platform/throttle.ts';
import type { PolicyItem } from '../../policy/policy.ts';
import {
  failNoDirectory,
  failUnknownItem,
  LIST_KINDS,
  type ListKind,
  type ListName,
} from '../../protocol/list-kinds.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Question } from '../control/question-guards.ts';
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
import type { MirroredParam } from './descriptions.ts';

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
  /** What a round before gave the client, and what the client answers to the question of that round. */
  readonly brought: { readonly secret: string; readonly response: unknown } | undefined;
  /** @throws always: the call ends with the question. */
  require(question: object, secret: string): never;
  /** The call runs. Where it ends with other questions, its next round has this secret, and nobody is asked again. */
  passOn(createSecret: () => Promise<string>): void;
}

/** What stands behind each path. */
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
  /** The server at whose path it is; undefined for `/mcp`. A session belongs to the path that opened it. */
  readonly server: string | undefined;
  /** The view (§25) that it is; undefined for `/mcp` and the paths of servers. */
  readonly view: string | undefined;
  /** What people see it called; undefined for all but views. */
  readonly title?: string | undefined;
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
  /** §18.4: lists in which something was missing when the session got them, and that have changed since. Each change is told once. */
  takeMissedLists?(sessionId: string): readonly ListName[];
  /** A client has ended its session: what was opened for it can be closed. Never throws. */
  endSession(caller: IdentifiedCaller): void;
}

/** With `_meta` of the server's result. */
export interface ServedCompletion extends Completion {
  readonly meta?: JsonObject;
}

/** What sessions of its path belong to: names of servers and of views are never the same (§25.1). Undefined for `/mcp`. */
export const nameOwnPath = ({ server, view }: Pick<ServedCatalog, 'server' | 'view'>) =>
  server ?? view;

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

/** As far as an approval is bound to it (§27). */
export interface OwnTool {
  readonly ownName: string;
  /** As the server wrote it. */
  readonly ownItem: object;
}

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
  /** Of a tool: what its server says of it, under its own name. Undefined where that is not known. */
  readonly own?: OwnTool | undefined;
  /**
   * Its server has not said what it has: `run` finds out first, and runs nothing that the policies do not allow without
   * asking anybody. So nobody is asked about it yet.
   */
  readonly isAbsent?: true;
  /** What is wrong with arguments that did not come from the client as they are; undefined where its schema allows them. */
  findProblem?(args: JsonObject): string | undefined;
  /** What is wrong with a result that did not come from the server as it is; undefined where its schema allows it. */
  findResultProblem?(result: JsonObject): string | undefined;
  /** Of a tool whose calls may go on as tasks (§29). */
  readonly task?: TargetTask | undefined;
  /** Of a tool whose server may answer with a task of its own (§29.5). */
  readonly relayedTasks?: RelayedTasks | undefined;
  /** @throws GatewayError for what the caller did wrong; any other throw is an unexpected failure (§4.4). */
  run(args: JsonObject, context: CallerContext): Promise<object>;
  /**
   * What a caller gets that may not use it: the same as all where nobody has it.
   *
   * @throws GatewayError always, with the facts for the log.
   */
  failAsUnknown(context: CallerContext, facts: Readonly<Record<string, unknown>>): Promise<never>;
}

/** §29: how its calls go on as tasks. */
export type TargetTask = TaskTool;

/** §29.5: about a task of a server, under the server's own id of it. */
export interface TaskRequest {
  readonly method: 'tasks/get' | 'tasks/update' | 'tasks/cancel';
  readonly taskId: string;
  /** Of `tasks/update`. */
  readonly inputResponses?: JsonObject | undefined;
}

/** What a server says of its task, as far as it is passed on. */
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
  /** What the call was answered with; undefined where that is no task. @throws GatewayError */
  readHandle(result: object): RelayedTask | undefined;
  /** Undefined for what is only acknowledged. @throws GatewayError */
  request(request: TaskRequest, context: CallerContext): Promise<RelayedTask | undefined>;
}

// A catalogue of an author, as the gateway serves it.

export interface OwnCatalog extends ServedCatalog {
  /** Whether the list is the same for every caller, and never changes. */
  isFixed(kind: ListKind): boolean;
}

/**
 * Names are the catalogue's matter: one that it does not have fails when it is called. Without `runtime` nobody
 * listens, as where it is only asked for its lists.
 */
export function serveOwnCatalog(
  catalog: Catalog,
  runtime?: Pick<Runtime, 'clock' | 'log'>,
): OwnCatalog {
  return {
    server: undefined,
    view: undefined,
    offers: catalog.offers,
    mirrorHeaders: catalog.mirrorHeaders,
    isShared: catalog.describe === undefined,
    describe: (caller) => catalog.describe?.(caller) ?? catalog,
    list: async (kind, cursor, context) => LISTS[kind](catalog, cursor, context),
    resolve: ({ list, name }) => createOwnTarget(catalog, list, name),
    getSkill: async (uri, context) =>
      catalog.getSkill?.(uri, context) ?? failUnknownItem('skills', uri),
    readDirectory: async (uri, cursor, context) =>
      catalog.readDirectory?.(uri, cursor, context) ?? failNoDirectory(uri),
    complete: async (completion, context) => catalog.complete(completion, context),
    canWatch: (uri, caller) => catalog.canWatch(uri, caller),
    setWatched: async (uri, isWatched, caller) => catalog.setWatched?.(uri, isWatched, caller),
    listen: runtime === undefined ? () => listenToNothing : createListen(runtime, catalog),
    endSession: (caller) => catalog.endSession?.(caller),
    isFixed: (kind) => FIXED[kind](catalog) === true,
  };
}

const listenToNothing = (): void => {};

/** Each stream asks the store at each change: a resource that changes all the time is told so often. */
const UPDATE_INTERVAL_MS = 250;
const RESOURCES = 'resources';

/** The catalogue is watched once for all, and only while somebody listens. */
function createListen(
  { clock, log }: Pick<Runtime, 'clock' | 'log'>,
  catalog: Catalog,
): ServedCatalog['listen'] {
  const bus = createCountedBus<typeof RESOURCES, CatalogListener, () => void>({
    start() {
      let isWatching = true;
      const stop = catalog.watchResources(
        createThrottle(clock, UPDATE_INTERVAL_MS, (uri) => {
          if (isWatching) bus.publish(RESOURCES, (listener) => listener.resourceUpdated(uri));
        }),
      );
      return () => {
        isWatching = false;
        stop();
      };
    },
    stop: (stopWatching) => stopWatching(),
    // This is called from an author's emitter or timer, into which nothing must be thrown.
    onError: (cause) =>
      log.error('A client could not be told that a resource changed; please report this.', {
        cause,
      }),
  });

  return function listen(caller, listener, uris) {
    bus.subscribe(RESOURCES, listener);
    try {
      return createStop(listener, catalog.listen?.(caller, bindListener(listener), uris));
    } catch (error) {
      bus.unsubscribe(RESOURCES, listener);
      throw error;
    }
  };

  /** Apart from its caller, so that an open stream does not keep that. */
  function createStop(listener: CatalogListener, stop: (() => void) | undefined): () => void {
    return () => {
      bus.unsubscribe(RESOURCES, listener);
      stop?.();
    };
  }
}

/** For authors, who may take its functions off it: in a handler of their own a `this` that is missing ends the process. */
const bindListener = (listener: CatalogListener): CatalogListener => ({
  listChanged: (list) => listener.listChanged(list),
  resourceUpdated: (uri) => listener.resourceUpdated(uri),
  elicitationCompleted: (elicitationId) => listener.elicitationCompleted?.(elicitationId),
  logged: (params) => listener.logged?.(params),
});

/** One page of a list, asked of a catalogue by its own method. */
const LISTS: Readonly<
  Record<ListKind, (catalog: Catalog, cursor: Cursor, context: Context) => Promise<Page<object>>>
> = {
  tools: (catalog, cursor, context) => catalog.listTools(cursor, context),
  prompts: (catalog, cursor, context) => catalog.listPrompts(cursor, context),
  resources: (catalog, cursor, context) => catalog.listResources(cursor, context),
  templates: (catalog, cursor, context) => catalog.listResourceTemplates(cursor, context),
  skills: async (catalog, cursor, context) => catalog.listSkills?.(cursor, context) ?? NO_SKILLS,
};

const NO_SKILLS: Page<object> = { items: [] };

const FIXED: Readonly<Record<ListKind, (catalog: Catalog) => true | undefined>> = {
  tools: ({ listTools }) => listTools.isFixed,
  prompts: ({ listPrompts }) => listPrompts.isFixed,
  resources: ({ listResources }) => listResources.isFixed,
  templates: ({ listResourceTemplates }) => listResourceTemplates.isFixed,
  skills: ({ listSkills }) => listSkills?.isFixed,
};

function createOwnTarget(catalog: Catalog, list: CallableList, name: string): Target {
  const run = RUNS[list];
  return {
    item: { kind: LIST_KINDS[list].ruled, name, server: '', annotations: NONE },
    server: undefined,
    listMirroredParams: (caller) =>
      list === 'tools' ? catalog.mirroredParams(name, caller) : NO_PARAMS,
    ...(list === 'tools' && { task: catalog.findTask?.(name) }),
    run: (args, context) => run(catalog, name, args, context),
    failAsUnknown: async (_context, facts) => failUnknownItem(list, name, { facts }),
  };
}

const NONE: JsonObject = {};
const NO_PARAMS: readonly MirroredParam[] = [];

/** Async: what an author's function throws, or returns at once, comes as from a promise. */
const RUNS: Readonly<
  Record<
    CallableList,
    (catalog: Catalog, name: string, args: JsonObject, context: Context) => Promise<object>
  >
> = {
  tools: async (catalog, name, args, context) => catalog.callTool(name, args, context),
  prompts: async (catalog, name, args, context) => catalog.getPrompt(name, args, context),
  resources: async (catalog, uri, _args, context) => catalog.readResource(uri, context),
};
