// The kinds of things that the gateway has: what one is asked for, and how it is used.
import { isObject, type JsonObject, readText } from './json.ts';
import type { McpRequest } from './mcp-client.ts';
import type { Inventory } from './state.ts';

export type KindName = keyof Inventory;

export interface Kind {
  readonly name: KindName;
  readonly title: string;
  /** On the button. */
  readonly verb: string;
  /** JSON Schema of what the user enters. */
  getSchema(item: JsonObject): unknown;
  createRequest(item: JsonObject, input: JsonObject): McpRequest;
}

export const KINDS: readonly Kind[] = [
  {
    name: 'tools',
    title: 'Tools',
    verb: 'Call the tool',
    getSchema: ({ inputSchema }) => inputSchema,
    createRequest: ({ name, inputSchema }, input) => ({
      method: 'tools/call',
      params: { name, arguments: input },
      title: `Call ${name}`,
      inputSchema,
    }),
  },
  {
    name: 'prompts',
    title: 'Prompts',
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
    verb: 'Read the resource',
    getSchema: () => ({ type: 'object', properties: {} }),
    createRequest: ({ uri }) => createReadRequest(String(uri)),
  },
  {
    name: 'templates',
    title: 'Templates',
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

function createVariableSchema(template: string): JsonObject {
  const names = [...template.matchAll(VARIABLE)].flatMap(([, , list = '']) => listNames(list));
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
    required: names,
  };
}

/** RFC 6570 for texts: what its operators put before, between and around the values. */
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
    const parts = listNames(list).map((name) => {
      const value = encode(readText(values, name) ?? '');
      return isNamed ? `${name}=${value}` : value;
    });
    return first + parts.join(separator);
  });
