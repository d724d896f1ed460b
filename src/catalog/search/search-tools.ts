// §25.3: defines the three search tools of a view, and validates their arguments.

import type { ObjectSchema, ToolAnnotations } from '../../mcp/catalog/content.ts';
import { compileSchema, type SchemaCheck } from '../../mcp/catalog/define/compile-schema.ts';
import { computeOnce } from '../../platform/bounded-map.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { countNoun, shorten } from '../../platform/text.ts';
import { cleanForeignText } from '../clean-item.ts';
import { BUILT_IN, type Entry, showNumbers } from '../prepare-list.ts';
import { MAX_QUERY } from './rank.ts';

export const SEARCH = 'search_tools';
export const DESCRIBE = 'describe_tools';
export const CALL = 'call_tool';

export type SearchTool = typeof SEARCH | typeof DESCRIBE | typeof CALL;

/** The number of tools that a search returns by default. */
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
            'The task in a few English words, with the name of the server if it is known: "github merge pull request".',
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
          items: toolName('Name of a tool, as returned by search_tools.'),
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
        name: toolName('Name of the tool, as returned by search_tools.'),
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

/** `servers` describes the tools that can be found. */
export const listSearchTools = (servers: string): readonly JsonObject[] => [
  write(
    SEARCH,
    `Finds tools by what they do. Most tools are not listed here: before you say that something cannot be done, search for it. Answers with the best ones and how they are called; then call them with ${CALL}. ${servers}`,
  ),
  write(
    DESCRIBE,
    `Returns the full descriptions and input schemas of tools that ${SEARCH} has found, where it left them out.`,
  ),
  write(
    CALL,
    `Calls a tool that ${SEARCH} has found, by its name and with the arguments that its inputSchema requires. Returns the tool's result.`,
  ),
];

const write = (name: SearchTool, description: string): JsonObject => ({
  name,
  description,
  ...DEFINITIONS[name],
});

const checks = new Map<SearchTool, SchemaCheck>();

/** Undefined if the arguments are valid. Schemas are compiled on demand: most gateways have no such view. */
export function findArgumentProblem(tool: SearchTool, args: JsonObject): string | undefined {
  const { inputSchema } = DEFINITIONS[tool];
  const check =
    checks.get(tool) ?? compileSchema(`Tool ${tool}: inputSchema`, 'arguments', inputSchema);
  checks.set(tool, check);
  return check.fits(args) ? undefined : check.describeProblem(args);
}

// §25.3: renders found tools for the model: in full as far as they fit, otherwise with advice on how to get the rest.

/** Maximum tokens for names, descriptions and schemas in one result. */
const MAX_TOKENS = 4_000;

/** Maximum length of the description of a tool that is shown without its schema, in characters. */
const MAX_SHORT_DESCRIPTION = 300;
const MAX_SHORT_ARGUMENTS = 20;
const MAX_SHORT_NAME = 64;

/**
 * A tool that does not fit does not exclude smaller tools after it. In search results (`found`), it is shown in a short form. In
 * results by name (`named`), it is left out, but the first tool is always shown in full: without its schema it could not be called.
 */
export async function showTools(entries: readonly Entry[], reason: 'found' | 'named') {
  const countTokens = await loadCountTokens();
  // Names of tools that are not shown in full.
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

/** The note for the model about tools that were left out. */
export const explainLeftOut = (names: readonly string[]): string =>
  `Left out because of their length: call ${DESCRIBE} for ${names.join(', ')}.`;

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

// §25.3: describes the tools that can be found, for the description of search_tools: the servers, and examples of their tools.

/** Maximum characters in total. */
const MAX_TEXT = 2_000;
/** Number of tools named per server: fewer if there are many servers. */
const EXAMPLES = [5, 3, 1, 0] as const;
/** Tools with longer names are not used as examples. */
const MAX_EXAMPLE = 40;

/**
 * Names only tools that passed the lock, the rules and the guards for this caller: a server's description of itself would appear
 * as the gateway's own words.
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

/** The number of server names that fit into `MAX_TEXT` characters, each with a count. */
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
  return `There are tools from ${parts.join('; ')}${left > 0 ? `; and ${countNoun(left, 'other server')}` : ''}.`;
}

/** Picks `count` tools spread over the list, since servers group their tools by subject. */
const spread = (tools: readonly string[], count: number): readonly string[] =>
  tools.length <= count
    ? tools
    : Array.from(
        { length: count },
        (_, at) => tools[Math.floor((at * tools.length) / count)] ?? '',
      );

// §25.2: estimates the tokens that a model reads for a tool: its name, its description and the schema of its arguments.

/** Memoized by the item object: unchanged lists keep their items. */
type CountTokens = (tool: JsonObject) => number;

let counting: CountTokens | undefined;

/** Loaded on demand. Models differ by a few percent, and the estimate is as rough (docs/decisions/0020-tokens.md). */
export async function loadCountTokens(): Promise<CountTokens> {
  const { estimateTokenCount } = await import('tokenx');
  // Counts only what clients pass to the model: output schemas, annotations and icons are not passed.
  counting ??= computeOnce(({ name, description, inputSchema }: JsonObject) =>
    estimateTokenCount(JSON.stringify({ name, description, inputSchema })),
  );
  return counting;
}
