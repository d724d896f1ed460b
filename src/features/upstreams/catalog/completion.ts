// MCP "Completion": of whose prompt or template it is.
import { fail, GatewayError } from '../../../core/errors/gateway-error.ts';
import { isObject, isStringArray } from '../../../core/json.ts';
import { failUnknownItem } from '../../../protocol/fail-unknown-item.ts';
import type { Completion, CompletionRequest, RawResult } from '../../mcp/catalog/catalog.ts';
import type { OwnCatalog } from '../../mcp/catalog/own-catalog.ts';
import type { CallerContext, ServedCatalog } from '../../mcp/catalog/served-catalog.ts';
import type { PolicyItem } from '../../policy/policy.ts';
import { toItem } from './access.ts';
import { BUILT_IN, type Entry } from './entry.ts';
import { type FindItem, failAbsent } from './find-item.ts';
import { toWho } from './identify.ts';
import type { PassOn } from './pass-on.ts';
import type { Plan } from './plan.ts';
import type { View, Who } from './view.ts';

export interface CompletionDeps extends FindItem {
  readonly view: View;
  readonly passOn: PassOn;
  /** What the gateway has itself; undefined where this path does not serve it. */
  getBuiltIn(): OwnCatalog | undefined;
  getPlan(): Plan;
}

/** MCP, completion: at most 100 values per answer. */
const MAX_VALUES = 100;

export const createComplete =
  (deps: CompletionDeps): ServedCatalog['complete'] =>
  async (completion, context) => {
    const who = toWho(context);
    const { server, ref } = await findReference(deps, completion.ref, who, context);
    const builtIn = server === BUILT_IN ? deps.getBuiltIn() : undefined;
    if (builtIn) return builtIn.complete(completion, context);
    const description = await deps.view.findServer(server)?.lists.describe(who.upstream);
    if (description && !isObject(description.capabilities.completions)) return NOTHING;
    const params = {
      ref,
      argument: completion.argument,
      ...(Object.keys(completion.known).length > 0 && { context: { arguments: completion.known } }),
    };
    const request = { method: 'completion/complete', params } as const;
    return readCompletion(await deps.passOn(server, who, request, context));
  };

const NOTHING: Completion = { values: [], total: 0, hasMore: false };

/** The reference in the server's own words. A client may name a URI in place of the template that it fits. */
async function findReference(
  deps: CompletionDeps,
  ref: CompletionRequest['ref'],
  who: Who,
  context: CallerContext,
) {
  if (ref.type === 'ref/prompt') {
    const { server, ownName } = await findUsable(deps, 'prompts', ref.name, who, context);
    return { server, ref: { type: ref.type, name: ownName } };
  }
  if (await deps.view.find('templates', ref.uri, who, context)) {
    const { server, ownName } = await findUsable(deps, 'templates', ref.uri, who, context);
    return { server, ref: { type: ref.type, uri: ownName } };
  }
  const { server, ownUri } = await findUsableResource(deps, ref.uri, who, context);
  return { server, ref: { type: ref.type, uri: ownUri } };
}

/** @throws GatewayError for what the caller does not see, or may not use. */
async function findUsable(
  deps: CompletionDeps,
  kind: 'prompts' | 'templates',
  name: string,
  who: Who,
  context: CallerContext,
): Promise<Entry> {
  const found = await deps.find(kind, name, who, context);
  const item =
    found.kind === 'entry'
      ? found.entry
      : ({ kind: 'prompt', name: found.name, server: found.server.name, annotations: {} } as const);
  const denial = findDenial(deps, item, who);
  if (denial !== undefined) return deps.failAsUnknown(kind, name, who, context, denial);
  return found.kind === 'entry' ? found.entry : failAbsent(found.server, who);
}

/** What is unknown is told in the same words as a template that is denied: nobody finds out by them what there is. */
async function findUsableResource(
  deps: CompletionDeps,
  uri: string,
  who: Who,
  context: CallerContext,
) {
  const found = await deps.findResource(uri, who, context).catch((thrown: unknown) => {
    const isUnknown = thrown instanceof GatewayError && thrown.key === 'invalid_params';
    if (isUnknown) failUnknownItem('templates', uri);
    throw thrown;
  });
  const facts = findDenial(deps, toItem(found), who);
  return facts === undefined ? found : failUnknownItem('templates', uri, { facts });
}

/** Facts for the log; undefined where the caller may use it. */
function findDenial({ getPlan }: CompletionDeps, item: PolicyItem, who: Who) {
  const verdict = getPlan().policies.judge(item, who.policy, undefined);
  if (verdict.kind === 'allowed') return undefined;
  const { server } = item;
  if (verdict.kind === 'denied') return { deniedBy: verdict.by, server };
  const facts = { deniedBy: 'insufficient_scope', server };
  return fail('insufficient_scope', { data: { scopes: verdict.scopes }, facts });
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
