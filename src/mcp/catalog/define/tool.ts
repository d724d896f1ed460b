// §2.4: tools, each typed from its own schemas.
import { DefinitionError } from '../../../errors/gateway-error.ts';
import { isObject, type JsonObject } from '../../../platform/json.ts';
import type { Arguments, Context } from '../catalog.ts';
import type { FromJsonSchema } from '../client-requests.ts';
import type { Content, ToolResult } from '../content.ts';
import type {
  Described,
  MirroredParam,
  ObjectSchema,
  ToolAnnotations,
  ToolDescription,
} from '../descriptions.ts';
import { checkMembers, describeType } from './check-members.ts';
import { compileSchema, readMirroredParams, type SchemaCheck } from './compile-schema.ts';

/** A tool with its compiled schemas. Made by {@link defineTool}. */
export interface Tool {
  readonly description: ToolDescription;
  /** Arguments that clients repeat in headers (`x-mcp-header`). */
  readonly mirroredParams: readonly MirroredParam[];
  /** What is wrong with the arguments, naming the member; undefined when they fit. */
  findProblem(args: Arguments): string | undefined;
  /** @throws Error when the result does not fit `outputSchema`. */
  run(args: Arguments, context: Context): Promise<ToolResult>;
}

/** What `run` returns where there is an `outputSchema`. */
export interface StructuredResult<Fields> {
  readonly structuredContent: Fields;
  /** Left out: the same as JSON text, for clients that read text only. */
  readonly content?: readonly Content[];
  readonly isError?: false;
}

/** What `run` returns where there is none. */
export interface ContentResult {
  readonly content: readonly Content[];
  /** True for a failure that the model should read. */
  readonly isError?: boolean;
  /** The compiler prints this sentence. */
  readonly structuredContent?: 'To return structuredContent, give the tool an outputSchema';
}

/** A failure that the model should read, where there is an `outputSchema`. */
export interface ToolFailure {
  readonly content: readonly Content[];
  readonly isError: true;
}

/**
 * Defines a tool (§2.4). Schemas are JSON Schema Draft 7 (or 2020-12 with that `$schema`) of
 * type `object`; `run` gets arguments that fit `inputSchema`, and what it returns is held to
 * `outputSchema`. Return `isError: true` for a failure that the model should read; what `run`
 * throws is answered with -32603, its message as `data.details` (§4.4).
 *
 * @throws DefinitionError at once, when a member is missing or not known, or the name or a schema not
 * valid.
 */
export function defineTool<
  const Input extends ObjectSchema,
  const Output extends ObjectSchema | undefined = undefined,
>(tool: ToolDefinition<Input, Output>): Tool;
export function defineTool(tool: UntypedTool): Tool {
  checkMembers('Tool', tool, MEMBERS, 'name');
  const { run, ...description } = tool;
  const { name, inputSchema, outputSchema } = description;
  if (!TOOL_NAME.test(name)) {
    throw new DefinitionError(
      `Tool ${name}: a name has 1 to 128 characters: letters, digits, "_", "-" and ".".`,
    );
  }
  const input = compileSchema(`Tool ${name}: inputSchema`, 'arguments', inputSchema);
  const output =
    outputSchema && compileSchema(`Tool ${name}: outputSchema`, 'structuredContent', outputSchema);
  return {
    description,
    mirroredParams: readMirroredParams(name, inputSchema),
    findProblem: (args) => (input.fits(args) ? undefined : input.describeProblem(args)),
    // Not awaited here: that would keep the arguments until the tool ends.
    run: (args, context) =>
      startRun(run, args, context).then((result) => toToolResult(result, output)),
  };
}

const MEMBERS = {
  name: 'text',
  title: 'any',
  description: 'any',
  icons: 'any',
  annotations: 'any',
  inputSchema: 'any',
  outputSchema: 'any',
  run: 'function',
} as const;

/** What {@link defineTool} takes. */
export interface ToolDefinition<Input, Output> extends Described {
  readonly name: string;
  readonly inputSchema: Input;
  readonly outputSchema?: Output;
  readonly annotations?: ToolAnnotations;
  run(args: FromJsonSchema<Input>, context: Context): ResultOf<Output> | Promise<ResultOf<Output>>;
}

/**
 * What `run` returns, by the `outputSchema`. In brackets: while the compiler still infers, `Output`
 * is never, and `run: () => new Promise(…)` gets its type all the same.
 */
type ResultOf<Output> = [Output] extends [undefined]
  ? ContentResult
  : ToolFailure | StructuredResult<FromJsonSchema<Output>>;

/** MCP 2025-11-25, tool names. */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

/** The tool as the compiler sees it: what fits the schema has the type that `run` asks for. */
interface UntypedTool extends ToolDescription {
  // biome-ignore lint/suspicious/noExplicitAny: each tool's own type, guarded by its validator
  run(args: any, context: Context): AnyResult | Promise<AnyResult>;
}

/** Async, so that what the tool throws at once is a rejection, too. */
const startRun = async (run: UntypedTool['run'], args: Arguments, context: Context) =>
  run(args, context);

type AnyResult = ContentResult | StructuredResult<unknown> | ToolFailure;

function toToolResult(result: AnyResult | undefined, output: SchemaCheck | undefined): ToolResult {
  const expected = output === undefined ? CONTENT : STRUCTURED;
  if (!isObject(result)) throw wrongResult(describeType(result), expected);
  if (output !== undefined && 'structuredContent' in result) {
    return toStructuredResult(result, output);
  }
  const { content } = result;
  if (content === undefined) throw wrongResult('an object without content', expected);
  if (!Array.isArray(content))
    throw wrongResult(`content that is ${describeType(content)}`, expected);
  const wrong = content.findIndex((item) => !isObject(item) || typeof item.type !== 'string');
  if (wrong !== -1) {
    throw wrongResult(`content[${wrong}] that is ${describeItem(content[wrong])}`, expected);
  }
  if (output !== undefined && result.isError !== true) {
    throw new Error('The tool returned no structuredContent, which its outputSchema requires');
  }
  return result as unknown as ToolResult;
}

const CONTENT = "{ content: [{ type: 'text', text: … }] }";
const STRUCTURED = '{ structuredContent: { … } }, as its outputSchema says';

const wrongResult = (returned: string, expected: string): Error =>
  new Error(`run returned ${returned}; it must return ${expected}`);

const describeItem = (item: unknown): string =>
  isObject(item) ? 'an object without type' : describeType(item);

function toStructuredResult(result: JsonObject, output: SchemaCheck): ToolResult {
  const { structuredContent } = result;
  if (!output.fits(structuredContent)) {
    const problem = output.describeProblem(structuredContent);
    throw new Error(`The tool's structuredContent does not match its outputSchema: ${problem}`);
  }
  const text = { type: 'text', text: JSON.stringify(structuredContent) } as const;
  return { content: [text], ...result } as ToolResult;
}

/** By a symbol that all copies of this package share: a catalogue may have brought one of its own. */
const MARK = Symbol.for('postern.ToolError');

/** Characters of what a model is told. */
const MAX_WORDS = 10_000;

/**
 * Thrown by a tool for its model to read: the message becomes the text of a result with `isError`, as it is, up to 10,000
 * characters. Put no secrets into it.
 */
export class ToolError extends Error {
  override readonly name = 'ToolError';
  readonly [MARK] = true;
}

export const isToolError = (thrown: unknown): thrown is Error =>
  thrown instanceof Error && MARK in thrown;

export const readWords = ({ message }: Error): string => String(message).slice(0, MAX_WORDS);
