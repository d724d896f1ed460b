import type { JsonObject } from '../../../core/json.ts';
import type { UserContext } from '../../../core/user-context.ts';
import type { TraceContext } from '../protocol/trace-context.ts';
import type { Ask, ClientCapabilities } from './client-requests.ts';
import type { CacheHint, PromptResult, ResourceResult, ToolResult } from './content.ts';
import type {
  MirroredParam,
  PromptDescription,
  ResourceDescription,
  ResourceTemplateDescription,
  ToolDescription,
} from './descriptions.ts';

/**
 * What stands behind tools, prompts and resources. The local catalogue serves those defined in
 * this process; another implementation may front other servers.
 *
 * An unknown name, URI, cursor or argument ends in `fail('invalid_params', …)`, tool arguments that
 * do not fit in `fail('invalid_tool_input', …)`; any other throw is an unexpected failure
 * (§4.4). Methods of what is not offered are never called.
 */
export interface Catalog {
  /** What there is: the rest is neither advertised nor answered. */
  readonly offers: Offers;
  /** All headers in which arguments of tools are repeated, for browsers to send. */
  readonly mirrorHeaders: readonly string[];
  /** For the client's model: how to use this service. */
  readonly instructions?: string;
  listTools(cursor: Cursor, context: Context): Promise<Page<ToolDescription>>;
  callTool(name: string, args: Arguments, context: Context): Promise<ToolResult>;
  /** Arguments of the tool that clients repeat in headers (`x-mcp-header`); none of an unknown one. */
  mirroredParams(tool: string): readonly MirroredParam[];
  listPrompts(cursor: Cursor, context: Context): Promise<Page<PromptDescription>>;
  getPrompt(name: string, args: Arguments, context: Context): Promise<PromptResult>;
  listResources(cursor: Cursor, context: Context): Promise<Page<ResourceDescription>>;
  listResourceTemplates(
    cursor: Cursor,
    context: Context,
  ): Promise<Page<ResourceTemplateDescription>>;
  readResource(uri: string, context: Context): Promise<ResourceResult>;
  complete(completion: CompletionRequest, context: Context): Promise<Completion>;
  /** Whether the resource tells when it changes. */
  canWatch(uri: string): boolean;
  /** Calls `changed` with the URI of each that has changed, until the result is called. */
  watchResources(changed: (uri: string) => void): () => void;
}

export interface Offers {
  readonly tools: boolean;
  readonly prompts: boolean;
  readonly resources: boolean;
  /** Some resources tell when they change. */
  readonly subscriptions: boolean;
  /** Arguments of prompts or templates are completed. */
  readonly completions: boolean;
  /** Tools write log messages to the client. */
  readonly logging: boolean;
}

/** Where a page begins: `nextCursor` of the page before, undefined for the first. */
export type Cursor = string | undefined;

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Absent on the last page. */
  readonly nextCursor?: string;
  /** Default: not cached, private. */
  readonly cache?: CacheHint;
}

/** What is being typed, and for which argument of which prompt or template. */
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

/** What a tool, prompt or resource knows of the call, and how it reaches the client meanwhile. */
export interface Context {
  /** The caller; undefined when the service runs without authentication. */
  readonly user: UserContext | undefined;
  readonly service: ServiceInfo;
  readonly client: ClientCapabilities;
  /** Aborted when the caller hangs up or cancels the call. */
  readonly signal: AbortSignal;
  /** Reaches clients that asked for progress and take a stream; others never hear of it. */
  readonly progress: Progress;
  /** Reaches clients that want messages this severe and take a stream, if the catalogue logs. */
  readonly log: ClientLog;
  readonly ask: Ask;
  /** W3C trace context of the caller, for calls to other services. */
  readonly trace: TraceContext;
}

/** `done` of `total` (any unit, growing), with a text for the user. */
export type Progress = (done: number, total?: number, message?: string) => void;

/** RFC 5424 severities, least severe first. */
export const LOG_SEVERITIES = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
] as const;

export type LogSeverity = (typeof LOG_SEVERITIES)[number];

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
