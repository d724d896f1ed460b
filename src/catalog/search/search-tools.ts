// §25.3: the three tools of a view that is searched, as clients see them, and what is wrong with their arguments.

import type { ObjectSchema, ToolAnnotations } from '../../mcp/catalog/content.ts';
import { compileSchema, type SchemaCheck } from '../../mcp/catalog/define/compile-schema.ts';
import { computeOnce } from '../../platform/compute-once.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { countNoun, shorten } from '../../platform/text.ts';
import { cleanForeignText } from '../clean-item.ts';
import { BUILT_IN, type Entry, showNumbers } from '../prepare-list.ts';
import { MAX_QUERY } from './rank.ts';

export const SEARCH = 'search_tools';
export const DESCRIBE = 'describe_tools';
export const CALL = 'call_tool';

export type SearchTool = typeof SEARCH | typeof DESCRIBE | typeof CALL;

/** Tools found by one search, unless it says how many. */
export const DEFAULT_LIMIT = 5;
const MAX_LIMIT = 20;
const MAX_NAME = 256;

interface Definition {
  readonly title: string;
  readonly inputSchema: ObjectSchema;
  readonly annotations: ToolAnnotations;
}

const READS: ToolAnnotations = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };

const toolName = (description: string) =>
  ({ type: 'string', minLength: 1, maxLength: MAX_NAME, description }) as const;

const DEFINITIONS: Readonly<Record<SearchTool, Definition>> = {
  [SEARCH]: {
    title: 'Search tools',
    inputSchema: {
      type: 'object',
      properties: {
        query: {
          type: 'string',
          minLength: 1,
          maxLength: MAX_QUERY,
          description:
            'What is to be done, in a few English words, with the name of the server if it is known: "github merge pull request".',
        },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: MAX_LIMIT,
          description: `How many tools at most; ${DEFAULT_LIMIT} unless given.`,
        },
      },
      required: ['query'],
      additionalProperties: false,
    },
    annotations: READS,
  },
  [DESCRIBE]: {
    title: 'Describe tools',
    inputSchema: {
      type: 'object',
      properties: {
        names: {
          type: 'array',
          items: toolName('Name of a tool, as search_tools tells it.'),
          minItems: 1,
          maxItems: MAX_LIMIT,
        },
      },
      required: ['names'],
      additionalProperties: false,
    },
    annotations: READS,
  },
  [CALL]: {
    title: 'Call a tool',
    inputSchema: {
      type: 'object',
      properties: {
        name: toolName('Name of the tool, as search_tools tells it.'),
        arguments: { type: 'object', description: 'Its arguments, as its inputSchema says.' },
      },
      required: ['name'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, openWorldHint: true },
  },
};

export const isSearchTool = (name: string): name is SearchTool => Object.hasOwn(DEFINITIONS, name);

export const getAnnotations = (name: SearchTool): JsonObject => ({
  ...DEFINITIONS[name].annotations,
});

/** `servers` says what there is to be found. */
export const listSearchTools = (servers: string): readonly JsonObject[] => [
  write(
    SEARCH,
    `Finds tools by what they do. Most tools are not listed here: before you say that something cannot be done, search for it. Answers with the best ones and how they are called; then call them with ${CALL}. ${servers}`,
  ),
  write(
    DESCRIBE,
    `Tells the whole descriptions and input schemas of tools that ${SEARCH} has found, where it left them out.`,
  ),
  write(
    CALL,
    `Calls a tool that ${SEARCH} has found, by its name and with the arguments that its inputSchema asks for. Its result is that of the tool.`,
  ),
];

const write = (name: SearchTool, description: string): JsonObject => ({
  name,
  description,
  ...DEFINITIONS[name],
});

const checks = new Map<SearchTool, SchemaCheck>();

/** Undefined where they fit. Schemas are compiled when they are first needed: most gateways have no such view. */
export function findArgumentProblem(tool: SearchTool, args: JsonObject): string | undefined {
  const { inputSchema } = DEFINITIONS[tool];
  const check =
    checks.get(tool) ?? compileSchema(`Tool ${tool}: inputSchema`, 'arguments', inputSchema);
  checks.set(tool, check);
  return check.fits(args) ? undefined : check.describeProblem(args);
}

// §25.3: what a model is told of tools that were found: whole where they fit, else how to ask for the rest.

/** Tokens of one result's names, descriptions and schemas. */
const MAX_TOKENS = 4_000;

/** For a tool whose schema is left out. */
const MAX_SHORT_DESCRIPTION = 300;
const MAX_SHORT_ARGUMENTS = 20;
const MAX_SHORT_NAME = 64;

/**
 * A tool that does not fit keeps no smaller one after it out. When they were `found`, it is shown shortly. When they were asked for
 * by name, it is not shown at all, and the first is always whole: without its schema nobody could call it.
 */
export async function showTools(entries: readonly Entry[], reason: 'found' | 'named') {
  const countTokens = await loadCountTokens();
  // Those that are not shown whole.
  const leftOut: string[] = [];
  let left = MAX_TOKENS;
  const tools = entries.flatMap((entry, at): readonly JsonObject[] => {
    const tokens = countTokens(entry.item);
    if (tokens <= left || (reason === 'named' && at === 0)) {
      left -= tokens;
      return [showWhole(entry)];
    }
    leftOut.push(entry.name);
    return reason === 'found' ? [showShortly(entry)] : [];
  });
  return { tools, leftOut };
}

/** For the model. */
export const explainLeftOut = (names: readonly string[]): string =>
  `Left out, since they are long: ask ${DESCRIBE} for ${names.join(', ')}.`;

const showWhole = (entry: Entry): JsonObject => {
  const { name, title, description, inputSchema, annotations } = showNumbers(entry, entry.item);
  return {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    inputSchema,
    ...(annotations !== undefined && { annotations }),
  };
};

function showShortly({ name, item }: Entry): JsonObject {
  const { description, inputSchema } = item;
  const properties = isObject(inputSchema) ? inputSchema.properties : undefined;
  const names = isObject(properties) ? Object.keys(properties) : [];
  return {
    name,
    ...(typeof description === 'string' && {
      description: cleanForeignText(description, MAX_SHORT_DESCRIPTION),
    }),
    arguments: names.slice(0, MAX_SHORT_ARGUMENTS).map((one) => shorten(one, MAX_SHORT_NAME)),
  };
}

// §25.3: what there is to be found, for the description of search_tools: the servers, and what they are for.

/** Characters of all. */
const MAX_TEXT = 2_000;
/** Tools of each that are named; fewer where there are many servers. */
const EXAMPLES = [5, 3, 1, 0] as const;
/** Characters of a tool's name: of a longer one nothing is said. */
const MAX_EXAMPLE = 40;

/**
 * Uses names of tools alone, which the lock, the rules and the guards have let through for this caller: a server's own words about
 * itself would stand here as the gateway's.
 */
export function describeServers(entries: readonly Entry[]): string {
  const names = new Map<string, string[]>();
  for (const { server, ownName } of entries) {
    const known = names.get(server);
    if (known === undefined) names.set(server, [ownName]);
    else known.push(ownName);
  }
  const servers = [...names].sort(([one], [other]) => (one < other ? -1 : 1));
  for (const count of EXAMPLES) {
    const text = describe(servers, count);
    if (text.length <= MAX_TEXT) return text;
  }
  return describe(servers.slice(0, MAX_NAMED), 0, servers.length - MAX_NAMED);
}

/** Names of servers that stand in `MAX_TEXT` characters, each with a number. */
const MAX_NAMED = 30;

type ServerTools = readonly (readonly [string, readonly string[]])[];

function describe(servers: ServerTools, count: number, left = 0): string {
  const parts = servers.map(([server, tools]) => {
    const examples = spread(
      tools.filter((tool) => tool.length <= MAX_EXAMPLE),
      count,
    );
    const more = examples.length < tools.length ? ', …' : '';
    const told = examples.length === 0 ? '' : `: ${examples.join(', ')}${more}`;
    return `${server === BUILT_IN ? 'the gateway' : server} (${countNoun(tools.length, 'tool')}${told})`;
  });
  return `There are tools of ${parts.join('; ')}${left > 0 ? `; and ${countNoun(left, 'other server')}` : ''}.`;
}

/** So many of them from all over the list, since servers group their tools by what they deal with. */
const spread = (tools: readonly string[], count: number): readonly string[] =>
  tools.length <= count
    ? tools
    : Array.from(
        { length: count },
        (_, at) => tools[Math.floor((at * tools.length) / count)] ?? '',
      );

// §25.2: about how many tokens a model reads of a tool: its name, its description and the schema of its arguments.

/** Keyed by the item itself: lists keep theirs for as long as they are the same. */
type CountTokens = (tool: JsonObject) => number;

let counting: CountTokens | undefined;

/** Loaded where somebody asks. Models differ by some percent, and the estimate does no more (docs/decisions/0020-tokens.md). */
export async function loadCountTokens(): Promise<CountTokens> {
  const { estimateTokenCount } = await import('tokenx');
  // As clients pass it on; output schemas, annotations and icons they keep.
  counting ??= computeOnce(({ name, description, inputSchema }: JsonObject) =>
    estimateTokenCount(JSON.stringify({ name, description, inputSchema })),
  );
  return counting;
}
