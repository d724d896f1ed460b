/**
 * `postern/define`: the functions that authors use to define tools, prompts and resources, in their own packages as well as in
 * `src/catalog`.
 *
 * @packageDocumentation
 */

export { DefinitionError, fail } from './errors/gateway-error.ts';
export type { UserContext } from './http/endpoint/message.ts';
export type {
  Arguments,
  Catalog,
  ClientLog,
  Completion,
  CompletionRequest,
  Context,
  Cursor,
  Offers,
  Page,
  Progress,
  ServiceInfo,
  SkillResult,
} from './mcp/catalog/catalog.ts';
export { requireUser } from './mcp/catalog/catalog.ts';
export {
  type Answers,
  type AnswerTo,
  type Ask,
  type ClientCapabilities,
  type ClientRequest,
  type ClientRequests,
  type ElicitAnswer,
  elicit,
  listRoots,
  type RootsAnswer,
  type SampleAnswer,
  type SampleParams,
  sample,
} from './mcp/catalog/client-requests.ts';
export type {
  Annotations,
  CacheHint,
  Content,
  Icon,
  ObjectSchema,
  PromptDescription,
  PromptResult,
  ResourceContent,
  ResourceDescription,
  ResourceResult,
  ResourceTemplateDescription,
  SkillDescription,
  SkillFile,
  SkillFrontmatter,
  ToolAnnotations,
  ToolDescription,
  ToolResult,
} from './mcp/catalog/content.ts';
export {
  createLocalCatalog,
  type LocalEntries,
} from './mcp/catalog/define/local-catalog.ts';
export {
  type Complete,
  definePrompt,
  type Prompt,
  type PromptArgument,
} from './mcp/catalog/define/prompt.ts';
export {
  defineResource,
  defineResourceTemplate,
  type Resource,
  type ResourceTemplate,
  type Watch,
} from './mcp/catalog/define/resource.ts';
export { defineSkill, type Skill, type SkillDefinition } from './mcp/catalog/define/skill.ts';
export {
  type ContentResult,
  defineTool,
  type StructuredResult,
  type Tool,
  type ToolDefinition,
  ToolError,
  type ToolFailure,
} from './mcp/catalog/define/tool.ts';
export type { LogSeverity } from './mcp/protocol/methods.ts';
export type { TraceContext } from './telemetry/tracing/tracing.ts';
