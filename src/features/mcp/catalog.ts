import type { UserContext } from '../../core/user-context.ts';
import type {
  PromptDescription,
  PromptResult,
  ResourceDescription,
  ResourceResult,
  ToolDescription,
  ToolResult,
} from './types.ts';

/**
 * What stands behind tools, prompts and resources. The local catalogue serves those defined in
 * this process; another implementation may front other servers.
 *
 * An unknown name or wrong arguments end in `fail('invalid_params', …)`; any other throw is an
 * unexpected failure (Spec §4.4).
 */
export interface Catalog {
  listTools(context: Context): Promise<readonly ToolDescription[]>;
  callTool(name: string, args: Arguments, context: Context): Promise<ToolResult>;
  listPrompts(context: Context): Promise<readonly PromptDescription[]>;
  getPrompt(name: string, args: Arguments, context: Context): Promise<PromptResult>;
  listResources(context: Context): Promise<readonly ResourceDescription[]>;
  readResource(uri: string, context: Context): Promise<ResourceResult>;
}

/** A JSON object as it came from the caller. */
export type Arguments = Readonly<Record<string, unknown>>;

/** What a tool, prompt or resource knows of the call. */
export interface Context {
  /** The caller; undefined when the service runs without authentication. */
  readonly user: UserContext | undefined;
  readonly service: ServiceInfo;
  /** Aborted when the caller hangs up. */
  readonly signal: AbortSignal;
  /** Reports progress. Plain JSON answers (Spec §1) cannot carry it: it reaches nobody there. */
  readonly progress: Progress;
}

/** `done` of `total` (any unit), with a text for the user. */
export type Progress = (done: number, total?: number, message?: string) => void;

export interface ServiceInfo {
  /** Package name: `serverInfo.name`. */
  readonly name: string;
  readonly version: string;
  /** `SERVICE_DISPLAY_NAME`. */
  readonly displayName: string;
  /** `NODE_ENV`. */
  readonly environment: string;
}
