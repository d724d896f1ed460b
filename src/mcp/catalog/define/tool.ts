// §2.4: defines tools, typed by their schemas.
import { DefinitionError } from '../../../errors/gateway-error.ts';
import { isObject } from '../../../platform/json.ts';
import type { Arguments, Context } from '../catalog.ts';
import type { FromJsonSchema } from '../client-requests.ts';
import type {
  Content,
  DescribedEntry,
  MirroredParam,
  ObjectSchema,
  ToolAnnotations,
  ToolDescription,
  ToolResult,
} from '../content.ts';
import { readMirroredParams } from '../mirrored-params.ts';
import { compileSchema, type SchemaCheck } from './compile-schema.ts';
import { checkMembers, describeType } from './describe-errors.ts';

/** A tool with its compiled schemas. Created by {@link defineTool}. */
export interface Tool {
  readonly description: ToolDescription;
  /** Arguments that clients mirror in headers (`x-mcp-header`). */
  readonly mirroredParams: readonly MirroredParam[];
  /** Describes the problem with the arguments, naming the member; undefined if they are valid. */
  findProblem(args: Arguments): string | undefined;
  /** Runs a complete call. @throws Error if the result is invalid for `outputSchema`. */
  run(args: Arguments, context: Context): Promise<ToolResult>;
  /** Undefined if calls never become tasks. */
  readonly task: TaskSupport | undefined;
  /**
   * Runs `prepare`, which may send requests to the client. Resolves to the rest of the work, which may become a task.
   *
   * @throws the error of `prepare`; the rest, Error if the result is invalid for `outputSchema`
   */
  prepare(args: Arguments, context: Context): Promise<(context: Context) => Promise<ToolResult>>;
}

/**
 * `required`: calls from clients of 2026-07-28 (ext-tasks) must be tasks. `optional`: they are tasks if the client supports them.
 */
type TaskSupport = 'required' | 'optional';

/** The return value of `run` with an `outputSchema`. */
export interface StructuredResult<Fields> {
  readonly structuredContent: Fields;
  /** By default, the same data as JSON text, for clients that only read text. */
  readonly content?: readonly Content[];
  readonly isError?: false;
}

/** The return value of `run` without an `outputSchema`. */
export interface ContentResult {
  readonly content: readonly Content[];
  /** True for a failure that the model should read. */
  readonly isError?: boolean;
  /** The compiler prints this sentence. */
  readonly structuredContent?: 'To return structuredContent, give the tool an outputSchema';
}

/** A failure that the model should read, with an `outputSchema`. */
export interface ToolFailure {
  readonly content: readonly Content[];
  readonly isError: true;
}

/**
 * Defines a tool (§2.4). Schemas are JSON Schema Draft 7 (or 2020-12 with that `$schema`) of type `object`; `run` receives
 * arguments that are valid for `inputSchema`, and its result is validated against `outputSchema`. Return `isError: true` for a
 * failure that the model should read; an error thrown by `run` is returned as -32603, with its message as `data.details` (§4.4).
 *
 * @throws DefinitionError immediately, if a member is missing or unknown, or the name or a schema is invalid.
 */
export function defineTool<
  const Input extends ObjectSchema,
  const Output extends ObjectSchema | undefined = undefined,
  Prepared = undefined,
>(tool: ToolDefinition<Input, Output, Prepared>): Tool;
export function defineTool(tool: UntypedTool): Tool {
  checkMembers('Tool', tool, MEMBERS, { name: 'text', run: 'function' });
  const { run, prepare, task, ...description } = tool;
  const { name, inputSchema, outputSchema } = description;
  if (!TOOL_NAME.test(name))
    throw new DefinitionError(
      `Tool ${name}: a name has 1 to 128 characters: letters, digits, "_", "-" and ".".`,
    );
  if (!TASKS.has(task))
    throw new DefinitionError(`Tool ${name}: task must be true, false or "optional".`);
  if (prepare !== undefined && typeof prepare !== 'function')
    throw new DefinitionError(
      `Tool ${name}: prepare is ${describeType(prepare)}; it must be a function.`,
    );
  const input = compileSchema(`Tool ${name}: inputSchema`, 'arguments', inputSchema);
  const output =
    outputSchema && compileSchema(`Tool ${name}: outputSchema`, 'structuredContent', outputSchema);
  // Not awaited here: that would retain the arguments until the tool ends.
  const work = (args: Arguments, context: Context, prepared: unknown): Promise<ToolResult> =>
    startRun(run, args, context, prepared).then((result) => toToolResult(result, output));
  return {
    description,
    mirroredParams: readMirroredParams(name, inputSchema),
    findProblem: (args) => (input.fits(args) ? undefined : input.describeProblem(args)),
    run: (args, context) =>
      prepare === undefined
        ? work(args, context, undefined)
        : startPrepare(prepare, args, context).then((prepared) => work(args, context, prepared)),
    task: TASKS.get(task),
    prepare: (args, context) =>
      startPrepare(prepare, args, context).then(
        (prepared) => (running) => work(args, running, prepared),
      ),
  };
}

const MEMBERS = [
  ...['name', 'title', 'description', 'icons', 'annotations'],
  ...['inputSchema', 'outputSchema', 'task', 'prepare', 'run'],
];

/** The argument of {@link defineTool}. */
export interface ToolDefinition<Input, Output, Prepared = undefined> extends DescribedEntry {
  readonly name: string;
  readonly inputSchema: Input;
  readonly outputSchema?: Output;
  readonly annotations?: ToolAnnotations;
  /**
   * Whether a call can become a task (ext-tasks), whose result the client fetches later. `'optional'`: if the client supports
   * tasks; `true`: clients of 2026-07-28 without support are refused. For clients of older revisions it is a long call.
   */
  readonly task?: boolean | 'optional';
  /** Runs before the work, for requests to the client before a task begins. `run` receives its result. */
  prepare?(args: FromJsonSchema<Input>, context: Context): Prepared | Promise<Prepared>;
  run(
    args: FromJsonSchema<Input>,
    context: Context,
    prepared: Prepared,
  ): ResultOf<Output> | Promise<ResultOf<Output>>;
}

const TASKS = new Map<ToolDefinition<unknown, unknown>['task'], TaskSupport | undefined>([
  [true, 'required'],
  ['optional', 'optional'],
  [false, undefined],
  [undefined, undefined],
]);

/**
 * The return value of `run`, depending on `outputSchema`. In brackets: during inference `Output` is `never`, and `run: () => new
 * Promise(…)` still gets its type.
 */
type ResultOf<Output> = [Output] extends [undefined]
  ? ContentResult
  : ToolFailure | StructuredResult<FromJsonSchema<Output>>;

/** MCP 2025-11-25, tool names. */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

/** The tool as the compiler sees it: values that are valid for the schema have the type that `run` expects. */
interface UntypedTool extends ToolDescription {
  readonly task?: boolean | 'optional';
  // biome-ignore lint/suspicious/noExplicitAny: each tool's own type, guarded by its validator
  prepare?(args: any, context: Context): unknown;
  // biome-ignore lint/suspicious/noExplicitAny: the same, and what its own prepare returned
  run(args: any, context: Context, prepared: any): AnyResult | Promise<AnyResult>;
}

/** Async, so that synchronous errors of the tool become rejections. */
const startRun = async (
  run: UntypedTool['run'],
  args: Arguments,
  context: Context,
  prepared: unknown,
) => run(args, context, prepared);

const startPrepare = async (
  prepare: UntypedTool['prepare'],
  args: Arguments,
  context: Context,
): Promise<unknown> => prepare?.(args, context);

type AnyResult = ContentResult | StructuredResult<unknown> | ToolFailure;

function toToolResult(result: AnyResult | undefined, output: SchemaCheck | undefined): ToolResult {
  const expected = output === undefined ? CONTENT : STRUCTURED;
  if (!isObject(result)) throw wrongResult(describeType(result), expected);
  if (output !== undefined && 'structuredContent' in result) {
    const { structuredContent } = result;
    if (!output.fits(structuredContent)) {
      const problem = output.describeProblem(structuredContent);
      throw new Error(`The tool's structuredContent does not match its outputSchema: ${problem}`);
    }
    const text = { type: 'text', text: JSON.stringify(structuredContent) } as const;
    return { content: [text], ...result } as ToolResult;
  }
  const { content } = result;
  if (content === undefined) throw wrongResult('an object without content', expected);
  if (!Array.isArray(content))
    throw wrongResult(`content that is ${describeType(content)}`, expected);
  const wrong = content.findIndex((item) => !isObject(item) || typeof item.type !== 'string');
  if (wrong !== -1) {
    const item: unknown = content[wrong];
    const returned = isObject(item) ? 'an object without type' : describeType(item);
    throw wrongResult(`content[${wrong}] that is ${returned}`, expected);
  }
  if (output !== undefined && result.isError !== true)
    throw new Error('The tool returned no structuredContent, which its outputSchema requires');
  return result as unknown as ToolResult;
}

const CONTENT = "{ content: [{ type: 'text', text: … }] }";
const STRUCTURED = '{ structuredContent: { … } }, as its outputSchema says';

const wrongResult = (returned: string, expected: string): Error =>
  new Error(`run returned ${returned}; it must return ${expected}`);

/** Marked by a symbol that all copies of this package share: a catalogue may include its own copy. */
const MARK = Symbol.for('postern.ToolError');

/** Maximum characters of the message for the model. */
const MAX_WORDS = 10_000;

/**
 * Thrown by a tool for its model to read: the message becomes the text of a result with `isError`, unchanged, up to 10,000
 * characters. It must not contain secrets.
 */
export class ToolError extends Error {
  override readonly name = 'ToolError';
  readonly [MARK] = true;
}

export const isToolError = (thrown: unknown): thrown is Error =>
  thrown instanceof Error && MARK in thrown;

export const readFailure = ({ message }: Error): string => String(message).slice(0, MAX_WORDS);
