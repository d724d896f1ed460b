// Spec §4.4: the methods that both eras share, in one table.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isObject } from '../../../core/json.ts';
import type {
  Arguments,
  Catalog,
  CompletionRequest,
  Cursor,
  Offers,
  Page,
} from '../catalog/catalog.ts';
import type { CacheHint } from '../catalog/content.ts';
import type { CallTool } from './call-tool.ts';
import type { CallContext } from './context.ts';

export interface Method {
  /** The parameter that says what the call is about; repeated in `Mcp-Name` (2026-07-28). */
  readonly subject?: 'name' | 'uri';
  /** @throws GatewayError for what the caller did wrong. */
  run(params: Arguments, context: CallContext): Promise<Outcome>;
}

/** Those that are about one tool, prompt or resource (MCP 2026-07-28 "Supported Requests"). */
export const mayAsk = ({ subject }: Method): boolean => subject !== undefined;

export interface Outcome {
  readonly result: Readonly<Record<string, unknown>>;
  /** Only of what may be kept at all; sent in the stateless era. */
  readonly cache?: CacheHint;
}

export type Methods = ReadonlyMap<string, Method>;

/** Those of what the catalogue offers: others do not exist. `callTool` in place of its own. */
export function createMethods(catalog: Catalog, callTool: CallTool): Methods {
  const { offers } = catalog;
  return new Map([
    ...given(offers.tools, toolMethods(catalog, callTool)),
    ...given(offers.prompts, promptMethods(catalog)),
    ...given(offers.resources, resourceMethods(catalog)),
    ...given(offers.completions, completionMethods(catalog)),
  ]);
}

export function noSuchMethod(key: 'method_not_found' | 'unknown_method', method: string): never {
  const hint = STREAMED.has(method)
    ? ' here: it needs MCP_STREAMS=true, and resources that tell when they change'
    : '';
  return fail(key, {
    details: `There is no method ${JSON.stringify(method.slice(0, 100))}${hint}`,
  });
}

const STREAMED = new Set(['resources/subscribe', 'resources/unsubscribe', 'subscriptions/listen']);

/** `capabilities` of `initialize` and `server/discover`: nothing that is not there. */
export const capabilitiesOf = ({ offers }: Catalog, subscriptions: boolean) => ({
  ...(offers.tools && { tools: {} }),
  ...(offers.prompts && { prompts: {} }),
  ...(offers.resources && {
    resources: offers.subscriptions && subscriptions ? { subscribe: true } : {},
  }),
  ...(offers.completions && { completions: {} }),
  ...(offers.logging && { logging: {} }),
});

// None of them awaits the catalogue: that would keep the params until it has answered (decisions 10).
type Table = Readonly<Record<string, Method>>;

const given = (offered: Offers[keyof Offers], table: Table): [string, Method][] =>
  offered ? Object.entries(table) : [];

const toolMethods = (catalog: Catalog, callTool: CallTool): Table => ({
  'tools/list': {
    run: async (params, context) =>
      catalog.listTools(cursorOf(params), context).then(listed('tools')),
  },
  'tools/call': {
    subject: 'name',
    run: async (params, context) =>
      callTool(text(params, 'name'), argumentsOf(params), context).then(outcome),
  },
});

const promptMethods = (catalog: Catalog): Table => ({
  'prompts/list': {
    run: async (params, context) =>
      catalog.listPrompts(cursorOf(params), context).then(listed('prompts')),
  },
  'prompts/get': {
    subject: 'name',
    run: async (params, context) =>
      catalog.getPrompt(text(params, 'name'), argumentsOf(params), context).then(outcome),
  },
});

const resourceMethods = (catalog: Catalog): Table => ({
  'resources/list': {
    run: async (params, context) =>
      catalog.listResources(cursorOf(params), context).then(listed('resources')),
  },
  'resources/templates/list': {
    run: async (params, context) =>
      catalog.listResourceTemplates(cursorOf(params), context).then(listed('resourceTemplates')),
  },
  'resources/read': {
    subject: 'uri',
    run: async (params, context) =>
      catalog
        .readResource(text(params, 'uri'), context)
        .then(({ cache = NOT_KEPT, ...result }) => ({ result, cache })),
  },
});

const completionMethods = (catalog: Catalog): Table => ({
  'completion/complete': {
    run: async (params, context) =>
      catalog
        .complete(completionOf(params), context)
        .then((completion) => ({ result: { completion } })),
  },
});

const NOT_KEPT: CacheHint = { ttlMs: 0, scope: 'private' };

const outcome = (result: object): Outcome => ({ result: { ...result } });

const listed =
  (member: string) =>
  ({ items, nextCursor, cache = NOT_KEPT }: Page<unknown>): Outcome => ({
    result: { [member]: items, ...(nextCursor !== undefined && { nextCursor }) },
    cache,
  });

const invalid = (details: string): never => fail('invalid_params', { details });

export function text(params: Arguments, name: string): string {
  const value = params[name];
  return typeof value === 'string' ? value : invalid(`params.${name} must be a string`);
}

/** Decisions 0.1: no arguments count as none given. */
function argumentsOf({ arguments: given = {} }: Arguments): Arguments {
  return isObject(given) ? given : invalid('params.arguments must be an object');
}

function cursorOf({ cursor }: Arguments): Cursor {
  return cursor === undefined || typeof cursor === 'string'
    ? cursor
    : invalid('params.cursor must be a string');
}

/** MCP, completion/complete. */
function completionOf({ ref, argument, context }: Arguments): CompletionRequest {
  if (!isObject(ref) || !isObject(argument)) {
    return invalid('params.ref and params.argument must be objects');
  }
  return {
    ref: referenceOf(ref),
    argument: {
      name:
        typeof argument.name === 'string'
          ? argument.name
          : invalid('params.argument.name must be a string'),
      value:
        typeof argument.value === 'string'
          ? argument.value
          : invalid('params.argument.value must be a string'),
    },
    known: knownOf(context),
  };
}

function referenceOf({ type, name, uri }: Arguments): CompletionRequest['ref'] {
  if (type === 'ref/prompt' && typeof name === 'string') return { type, name };
  if (type === 'ref/resource' && typeof uri === 'string') return { type, uri };
  return invalid('params.ref must be a ref/prompt with a name or a ref/resource with a uri');
}

const knownOf = (context: unknown): Readonly<Record<string, string>> =>
  isObject(context) && isObject(context.arguments)
    ? Object.fromEntries(
        Object.entries(context.arguments).filter(
          (entry): entry is [string, string] => typeof entry[1] === 'string',
        ),
      )
    : {};
