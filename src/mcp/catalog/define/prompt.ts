// §2.6: defines prompts, typed by their lists of arguments.
import { DefinitionError } from '../../../errors/gateway-error.ts';
import { isObject } from '../../../platform/json.ts';
import type { Arguments, Context } from '../catalog.ts';
import type { DescribedEntry, PromptDescription, PromptResult } from '../content.ts';
import { checkMembers, describeType } from './describe-errors.ts';

/** Created by {@link definePrompt}. */
export interface Prompt {
  readonly description: PromptDescription;
  /** Describes the problem with the arguments, naming one; undefined if they are valid. */
  findProblem(args: Arguments): string | undefined;
  get(args: Arguments, context: Context): Promise<PromptResult>;
  /** By argument. */
  readonly completers: Completers;
  /** True if an argument has `complete`; those with `values` are completed separately. */
  readonly hasCompletion: boolean;
}

/**
 * Returns values that begin with, or match, the typed text, best first; `known` contains the arguments that are already filled
 * in. The first 100 are sent.
 */
export type Complete<Name extends string = string> = (
  typed: string,
  known: { readonly [Known in Name]?: string },
  context: Context,
) => readonly string[] | Promise<readonly string[]>;

export type Completers = ReadonlyMap<string, Complete>;

/** One argument of a prompt. MCP only supports strings here; `values` restricts them. */
export interface PromptArgument {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
  readonly values?: readonly string[];
  readonly complete?: Complete;
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

/**
 * Defines a prompt (§2.6). `get` receives validated arguments.
 *
 * @throws DefinitionError immediately, if a member is missing or unknown.
 */
export function definePrompt<const All extends readonly PromptArgument[]>(
  prompt: DescribedEntry & {
    readonly name: string;
    /** None by default. */
    readonly arguments?: All;
    get(args: PromptArguments<All>, context: Context): PromptResult | Promise<PromptResult>;
  },
): Prompt {
  checkMembers('Prompt', prompt, MEMBERS, { name: 'text', get: 'function' });
  const { get, arguments: promptArguments = [], ...described } = prompt;
  const owner = `Prompt ${prompt.name}`;
  const given: unknown = promptArguments;
  if (!Array.isArray(given))
    throw new DefinitionError(
      `${owner}: arguments is ${describeType(promptArguments)}; it must be a list.`,
    );
  for (const argument of promptArguments) {
    checkMembers(`${owner}: argument`, argument, ARGUMENT_MEMBERS, { name: 'text' });
  }
  return {
    description: {
      ...described,
      arguments: promptArguments.map(({ name, description, required }) => ({
        name,
        description,
        required,
      })),
    },
    findProblem(args) {
      for (const { name, required, values } of promptArguments) {
        const value = Object.hasOwn(args, name) ? args[name] : undefined;
        if (value === undefined && !required) continue;
        if (value === undefined) return `argument ${name} is missing`;
        if (typeof value !== 'string') return `argument ${name} must be a string`;
        if (values && !values.includes(value))
          return `argument ${name} must be one of ${values.join(', ')}`;
      }
      return undefined;
    },
    async get(args, context) {
      const result = await get(args as PromptArguments<All>, context);
      if (isObject(result) && Array.isArray(result.messages)) return result;
      const returned = isObject(result)
        ? 'an object without a list of messages'
        : describeType(result);
      throw new Error(`get returned ${returned}; it must return { messages: [{ role, content }] }`);
    },
    completers: new Map(
      promptArguments.flatMap(({ name, complete, values }): [string, Complete][] => {
        const completer = complete ?? (values && completeFrom(values));
        return completer === undefined ? [] : [[name, completer]];
      }),
    ),
    hasCompletion: promptArguments.some(({ complete }) => complete !== undefined),
  };
}

const MEMBERS = ['name', 'title', 'description', 'icons', 'arguments', 'get'];
const ARGUMENT_MEMBERS = ['name', 'description', 'required', 'values', 'complete'];

const completeFrom =
  (values: readonly string[]): Complete =>
  (typed) =>
    values.filter((value) => value.startsWith(typed));
