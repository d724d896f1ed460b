/**
 * Postern as a library: an own catalogue of tools, prompts and resources behind the same gateway.
 *
 * @packageDocumentation
 */
export type { Clock } from './core/clock.ts';
export type { Config } from './core/config/config.ts';
export { ConfigError, loadConfig } from './core/config/load.ts';
export { DefinitionError } from './core/errors/definition-error.ts';
export type { Log } from './core/log.ts';
export type { Store } from './core/store/store.ts';
export type { UserContext } from './core/user-context.ts';
export type {
  Arguments,
  Catalog,
  Context,
  Progress,
  ServiceInfo,
} from './features/mcp/catalog.ts';
export {
  definePrompt,
  defineResource,
  defineTool,
  type Prompt,
  type PromptArgument,
  type Resource,
  type ResourceContent,
  requireUser,
  type Tool,
} from './features/mcp/define.ts';
export { createLocalCatalog, type LocalEntries } from './features/mcp/local-catalog.ts';
export type {
  Content,
  InputSchema,
  PromptResult,
  ResourceResult,
  ToolResult,
} from './features/mcp/types.ts';
export { createGateway, type Deps, type Gateway } from './gateway.ts';
