// §4.4: methods of both eras, except those about one item (run-call.ts).
import { fail, failParams, GatewayError } from '../../errors/gateway-error.ts';
import { findWritten, isObject, type JsonObject, noteWritten } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import type {
  Arguments,
  CatalogDescription,
  CompletionRequest,
  Cursor,
  Page,
} from '../catalog/catalog.ts';
import type { CacheHint } from '../catalog/content.ts';
import { readString } from '../protocol/json-rpc.ts';
import { LIST_KINDS, type ListKind } from '../protocol/list-kinds.ts';
import { METHODS, METHODS_BY_NAME } from '../protocol/methods.ts';
import { type Era, SKILLS, TASKS } from '../protocol/revisions.ts';
import type { Call, MethodResult } from './call.ts';
import type { CallContext } from './context.ts';

/** @throws GatewayError for mistakes of the caller. */
export type RunMethod = (
  params: JsonObject,
  context: CallContext,
  call: Call,
) => Promise<MethodResult>;

function runList(kind: ListKind): RunMethod {
  const { member } = LIST_KINDS[kind];
  const toResult = ({ items, nextCursor, cache = NOT_CACHED, bytes }: Page<unknown>) => {
    const result = { [member]: items, ...(nextCursor !== undefined && { nextCursor }) };
    if (bytes !== undefined) noteWritten(result, [bytes]);
    return { result, cache };
  };
  return (params, context, { catalog }) =>
    catalog.list(kind, readCursor(params), context).then(toResult);
}

/** None awaits the catalogue: that would keep the params in memory until it has answered. */
export const METHOD_RUNS: Readonly<Record<string, RunMethod>> = {
  ...Object.fromEntries(
    METHODS.flatMap(({ name, list }) => (list === undefined ? [] : [[name, runList(list)]])),
  ),
  'completion/complete': (params, context, { catalog }) =>
    catalog.complete(readCompletionRequest(params), context).then(({ meta, ...completion }) => ({
      result: { completion, ...(meta !== undefined && { _meta: meta }) },
    })),
  'skills/list': runOfSkills('skills', runList('skills')),
  'skills/get': runOfSkills('skills', (params, context, { catalog }) =>
    catalog
      .getSkill(readString(params, 'uri'), context)
      .then(({ skill, cache = NOT_CACHED }) => ({ result: { skill }, cache })),
  ),
  // SEP-2640: the current state, never cached.
  'resources/directory/read': runOfSkills('directories', (params, context, { catalog }) =>
    catalog
      .readDirectory(readString(params, 'uri'), readCursor(params), context)
      .then(({ items, nextCursor }) => ({
        result: { resources: items, ...(nextCursor !== undefined && { nextCursor }) },
      })),
  ),
};

/** Servers may add skills at any time: while there are none, the method does not exist. */
function runOfSkills(offer: 'skills' | 'directories', run: RunMethod): RunMethod {
  async function requireOffer(context: CallContext, { catalog, record }: Call) {
    const { offers } = await catalog.describe(context);
    if (offers[offer] === true) return;
    const key = record.era === 'session' ? 'method_not_found' : 'unknown_method';
    failUnknownMethod(key, record.methodName ?? '');
  }

  return async function runWhereOffered(params, context, call) {
    try {
      const done = await run(params, context, call);
      const skills = 'skills' in done.result ? done.result.skills : undefined;
      if (Array.isArray(skills) && skills.length === 0) await requireOffer(context, call);
      return done;
    } catch (thrown) {
      const isUnknown = thrown instanceof GatewayError && thrown.key === 'invalid_params';
      if (isUnknown) await requireOffer(context, call);
      throw thrown;
    }
  };
}

export function failUnknownMethod(
  key: 'method_not_found' | 'unknown_method',
  method: string,
): never {
  const hint =
    METHODS_BY_NAME.get(method)?.needsStreams === true
      ? '; it needs MCP_STREAMS=true, and resources that announce their changes'
      : '';
  return fail(key, { details: `Unknown method ${quote(method, 100)}${hint}` });
}

/** `needs` is the start of a sentence, up to the client that supports tasks. */
export const failWithoutTasks = (needs: string): never =>
  fail('missing_client_capability', {
    details: `${needs} that declares the extension ${TASKS}.`,
    data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
  });

/** `capabilities` of `initialize` and `server/discover`. */
export function listCapabilities({ offers }: CatalogDescription, hasStreams: boolean, era: Era) {
  const listChanged = offers.listChanges === true && hasStreams && { listChanged: true };
  const subscribe = offers.subscriptions && hasStreams && { subscribe: true };
  // SEP-2133. Sessions have no tasks: there such a call simply takes long (§29).
  const extensions = {
    ...(offers.tasks === true && era === 'stateless' && { [TASKS]: {} }),
    ...(offers.skills && { [SKILLS]: offers.directories === true ? { directoryRead: true } : {} }),
  };
  return {
    ...(offers.tools && { tools: { ...listChanged } }),
    ...(offers.prompts && { prompts: { ...listChanged } }),
    ...(offers.resources && { resources: { ...subscribe, ...listChanged } }),
    ...(offers.completions && { completions: {} }),
    ...(offers.logging && { logging: {} }),
    ...(Object.keys(extensions).length > 0 && { extensions }),
  };
}

const NOT_CACHED: CacheHint = { ttlMs: 0, scope: 'private' };

/** The result of a resource, which may carry its own cache hint. */
export function toResourceResult(read: object & { readonly cache?: CacheHint }): MethodResult {
  // The same object, whose bytes are known (platform/json.ts).
  if (read.cache === undefined) return { result: read, cache: NOT_CACHED };
  const { cache, ...result } = read;
  // The bytes are the server's, without `cache`.
  const written = findWritten(read);
  if (written !== undefined) noteWritten(result, written);
  return { result, cache };
}

function readCursor({ cursor }: Arguments): Cursor {
  return cursor === undefined || typeof cursor === 'string'
    ? cursor
    : failParams('params.cursor must be a string');
}

/** MCP, completion/complete. */
function readCompletionRequest({ ref, argument, context }: Arguments): CompletionRequest {
  if (!isObject(ref) || !isObject(argument))
    return failParams('params.ref and params.argument must be objects');
  return {
    ref: readReference(ref),
    argument: {
      name: readString(argument, 'name', 'params.argument'),
      value: readString(argument, 'value', 'params.argument'),
    },
    known: readKnownArguments(context),
  };
}

function readReference({ type, name, uri }: Arguments): CompletionRequest['ref'] {
  if (type === 'ref/prompt' && typeof name === 'string') return { type, name };
  if (type === 'ref/resource' && typeof uri === 'string') return { type, uri };
  return failParams('params.ref must be a ref/prompt with a name or a ref/resource with a uri');
}

/** Arguments that are strings; others are ignored. */
export const readKnownArguments = (context: unknown): Readonly<Record<string, string>> =>
  isObject(context) && isObject(context.arguments)
    ? Object.fromEntries(
        Object.entries(context.arguments).filter(
          (entry): entry is [string, string] => typeof entry[1] === 'string',
        ),
      )
    : {};
