// §4.4: the methods that both eras share, in one table.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isObject } from '../../../core/json.ts';
import { quote } from '../../../core/quote.ts';
import type {
  Arguments,
  Catalog,
  CatalogDescription,
  CompletionRequest,
  Cursor,
  Offers,
  Page,
} from '../catalog/catalog.ts';
import type { CacheHint } from '../catalog/content.ts';
import type { CallTool } from './call-tool.ts';
import type { CallContext } from './context.ts';

export interface Method {
  /** The parameter that names what the call is about; repeated in `Mcp-Name` (2026-07-28). */
  readonly nameParam?: 'name' | 'uri';
  /** @throws GatewayError for what the caller did wrong. */
  run(params: Arguments, context: CallContext): Promise<MethodResult>;
}

/** Those that are about one tool, prompt or resource (MCP 2026-07-28 "Supported Requests"). */
export const canAsk = ({ nameParam }: Method): boolean => nameParam !== undefined;

export interface MethodResult {
  readonly result: Readonly<Record<string, unknown>>;
  /** Only of what may be kept at all; sent in the stateless era. */
  readonly cache?: CacheHint;
}

export type Methods = ReadonlyMap<string, Method>;

/** Those of what the catalogue offers: others do not exist. `callTool` in place of its own. */
export function createMethods(catalog: Catalog, callTool: CallTool): Methods {
  const { offers } = catalog;
  return new Map([
    ...listOfferedEntries(offers.tools, createToolMethods(catalog, callTool)),
    ...listOfferedEntries(offers.prompts, createPromptMethods(catalog)),
    ...listOfferedEntries(offers.resources, createResourceMethods(catalog)),
    ...listOfferedEntries(offers.completions, createCompletionMethods(catalog)),
  ]);
}

export function failUnknownMethod(
  key: 'method_not_found' | 'unknown_method',
  method: string,
): never {
  const hint = STREAMED.has(method)
    ? '; it needs MCP_STREAMS=true, and resources that announce their changes'
    : '';
  return fail(key, { details: `Unknown method ${quote(method, 100)}${hint}` });
}

const STREAMED = new Set(['resources/subscribe', 'resources/unsubscribe', 'subscriptions/listen']);

/** `capabilities` of `initialize` and `server/discover`: nothing that is not there. */
export function listCapabilities({ offers }: CatalogDescription, hasStreams: boolean) {
  const listChanged = offers.listChanges === true && hasStreams && { listChanged: true };
  const subscribe = offers.subscriptions && hasStreams && { subscribe: true };
  return {
    ...(offers.tools && { tools: { ...listChanged } }),
    ...(offers.prompts && { prompts: { ...listChanged } }),
    ...(offers.resources && { resources: { ...subscribe, ...listChanged } }),
    ...(offers.completions && { completions: {} }),
    ...(offers.logging && { logging: {} }),
  };
}

// None of them awaits the catalogue: that would keep the params until it has answered.
type MethodTable = Readonly<Record<string, Method>>;

const listOfferedEntries = (
  isOffered: Offers[keyof Offers],
  table: MethodTable,
): [string, Method][] => (isOffered ? Object.entries(table) : []);

const createToolMethods = (catalog: Catalog, callTool: CallTool): MethodTable => ({
  'tools/list': {
    run: async (params, context) =>
      catalog.listTools(readCursor(params), context).then(toListResult('tools')),
  },
  'tools/call': {
    nameParam: 'name',
    run: async (params, context) =>
      callTool(readString(params, 'name'), readArguments(params), context).then(toMethodResult),
  },
});

const createPromptMethods = (catalog: Catalog): MethodTable => ({
  'prompts/list': {
    run: async (params, context) =>
      catalog.listPrompts(readCursor(params), context).then(toListResult('prompts')),
  },
  'prompts/get': {
    nameParam: 'name',
    run: async (params, context) =>
      catalog
        .getPrompt(readString(params, 'name'), readArguments(params), context)
        .then(toMethodResult),
  },
});

const createResourceMethods = (catalog: Catalog): MethodTable => ({
  'resources/list': {
    run: async (params, context) =>
      catalog.listResources(readCursor(params), context).then(toListResult('resources')),
  },
  'resources/templates/list': {
    run: async (params, context) =>
      catalog
        .listResourceTemplates(readCursor(params), context)
        .then(toListResult('resourceTemplates')),
  },
  'resources/read': {
    nameParam: 'uri',
    run: async (params, context) =>
      catalog
        .readResource(readString(params, 'uri'), context)
        .then(({ cache = NOT_CACHED, ...result }) => ({ result, cache })),
  },
});

const createCompletionMethods = (catalog: Catalog): MethodTable => ({
  'completion/complete': {
    run: async (params, context) =>
      catalog
        .complete(readCompletionRequest(params), context)
        .then((completion) => ({ result: { completion } })),
  },
});

const NOT_CACHED: CacheHint = { ttlMs: 0, scope: 'private' };

const toMethodResult = (result: object): MethodResult => ({ result: { ...result } });

const toListResult =
  (member: string) =>
  ({ items, nextCursor, cache = NOT_CACHED }: Page<unknown>): MethodResult => ({
    result: { [member]: items, ...(nextCursor !== undefined && { nextCursor }) },
    cache,
  });

const failParams = (details: string): never => fail('invalid_params', { details });

export function readString(params: Arguments, name: string): string {
  const value = params[name];
  return typeof value === 'string' ? value : failParams(`params.${name} must be a string`);
}

/** Left out, they are none. */
function readArguments({ arguments: args = {} }: Arguments): Arguments {
  return isObject(args) ? args : failParams('params.arguments must be an object');
}

function readCursor({ cursor }: Arguments): Cursor {
  return cursor === undefined || typeof cursor === 'string'
    ? cursor
    : failParams('params.cursor must be a string');
}

/** MCP, completion/complete. */
function readCompletionRequest({ ref, argument, context }: Arguments): CompletionRequest {
  if (!isObject(ref) || !isObject(argument)) {
    return failParams('params.ref and params.argument must be objects');
  }
  return {
    ref: readReference(ref),
    argument: {
      name:
        typeof argument.name === 'string'
          ? argument.name
          : failParams('params.argument.name must be a string'),
      value:
        typeof argument.value === 'string'
          ? argument.value
          : failParams('params.argument.value must be a string'),
    },
    known: readKnownArguments(context),
  };
}

function readReference({ type, name, uri }: Arguments): CompletionRequest['ref'] {
  if (type === 'ref/prompt' && typeof name === 'string') return { type, name };
  if (type === 'ref/resource' && typeof uri === 'string') return { type, uri };
  return failParams('params.ref must be a ref/prompt with a name or a ref/resource with a uri');
}

const readKnownArguments = (context: unknown): Readonly<Record<string, string>> =>
  isObject(context) && isObject(context.arguments)
    ? Object.fromEntries(
        Object.entries(context.arguments).filter(
          (entry): entry is [string, string] => typeof entry[1] === 'string',
        ),
      )
    : {};
