// The kinds of things that the gateway has: what one is asked for, and how it is used.
import { isObject, type JsonObject, readText } from './json.ts';
import type { McpRequest } from './mcp-client.ts';
import type { Inventory } from './state.ts';

export type KindName = keyof Inventory;

export interface Kind {
  readonly name: KindName;
  readonly title: string;
  /** One of them. */
  readonly noun: string;
  /** Whether names begin with the prefix of the server behind the gateway (§18.2). */
  readonly hasPrefixes: boolean;
  /** On the button. */
  readonly verb: string;
  /** JSON Schema of what the user enters. */
  getSchema(item: JsonObject): unknown;
  createRequest(item: JsonObject, input: JsonObject): McpRequest;
}

export const TOOLS: Kind = {
  name: 'tools',
  title: 'Tools',
  noun: 'tool',
  hasPrefixes: true,
  verb: 'Call the tool',
  getSchema: ({ inputSchema }) => inputSchema,
  createRequest: ({ name, inputSchema }, input) => ({
    method: 'tools/call',
    params: { name, arguments: input },
    title: `Call ${name}`,
    inputSchema,
  }),
};

export const KINDS: readonly Kind[] = [
  TOOLS,
  {
    name: 'prompts',
    title: 'Prompts',
    noun: 'prompt',
    hasPrefixes: true,
    verb: 'Get the prompt',
    getSchema: ({ arguments: given }) => createArgumentSchema(given),
    createRequest: ({ name }, input) => ({
      method: 'prompts/get',
      params: { name, arguments: input },
      title: `Get ${name}`,
    }),
  },
  {
    name: 'resources',
    title: 'Resources',
    noun: 'resource',
    hasPrefixes: false,
    verb: 'Read the resource',
    getSchema: () => ({ type: 'object', properties: {} }),
    createRequest: ({ uri }) => createReadRequest(String(uri)),
  },
  {
    name: 'templates',
    title: 'Templates',
    noun: 'template',
    hasPrefixes: false,
    verb: 'Read the resource',
    getSchema: ({ uriTemplate }) => createVariableSchema(String(uriTemplate)),
    createRequest: ({ uriTemplate }, input) =>
      createReadRequest(expandTemplate(String(uriTemplate), input)),
  },
];

const createReadRequest = (uri: string): McpRequest => ({
  method: 'resources/read',
  params: { uri },
  title: `Read ${uri}`,
});

/** Arguments of prompts are texts. */
function createArgumentSchema(given: unknown): JsonObject {
  const list = Array.isArray(given) ? given.filter(isObject) : [];
  return {
    type: 'object',
    properties: Object.fromEntries(
      list.map((argument) => [
        readText(argument, 'name') ?? '',
        { type: 'string', description: argument.description },
      ]),
    ),
    required: list.filter(({ required }) => required === true).map(({ name }) => name),
  };
}

const VARIABLE = /\{([+#./;?&]?)([^}]+)\}/g;

const listNames = (list: string): readonly string[] =>
  list.split(',').map((name) => name.replace(/[*]$|:\d+$/, ''));

/** Those that are a part of the address itself are required; what an operator puts behind it may be left out. */
function createVariableSchema(template: string): JsonObject {
  const variables = [...template.matchAll(VARIABLE)].flatMap(([, sign = '', list = '']) =>
    listNames(list).map((name) => ({ name, isRequired: sign === '' || sign === '+' })),
  );
  return {
    type: 'object',
    properties: Object.fromEntries(variables.map(({ name }) => [name, { type: 'string' }])),
    required: variables.filter(({ isRequired }) => isRequired).map(({ name }) => name),
  };
}

/** RFC 6570 for texts, of which some may be left out: what its operators put before, between and around the values. */
const OPERATORS: Readonly<
  Record<string, { readonly first: string; readonly separator: string; readonly isNamed?: true }>
> = {
  '': { first: '', separator: ',' },
  '+': { first: '', separator: ',' },
  '#': { first: '#', separator: ',' },
  '.': { first: '.', separator: '.' },
  '/': { first: '/', separator: '/' },
  ';': { first: ';', separator: ';', isNamed: true },
  '?': { first: '?', separator: '&', isNamed: true },
  '&': { first: '&', separator: '&', isNamed: true },
};

const expandTemplate = (template: string, values: JsonObject): string =>
  template.replace(VARIABLE, (_, sign: string, list: string) => {
    const { first, separator, isNamed } = OPERATORS[sign] ?? { first: '', separator: ',' };
    const isReserved = sign === '+' || sign === '#';
    const encode = isReserved ? encodeURI : encodeURIComponent;
    const parts = listNames(list).flatMap((name) => {
      const value = readText(values, name);
      if (value === undefined) return [];
      return isNamed ? `${name}=${encode(value)}` : encode(value);
    });
    return parts.length === 0 ? '' : first + parts.join(separator);
  });
