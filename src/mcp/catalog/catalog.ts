import { fail, type JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { TraceContext } from '../../telemetry/tracing/tracing.ts';
import type { QuestionGuards } from '../calls/guards.ts';
import type { LogSeverity } from '../protocol/methods.ts';
import type { Ask, ClientCapabilities } from './client-requests.ts';
import type {
  CacheHint,
  MirroredParam,
  PromptDescription,
  PromptResult,
  ResourceDescription,
  ResourceResult,
  ResourceTemplateDescription,
  SkillDescription,
  ToolDescription,
  ToolResult,
} from './content.ts';

/**
 * The source of tools, prompts and resources. The local catalogue serves those defined in
 * this process; others pass calls on to servers behind the gateway, and join several catalogues.
 *
 * An unknown name, URI, cursor or argument ends in `fail('invalid_params', …)`, tool arguments that
 * do not fit in `fail('invalid_tool_input', …)`; any other throw is an unexpected failure
 * (§4.4). Methods of what is not offered are never called.
 */
export interface Catalog {
  /** All that there can be, for any caller at any time: the rest is neither advertised nor answered. */
  readonly offers: Offers;
  /** All headers in which arguments of tools are repeated, for browsers to send. */
  readonly mirrorHeaders: readonly string[];
  /** For the client's model: how to use this service. */
  readonly instructions?: string;
  /** All that there is for one caller now, where that is less than `offers`, or depends on the caller. */
  describe?(caller: Caller): Promise<CatalogDescription>;
  readonly listTools: ListItems<ToolDescription>;
  callTool(name: string, args: Arguments, context: Context): Promise<ToolResult | RawResult>;
  /** Says how calls of the tool may go on as tasks (ext-tasks); undefined for any other, and for an unknown one. */
  findTask?(tool: string): TaskTool | undefined;
  /** Arguments of the tool that clients repeat in headers (`x-mcp-header`); none of an unknown one. */
  mirroredParams(
    tool: string,
    caller: Caller,
  ): readonly MirroredParam[] | Promise<readonly MirroredParam[]>;
  readonly listPrompts: ListItems<PromptDescription>;
  getPrompt(name: string, args: Arguments, context: Context): Promise<PromptResult | RawResult>;
  readonly listResources: ListItems<ResourceDescription>;
  readonly listResourceTemplates: ListItems<ResourceTemplateDescription>;
  readResource(uri: string, context: Context): Promise<ResourceResult | RawResult>;
  /** Present where it offers skills. */
  readonly listSkills?: ListItems<SkillDescription>;
  /** Present where it offers skills: finds the one whose `SKILL.md` has the URI, whether it is listed or not. */
  getSkill?(uri: string, context: Context): Promise<SkillResult>;
  /** Present where it offers directories: lists what lies in this one, not in those below it. */
  readDirectory?(
    uri: string,
    cursor: Cursor,
    context: Context,
  ): Promise<Page<ResourceDescription | RawItem>>;
  complete(completion: CompletionRequest, context: Context): Promise<Completion>;
  /** True if the resource tells when it changes. */
  canWatch(uri: string, caller: Caller): boolean | Promise<boolean>;
  /** Calls `changed` with the URI of each that has changed, until the result is called. */
  watchResources(changed: (uri: string) => void): () => void;
  /**
   * A client's session subscribes to a resource that `canWatch`, or no longer does. Only for catalogues whose
   * changes `watchResources` does not tell.
   */
  setWatched?(uri: string, isWatched: boolean, caller: Caller): Promise<void>;
  /**
   * Tells one caller what changes, while a stream of its is open: lists, and resources that `watchResources` does not
   * tell. `uris` are those of a subscription of the stateless era; a session has them by `setWatched`.
   */
  listen?(caller: Caller, listener: CatalogListener, uris?: readonly string[]): () => void;
  /** A client has ended its session: what was opened for it can be closed. Never throws. */
  endSession?(caller: Caller): void;
}

/** A tool whose calls may go on as tasks. */
export interface TaskTool {
  /** True if a client that cannot have tasks is refused, where its revision has them. */
  readonly isRequired: boolean;
  /**
   * All that comes before the task: what is wrong with the arguments is said, and what has to be asked is asked. Resolves to
   * the work, which gets the context of the task.
   */
  prepare(
    args: Arguments,
    context: Context,
  ): Promise<(context: Context) => Promise<ToolResult | RawResult>>;
}

export interface ListItems<Item> {
  (cursor: Cursor, context: Context): Promise<Page<Item | RawItem>>;
  /** It is the same list for every caller, and never changes: it needs to be asked for once only. */
  readonly isFixed?: true;
}

/** The caller, on whom lists, and all that is answered, may depend. */
export interface Caller {
  /** Undefined when the service runs without authentication. */
  readonly user: UserContext | undefined;
  /** Undefined in the stateless era, and before the session is made. */
  readonly session:
    | {
        readonly sessionId: string;
        readonly protocolVersion: string;
        /** `clientInfo` of `initialize` as JSON text. */
        readonly clientInfo?: string | undefined;
      }
    | undefined;
  /** The questions that the client can be asked. */
  readonly client: ClientCapabilities;
}

export interface CatalogDescription {
  readonly offers: Offers;
  readonly instructions?: string | undefined;
}

export interface CatalogListener {
  listChanged(list: 'tools' | 'prompts' | 'resources'): void;
  resourceUpdated(uri: string): void;
  /** The user has done what it was sent to a URL for; only sessions hear of it. `server` says so, where it is one behind the gateway. */
  elicitationCompleted?(elicitationId: string, server?: string): void;
  /** Params of `notifications/message` that belong to no call, as a server wrote them; only for sessions. */
  logged?(params: JsonObject): void;
}

/** One skill (SEP-2640). */
export interface SkillResult {
  readonly skill: SkillDescription | RawItem;
  /** Default: not cached, private. */
  readonly cache?: CacheHint;
}

/** As another server said it: members that are not known here stay. */
export type RawItem = JsonObject;

/** As another server answered: members that are not known here stay. `cache` is for the era to tell. */
export type RawResult = JsonObject & { readonly cache?: CacheHint };

export interface Offers {
  readonly tools: boolean;
  readonly prompts: boolean;
  readonly resources: boolean;
  /** Some resources tell when they change. */
  readonly subscriptions: boolean;
  /** Lists change while clients are connected; only then are they told. */
  readonly listChanges?: boolean;
  /** Arguments of prompts or templates are completed. */
  readonly completions: boolean;
  /** Tools write log messages to the client. */
  readonly logging: boolean;
  /** Calls of some tools may be answered by tasks (ext-tasks). */
  readonly tasks?: boolean;
  /** Some resources are skills (SEP-2640). */
  readonly skills?: boolean;
  /** Directories of skills can be read (SEP-2640). */
  readonly directories?: boolean;
}

/** The place where a page begins: `nextCursor` of the page before, undefined for the first. */
export type Cursor = string | undefined;

/** For a list whose pages begin after the item of a name. */
export const encodeCursor = (name: string): string => Buffer.from(name).toString('base64url');
export const decodeCursor = (cursor: string): string => Buffer.from(cursor, 'base64url').toString();

/** @throws GatewayError `invalid_params` always. */
export const failUnknownCursor = (): never =>
  fail('invalid_params', {
    details: 'params.cursor is not from this list. Leave it out to start with the first page.',
  });

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Absent on the last page. */
  readonly nextCursor?: string;
  /** The result of the list's method with these items, as JSON in UTF-8, from who has it at hand. */
  readonly bytes?: Uint8Array;
  /** Default: not cached, private. */
  readonly cache?: CacheHint;
}

/** A text that is being typed, and for which argument of which prompt or template. */
export interface CompletionRequest {
  readonly ref:
    | { readonly type: 'ref/prompt'; readonly name: string }
    | { readonly type: 'ref/resource'; readonly uri: string };
  readonly argument: { readonly name: string; readonly value: string };
  /** Arguments that are filled in already. */
  readonly known: Readonly<Record<string, string>>;
}

export interface Completion {
  /** Best first, 100 at most. */
  readonly values: readonly string[];
  readonly total?: number;
  readonly hasMore?: boolean;
}

/** A JSON object as it came from the caller. */
export type Arguments = JsonObject;

/** The call as a tool, prompt or resource knows it, with the ways to the client meanwhile. */
export interface Context extends Caller {
  readonly service: ServiceInfo;
  /** Aborted when the caller hangs up or cancels the call. */
  readonly signal: AbortSignal;
  /** Reaches clients that asked for progress and take a stream; others never hear of it. */
  readonly progress: Progress;
  /** Reaches clients that want messages this severe and take a stream, if the catalogue logs. */
  readonly log: ClientLog;
  readonly ask: Ask;
  /**
   * Ends the connection of a call that takes long, so that nothing has to hold it: its client comes back for the answer by
   * itself. Nothing happens where it could not (MCP before 2025-11-25, the stateless era, and clients that take no stream).
   */
  readonly disconnect: () => void;
  /**
   * The provider's access token of the user, for calls to its services on the user's behalf; renewed where it is about to
   * expire. A secret. Undefined without a user, and where there is none that is good now.
   */
  readonly providerToken: () => Promise<string | undefined>;
  /** For catalogues that pass calls on to other servers. */
  readonly relay: Relay;
  /** W3C trace context of the caller, for calls to other services. */
  readonly trace: TraceContext;
}

/** The client of a call, as a server behind the gateway meets it: what passes is not looked at. */
export type Relay = SessionRelay | StatelessRelay;

interface RelayBase {
  /** As the context's, and cheaper to make. */
  readonly signal: CancelSignal;
  /** True if the client asked for progress and takes a stream. */
  readonly wantsProgress: boolean;
  /** Least severe log message that the client wants; undefined for none. */
  readonly logLevel: LogSeverity | undefined;
  /** Members of `_meta` of the request that are for whoever answers it. */
  readonly meta: JsonObject | undefined;
  /** For what a server asks; undefined where no guard looks at that. What the gateway itself asks they do not see. */
  readonly questionGuards: QuestionGuards | undefined;
}

/** Questions are requests to the client while the call goes on. */
export interface SessionRelay extends RelayBase {
  readonly era: 'session';
  /**
   * Sends a request to the client as it is, and resolves to its answer as it is.
   *
   * `cancelled` is aborted when no answer is wanted any more: then the client is told.
   *
   * @throws GatewayError as `ask` does, but not for an answer that is an error.
   */
  ask(
    request: { readonly method: string; readonly params: JsonObject },
    cancelled?: CancelSignal,
  ): Promise<RawAnswer>;
  /** Tells the client that what it was sent to a URL for in this call is done. False where it was not, or was told before. */
  completeElicitation(elicitationId: string): boolean;
}

/** A client's response: its result, or its error. */
export type RawAnswer = { readonly result: JsonObject } | { readonly error: JsonRpcErrorObject };

/** Questions end the call, and the client calls again with the answers. */
export interface StatelessRelay extends RelayBase {
  readonly era: 'stateless';
  /** Brought by this call from a former one that ended with `requireInput`. */
  readonly answered:
    | { readonly inputResponses: JsonObject; readonly state: JsonObject }
    | undefined;
  /**
   * Ends the call with `inputRequests`, which are not looked at. `state` comes back with the answers; it is sealed, and
   * bound to the user and the call.
   *
   * @throws always.
   */
  requireInput(inputRequests: JsonObject, state: JsonObject): never;
}

/** `done` of `total` (any unit, growing), with a text for the user. */
export type Progress = (done: number, total?: number, message?: string) => void;

/** `data` is any JSON value. Never a secret. */
export type ClientLog = (level: LogSeverity, data: unknown, logger?: string) => void;

export interface ServiceInfo {
  /** Package name: `serverInfo.name`. */
  readonly name: string;
  readonly version: string;
  /** `SERVICE_DISPLAY_NAME`. */
  readonly displayName: string;
  /** `NODE_ENV`. */
  readonly environment: string;
}

/** §19.2: a tool as strangers see it. */
export interface PublicTool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
}

/** Undefined while they cannot be listed. Never rejects. */
export type GetPublicTools = () => Promise<readonly PublicTool[] | undefined>;

/**
 * The user of a call that makes no sense without one.
 *
 * @throws GatewayError `user_required` when the service runs without authentication.
 */
export const requireUser = ({ user }: Context): UserContext => user ?? fail('user_required');
