// §25.3: the three tools of a view that is searched, as clients see them, and what is wrong with their arguments.

import type { ObjectSchema, ToolAnnotations } from '../../mcp/catalog/content.ts';
import { compileSchema, type SchemaCheck } from '../../mcp/catalog/define/compile-schema.ts';
import type { JsonObject } from '../../platform/json.ts';
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

const READS: ToolAnnotations = {
  readOnlyHint: true,
  idempotentHint: true,
  openWorldHint: false,
};

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
