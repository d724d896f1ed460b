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
 * A source of tools, prompts and resources. The local catalogue serves those defined in this process; others relay calls to
 * servers behind the gateway, or join several catalogues.
 *
 * An unknown name, URI, cursor or argument throws `fail('invalid_params', …)`, invalid tool arguments throw
 * `fail('invalid_tool_input', …)`; any other throw is an unexpected failure (§4.4). Methods for features that are not offered are
 * never called.
 */
export interface Catalog {
  /** The features that any caller may get at any time; others are neither advertised nor answered. */
  readonly offers: Offers;
  /** All headers that mirror arguments of tools, so that browsers may send them. */
  readonly mirrorHeaders: readonly string[];
  /** Instructions for the client's model on how to use this service. */
  readonly instructions?: string;
  /** The features for one caller now, if they are fewer than `offers` or depend on the caller. */
  describe?(caller: Caller): Promise<CatalogDescription>;
  readonly listTools: ListItems<ToolDescription>;
  callTool(name: string, args: Arguments, context: Context): Promise<ToolResult | RawResult>;
  /** How calls to the tool can become tasks (ext-tasks); undefined for tools without tasks, and for unknown ones. */
  findTask?(tool: string): TaskTool | undefined;
  /** Arguments of the tool that clients mirror in headers (`x-mcp-header`); empty for an unknown tool. */
  mirroredParams(
    tool: string,
    caller: Caller,
  ): readonly MirroredParam[] | Promise<readonly MirroredParam[]>;
  readonly listPrompts: ListItems<PromptDescription>;
  getPrompt(name: string, args: Arguments, context: Context): Promise<PromptResult | RawResult>;
  readonly listResources: ListItems<ResourceDescription>;
  readonly listResourceTemplates: ListItems<ResourceTemplateDescription>;
  readResource(uri: string, context: Context): Promise<ResourceResult | RawResult>;
  /** Present if the catalogue offers skills. */
  readonly listSkills?: ListItems<SkillDescription>;
  /** Present if the catalogue offers skills: finds the skill with this URI of its `SKILL.md`, whether or not it is listed. */
  getSkill?(uri: string, context: Context): Promise<SkillResult>;
  /** Present if the catalogue offers directories: lists the direct contents of this one. */
  readDirectory?(
    uri: string,
    cursor: Cursor,
    context: Context,
  ): Promise<Page<ResourceDescription | RawItem>>;
  complete(completion: CompletionRequest, context: Context): Promise<Completion>;
  /** True if the resource reports changes. */
  canWatch(uri: string, caller: Caller): boolean | Promise<boolean>;
  /** Calls `changed` with the URI of each changed resource, until the returned function is called. */
  watchResources(changed: (uri: string) => void): () => void;
  /**
   * A client's session subscribes to a resource that `canWatch`, or unsubscribes. Only for catalogues whose changes
   * `watchResources` does not report.
   */
  setWatched?(uri: string, isWatched: boolean, caller: Caller): Promise<void>;
  /**
   * Reports changes to one caller while it has an open stream: of lists, and of resources that `watchResources` does not cover.
   * `uris` come from a subscription in the stateless era; a session uses `setWatched`.
   */
  listen?(caller: Caller, listener: CatalogListener, uris?: readonly string[]): () => void;
  /** A client has ended its session: resources held for it can be released. Never throws. */
  endSession?(caller: Caller): void;
}

/** A tool whose calls can become tasks. */
export interface TaskTool {
  /** True if clients that do not support tasks are refused, in revisions that have them. */
  readonly isRequired: boolean;
  /**
   * The work before the task begins: validates arguments, and makes requests to the client. Resolves to the rest of the work,
   * which gets the task's context.
   */
  prepare(
    args: Arguments,
    context: Context,
  ): Promise<(context: Context) => Promise<ToolResult | RawResult>>;
}

export interface ListItems<Item> {
  (cursor: Cursor, context: Context): Promise<Page<Item | RawItem>>;
  /** True if the list is the same for every caller, and never changes: it only has to be fetched once. */
  readonly isFixed?: true;
}

/** The caller, on whom lists and all responses may depend. */
export interface Caller {
  /** Undefined if the service runs without authentication. */
  readonly user: UserContext | undefined;
  /** Undefined in the stateless era, and before the session is created. */
  readonly session:
    | {
        readonly sessionId: string;
        readonly protocolVersion: string;
        /** `clientInfo` of `initialize`, as JSON text. */
        readonly clientInfo?: string | undefined;
      }
    | undefined;
  /** The server-initiated requests that the client supports. */
  readonly client: ClientCapabilities;
}

export interface CatalogDescription {
  readonly offers: Offers;
  readonly instructions?: string | undefined;
}

export interface CatalogListener {
  listChanged(list: 'tools' | 'prompts' | 'resources'): void;
  resourceUpdated(uri: string): void;
  /**
   * The user has finished an interaction at a URL; only sessions are notified. `server` is the server behind the gateway that
   * reports it, if any.
   */
  elicitationCompleted?(elicitationId: string, server?: string): void;
  /** Params of a `notifications/message` outside any call, as a server wrote them; only for sessions. */
  logged?(params: JsonObject): void;
}

/** One skill (SEP-2640). */
export interface SkillResult {
  readonly skill: SkillDescription | RawItem;
  /** Default: private and not cached. */
  readonly cache?: CacheHint;
}

/** An item as another server wrote it; unknown members are kept. */
export type RawItem = JsonObject;

/** A result as another server wrote it; unknown members are kept. `cache` is rendered according to the era. */
export type RawResult = JsonObject & { readonly cache?: CacheHint };

export interface Offers {
  readonly tools: boolean;
  readonly prompts: boolean;
  readonly resources: boolean;
  /** Some resources report changes. */
  readonly subscriptions: boolean;
  /** Lists may change while clients are connected; only then are clients notified. */
  readonly listChanges?: boolean;
  /** Arguments of prompts or templates can be completed. */
  readonly completions: boolean;
  /** Tools send log messages to the client. */
  readonly logging: boolean;
  /** Calls of some tools can become tasks (ext-tasks). */
  readonly tasks?: boolean;
  /** Some resources are skills (SEP-2640). */
  readonly skills?: boolean;
  /** Directories of skills can be listed (SEP-2640). */
  readonly directories?: boolean;
}

/** The start of a page: `nextCursor` of the previous page, undefined for the first. */
export type Cursor = string | undefined;

/** For lists where a page begins after the item with a given name. */
export const encodeCursor = (name: string): string => Buffer.from(name).toString('base64url');
export const decodeCursor = (cursor: string): string => Buffer.from(cursor, 'base64url').toString();

/** @throws GatewayError `invalid_params` */
export const failUnknownCursor = (): never =>
  fail('invalid_params', {
    details: 'params.cursor is not from this list. Leave it out to start with the first page.',
  });

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Absent on the last page. */
  readonly nextCursor?: string;
  /** The serialized result of the list method with these items, as JSON in UTF-8, if already available. */
  readonly bytes?: Uint8Array;
  /** Default: private and not cached. */
  readonly cache?: CacheHint;
}

/** A partially typed text, and the argument of a prompt or template that it belongs to. */
export interface CompletionRequest {
  readonly ref:
    | { readonly type: 'ref/prompt'; readonly name: string }
    | { readonly type: 'ref/resource'; readonly uri: string };
  readonly argument: { readonly name: string; readonly value: string };
  /** Arguments that are already filled in. */
  readonly known: Readonly<Record<string, string>>;
}

export interface Completion {
  /** Best first, at most 100. */
  readonly values: readonly string[];
  readonly total?: number;
  readonly hasMore?: boolean;
}

/** A JSON object as the caller sent it. */
export type Arguments = JsonObject;

/** The context of a call for a tool, prompt or resource, with access to the client during the call. */
export interface Context extends Caller {
  readonly service: ServiceInfo;
  /** Aborted when the caller hangs up or cancels the call. */
  readonly signal: AbortSignal;
  /** Reaches clients that requested progress and accept a stream; for others it has no effect. */
  readonly progress: Progress;
  /** Reaches clients that want messages of this severity and accept a stream, if the catalogue has logging. */
  readonly log: ClientLog;
  readonly ask: Ask;
  /**
   * Closes the connection of a long call, so that it is not held open: its client reconnects for the result on its own. Has no
   * effect for clients that cannot (MCP before 2025-11-25, the stateless era, and clients that accept no stream).
   */
  readonly disconnect: () => void;
  /**
   * The user's access token from the provider, for calls to its services on behalf of the user; refreshed if it is about to
   * expire. A secret. Undefined without a user or a valid token.
   */
  readonly providerToken: () => Promise<string | undefined>;
  /** For catalogues that relay calls to other servers. */
  readonly relay: RelayedClient;
  /** The caller's W3C trace context, for calls to other services. */
  readonly trace: TraceContext;
}

/** The client of a relayed call, as its era reaches it (`CallClient`): messages are relayed without inspection. */
export type RelayedClient = RelayedSessionClient | RelayedStatelessClient;

interface RelayedClientBase {
  /** Like the context's signal, but cheaper to create. */
  readonly signal: CancelSignal;
  /** True if the client requested progress and accepts a stream. */
  readonly wantsProgress: boolean;
  /** The least severe log messages that the client wants; undefined for none. */
  readonly logLevel: LogSeverity | undefined;
  /** The custom members of the request's `_meta` (`readCustomMeta`: none if too large), or what guards made of them. */
  readonly meta: JsonObject | undefined;
  /**
   * Guards for server-initiated requests; undefined if no guard checks them. They do not see requests from the gateway itself.
   */
  readonly questionGuards: QuestionGuards | undefined;
}

/** Server-initiated requests are sent to the client during the call. */
export interface RelayedSessionClient extends RelayedClientBase {
  readonly era: 'session';
  /**
   * Relays a request to the client unchanged, and resolves to its unchanged response.
   *
   * `cancelled` is aborted when the response is no longer wanted; the client is then notified.
   *
   * @throws GatewayError as `ask` does, but not for an error response.
   */
  ask(
    request: { readonly method: string; readonly params: JsonObject },
    cancelled?: CancelSignal,
  ): Promise<RawAnswer>;
  /**
   * Notifies the client that an interaction at a URL, requested in this call, is finished. False if there is none, or the client
   * was notified before.
   */
  completeElicitation(elicitationId: string): boolean;
}

/** A client's response: a result or an error. */
export type RawAnswer = { readonly result: JsonObject } | { readonly error: JsonRpcErrorObject };

/** Server-initiated requests end the call, and the client repeats it with the responses. */
export interface RelayedStatelessClient extends RelayedClientBase {
  readonly era: 'stateless';
  /** Responses that this call brings for an earlier one, which ended with `requireInput`. */
  readonly answered:
    | { readonly inputResponses: JsonObject; readonly state: JsonObject }
    | undefined;
  /**
   * Ends the call with `inputRequests`, which are not inspected. `state` returns with the responses; it is sealed, and bound to
   * the user and the call.
   *
   * @throws always
   */
  requireInput(inputRequests: JsonObject, state: JsonObject): never;
}

/** `done` of `total` (in any unit, increasing), with a message for the user. */
export type Progress = (done: number, total?: number, message?: string) => void;

/** `data` is any JSON value. It must not contain secrets. */
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

/** §19.2: the public descriptions of tools. Undefined while they cannot be listed. Never rejects. */
export type GetPublicTools = () => Promise<
  | readonly { readonly name: string; readonly title?: string; readonly description?: string }[]
  | undefined
>;

/**
 * Returns the user of a call that requires one.
 *
 * @throws GatewayError `user_required` if the service runs without authentication.
 */
export const requireUser = ({ user }: Context): UserContext => user ?? fail('user_required');
