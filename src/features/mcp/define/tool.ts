// Where tools, prompts and resources are made: each typed from its own schema.
import { Ajv, type ErrorObject } from 'ajv';
import type { FromSchema, JSONSchema } from 'json-schema-to-ts';
import { DefinitionError } from '../../core/errors/definition-error.ts';
import { fail } from '../../core/errors/gateway-error.ts';
import type { UserContext } from '../../core/user-context.ts';
import type { Arguments, Context } from './catalog.ts';
import type {
  InputSchema,
  PromptDescription,
  PromptResult,
  ResourceDescription,
  ToolDescription,
  ToolResult,
} from './types.ts';

/** A tool with its compiled validator. Made by {@link defineTool}. */
export interface Tool {
  readonly description: ToolDescription;
  /** What is wrong with the arguments, naming the member; undefined when they fit. */
  problem(args: Arguments): string | undefined;
  run(args: Arguments, context: Context): Promise<ToolResult>;
}

/** Made by {@link definePrompt}. */
export interface Prompt {
  readonly description: PromptDescription;
  problem(args: Arguments): string | undefined;
  get(args: Arguments, context: Context): Promise<PromptResult>;
}

/** Made by {@link defineResource}. */
export interface Resource {
  readonly description: ResourceDescription;
  read(context: Context): Promise<ResourceContent>;
}

/** The text of a resource, or its bytes as base64. */
export type ResourceContent = { readonly text: string } | { readonly blob: string };

const ajv = new Ajv({ allowUnionTypes: true });

/**
 * Defines a tool (Spec §2.4). `inputSchema` is JSON Schema Draft 7 of type `object`; `run` gets
 * arguments that fit it. Return `isError: true` for a failure that the model should read; what
 * `run` throws is answered with -32603, its message as `data.details` (Spec §4.4).
 *
 * @throws DefinitionError at once, when the name or the schema is not valid.
 */
export function defineTool<const Schema extends InputSchema>(tool: {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Schema;
  run(args: ArgumentsOf<Schema>, context: Context): ToolResult | Promise<ToolResult>;
}): Tool;
export function defineTool({ name, description, inputSchema, run }: UntypedTool): Tool {
  if (!TOOL_NAME.test(name)) {
    throw new DefinitionError(
      `Tool ${name}: a name has 1 to 128 letters, digits, "_", "-" and "." only.`,
    );
  }
  const fits = compiled(name, inputSchema);
  return {
    description: { name, description, inputSchema },
    problem: (args) => (fits(args) ? undefined : schemaProblem(fits.errors?.[0])),
    run: async (args, context) => run(args, context),
  };
}

/** MCP 2025-11-25, tool names. */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

function compiled(name: string, inputSchema: InputSchema) {
  try {
    return ajv.compile(inputSchema);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new DefinitionError(`Tool ${name}: inputSchema is no JSON Schema Draft 7: ${reason}.`);
  }
}

/** The type that fits a schema; never, when it is no Draft 7 schema. */
type ArgumentsOf<Schema> = Schema extends JSONSchema ? FromSchema<Schema> : never;

/** The tool as the validator sees it: what fits the schema has the type that `run` asks for. */
interface UntypedTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: InputSchema;
  // biome-ignore lint/suspicious/noExplicitAny: each tool's own type, guarded by its validator
  run(args: any, context: Context): ToolResult | Promise<ToolResult>;
}

/** One argument of a prompt. MCP knows only strings here; `values` narrows them. */
export interface PromptArgument {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
  readonly values?: readonly string[];
}

type PromptValue<Argument extends PromptArgument> = Argument extends {
  readonly values: readonly (infer Value extends string)[];
}
  ? Value
  : string;

type PromptArguments<All extends readonly PromptArgument[]> = {
  readonly [A in All[number] as A['required'] extends true ? A['name'] : never]: PromptValue<A>;
} & {
  readonly [A in All[number] as A['required'] extends true ? never : A['name']]?: PromptValue<A>;
};

/** Defines a prompt (Spec §2.6). `get` gets arguments that were checked against the list. */
export function definePrompt<const All extends readonly PromptArgument[]>(prompt: {
  readonly name: string;
  readonly description: string;
  readonly arguments: All;
  get(args: PromptArguments<All>, context: Context): PromptResult | Promise<PromptResult>;
}): Prompt {
  const { name, description, get } = prompt;
  return {
    description: {
      name,
      description,
      arguments: prompt.arguments.map(({ name, description, required }) => ({
        name,
        description,
        required,
      })),
    },
    problem: (args) => firstProblem(prompt.arguments, args),
    get: async (args, context) => get(args as PromptArguments<All>, context),
  };
}

/** Defines a resource with a fixed URI (Spec §2.7). */
export function defineResource(
  resource: ResourceDescription & {
    read(context: Context): ResourceContent | Promise<ResourceContent>;
  },
): Resource {
  const { uri, name, description, mimeType, read } = resource;
  return {
    description: { uri, name, description, mimeType },
    read: async (context) => read(context),
  };
}

/**
 * The user of a call that makes no sense without one.
 *
 * @throws GatewayError `user_required` when the service runs without authentication (decisions 3).
 */
export const requireUser = ({ user }: Context): UserContext => user ?? fail('user_required');

function schemaProblem(error: ErrorObject | undefined): string {
  if (error === undefined) return 'arguments do not fit the input schema';
  const path = shortened(`arguments${error.instancePath}`);
  const extra: unknown = error.params.additionalProperty;
  if (typeof extra === 'string') return `${path} must not have the member "${shortened(extra)}"`;
  return `${path} ${error.message ?? 'does not fit the input schema'}`;
}

/** The caller's own words: nobody can make the service, or its log, recite at length. */
const shortened = (words: string) => (words.length > 100 ? `${words.slice(0, 100)}…` : words);

function firstProblem(known: readonly PromptArgument[], args: Arguments): string | undefined {
  return known.map((argument) => argumentProblem(argument, args)).find(Boolean);
}

function argumentProblem(
  { name, required, values }: PromptArgument,
  args: Arguments,
): string | undefined {
  const value = Object.hasOwn(args, name) ? args[name] : undefined;
  if (value === undefined) return required ? `argument ${name} is missing` : undefined;
  if (typeof value !== 'string') return `argument ${name} must be a string`;
  if (values && !values.includes(value)) {
    return `argument ${name} must be one of ${values.join(', ')}`;
  }
  return undefined;
}
