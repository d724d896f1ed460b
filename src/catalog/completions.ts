// MCP "Completion": the server of the prompt or template says how its arguments go on.
import { failUpstream, GatewayError } from '../errors/gateway-error.ts';
import { guardCompletion, toCompletionParams } from '../mcp/calls/guard-end.ts';
import type { GuardedItem } from '../mcp/calls/guards.ts';
import type { PolicyItem } from '../mcp/calls/policy.ts';
import type { Completion, CompletionRequest, RawResult } from '../mcp/catalog/catalog.ts';
import type { ServedCatalog, ServedCompletion } from '../mcp/catalog/served-catalog.ts';
import { failUnknownItem } from '../mcp/protocol/list-kinds.ts';
import { isObject, isStringArray, type JsonObject } from '../platform/json.ts';
import type { FindItem } from './find-item.ts';
import type { PassOn } from './pass-on.ts';
import { BUILT_IN, type Entry } from './prepare-list.ts';
import { findBuiltIn, isUnseen, type ServedPath } from './served-path.ts';
import { failAbsent, findDenial, toItem, toWho, type Who } from './view.ts';

/** MCP, completion: at most 100 values per answer. */
const MAX_VALUES = 100;

export function createComplete(
  path: ServedPath,
  items: FindItem,
  passOn: PassOn,
): ServedCatalog['complete'] {
  const { view, getPlan } = path;

  return async function complete(completion, context) {
    const who = toWho(context, context);
    const found = await findReference(completion.ref, who).catch((cause: unknown) => {
      // It is not known which guards look at it.
      if (!isUnseen(getPlan(), 'completion/result', cause)) throw cause;
      return failUpstream('The server is not available now; try again in a moment.', { cause });
    });
    const { server, ref } = found;
    return guardCompletion(getPlan().guards, found.item, completion, context, async (passed) => {
      const builtIn = server === BUILT_IN ? findBuiltIn(path) : undefined;
      if (builtIn) return builtIn.complete(passed, context);
      const description = await view.findServer(server)?.lists.describe(who.upstream, who.patience);
      if (description && !isObject(description.capabilities.completions)) return NOTHING;
      const params = { ...toCompletionParams(passed), ref };
      const request = { method: 'completion/complete', params } as const;
      return readCompletion(await passOn(server, who, request, context));
    });
  };

  /** The reference in the server's own words. A client may name a URI in place of the template that it fits. */
  async function findReference(ref: CompletionRequest['ref'], who: Who): Promise<FoundReference> {
    if (ref.type === 'ref/prompt') {
      const item = await findUsable('prompts', ref.name, who);
      return { server: item.server, ref: { type: ref.type, name: item.ownName }, item };
    }
    if (await view.find('templates', ref.uri, who)) {
      const item = await findUsable('templates', ref.uri, who);
      return { server: item.server, ref: { type: ref.type, uri: item.ownName }, item };
    }
    // Unknown items are told in the same words as a template that is denied: nobody finds out by them what there is.
    const found = await items.findResource(ref.uri, who).catch((thrown: unknown) => {
      const isUnknown = thrown instanceof GatewayError && thrown.key === 'invalid_params';
      if (isUnknown) failUnknownItem('templates', ref.uri);
      throw thrown;
    });
    const facts = findDenial(getPlan().policies, toItem(found), who);
    if (facts !== undefined) return failUnknownItem('templates', ref.uri, { facts });
    const { server, ownUri } = found;
    return { server, ref: { type: ref.type, uri: ownUri }, item: toItem(found) };
  }

  /** @throws GatewayError for what the caller does not see, or may not use. */
  async function findUsable(kind: 'prompts' | 'templates', name: string, who: Who): Promise<Entry> {
    const found = await items.find(kind, name, who);
    const item: PolicyItem =
      found.kind === 'absent'
        ? { kind: 'prompt', name: found.name, server: found.server.name, annotations: {} }
        : found;
    const denial = findDenial(getPlan().policies, item, who);
    if (denial !== undefined) return items.failAsUnknown(kind, name, who, denial);
    return found.kind === 'absent' ? failAbsent(found.server, who) : found;
  }
}

const NOTHING: Completion = { values: [], total: 0, hasMore: false };

interface FoundReference {
  readonly server: string;
  /** In the server's own words. */
  readonly ref: JsonObject;
  /** As guards see it. */
  readonly item: GuardedItem;
}

function readCompletion({ completion, _meta: meta }: RawResult): ServedCompletion {
  if (!isObject(completion) || !isStringArray(completion.values)) return NOTHING;
  const { values, total, hasMore } = completion;
  return {
    values: values.slice(0, MAX_VALUES),
    ...(Number.isInteger(total) && { total: Number(total) }),
    ...(typeof hasMore === 'boolean' && { hasMore }),
    ...(isObject(meta) && { meta }),
  };
}
