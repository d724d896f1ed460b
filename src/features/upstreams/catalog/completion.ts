// MCP "Completion": of whose prompt or template it is.
import { GatewayError } from '../../../core/errors/gateway-error.ts';
import { isObject, isStringArray } from '../../../core/json.ts';
import type {
  Catalog,
  Completion,
  CompletionRequest,
  Context,
  RawResult,
} from '../../mcp/catalog/catalog.ts';
import { failUnknownItem } from './access.ts';
import type { FindItem } from './find-item.ts';
import type { PassOn } from './pass-on.ts';
import type { View, Who } from './view.ts';

export interface CompletionDeps extends FindItem {
  readonly view: View;
  readonly passOn: PassOn;
  /** The built-in catalogue, where this is its name. */
  pickBuiltIn(server: string): Catalog | undefined;
}

/** MCP, completion: at most 100 values per answer. */
const MAX_VALUES = 100;

export async function complete(
  deps: CompletionDeps,
  completion: CompletionRequest,
  who: Who,
  context: Context,
): Promise<Completion> {
  const { server, ref } = await findReference(deps, completion.ref, who, context);
  const builtIn = deps.pickBuiltIn(server);
  if (builtIn) return builtIn.complete(completion, context);
  const description = await deps.view.findServer(server)?.lists.describe(who.upstream);
  if (description && !isObject(description.capabilities.completions)) return NOTHING;
  const params = {
    ref,
    argument: completion.argument,
    ...(Object.keys(completion.known).length > 0 && { context: { arguments: completion.known } }),
  };
  const result = await deps.passOn(server, who, { method: 'completion/complete', params }, context);
  return readCompletion(result);
}

const NOTHING: Completion = { values: [], total: 0, hasMore: false };

/** The reference in the server's own words. A client may name a URI in place of the template that it fits. */
async function findReference(
  deps: CompletionDeps,
  ref: CompletionRequest['ref'],
  who: Who,
  context: Context,
) {
  if (ref.type === 'ref/prompt') {
    const { server, ownName } = await deps.findEntry('prompts', ref.name, who, context);
    return { server, ref: { type: ref.type, name: ownName } };
  }
  if (await deps.view.find('templates', ref.uri, who, context)) {
    const { server, ownName } = await deps.findEntry('templates', ref.uri, who, context);
    return { server, ref: { type: ref.type, uri: ownName } };
  }
  const { server, ownUri } = await deps
    .findResource(ref.uri, who, context)
    .catch((thrown: unknown) => failAsTemplate(thrown, ref.uri));
  return { server, ref: { type: ref.type, uri: ownUri } };
}

/** What is unknown is told in the same words as a template that is denied: nobody finds out by them what there is. */
function failAsTemplate(thrown: unknown, uri: string): never {
  const isUnknown = thrown instanceof GatewayError && thrown.key === 'invalid_params';
  if (isUnknown) failUnknownItem('templates', uri);
  throw thrown;
}

function readCompletion({ completion }: RawResult): Completion {
  if (!isObject(completion) || !isStringArray(completion.values)) return NOTHING;
  const { values, total, hasMore } = completion;
  return {
    values: values.slice(0, MAX_VALUES),
    ...(typeof total === 'number' && { total }),
    ...(typeof hasMore === 'boolean' && { hasMore }),
  };
}
