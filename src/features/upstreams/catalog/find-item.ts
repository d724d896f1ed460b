// §18.2, §18.5: what a caller asks for: found, and allowed.
import { fail } from '../../../core/errors/gateway-error.ts';
import type { JsonObject } from '../../../core/json.ts';
import type { Context } from '../../mcp/catalog/catalog.ts';
import { failUnknownItem, toUsedResource } from './access.ts';
import type { Entry } from './entry.ts';
import type { ListKind } from './list-kinds.ts';
import type { ResolveResource } from './resolve-resource.ts';
import type { Server } from './server.ts';
import { createSuggestName, type SuggestNameDeps } from './suggest-name.ts';
import type { Found, FoundResource, Who } from './view.ts';

/** @throws GatewayError for what the caller does not see, or may not use. */
export interface FindItem {
  findEntry(
    kind: ListKind,
    name: string,
    who: Who,
    context: Context,
    args?: JsonObject,
  ): Entry | Promise<Entry>;
  findResource(uri: string, who: Who, context: Context): Promise<FoundResource>;
}

export interface FindItemDeps extends SuggestNameDeps {
  readonly resolveResource: ResolveResource;
}

export function createFindItem(deps: FindItemDeps): FindItem {
  const { view, access, resolveResource } = deps;
  const suggestName = createSuggestName(deps);

  return {
    findEntry(kind, name, who, context, args) {
      const finding = view.find(kind, name, who, context);
      const check = (found: Found | undefined) => checkEntry(found, kind, name, who, context, args);
      return finding instanceof Promise ? finding.then(check) : check(finding);
    },
    async findResource(uri, who, context) {
      const found = await resolveResource(uri, who, context);
      if (found === undefined) return failUnknownItem('resources', uri);
      if (access.mayUse('resources', toUsedResource(found), who)) return found;
      return failUnknownItem('resources', uri, { deniedAt: found.server });
    },
  };

  function checkEntry(
    found: Found | undefined,
    kind: ListKind,
    name: string,
    who: Who,
    context: Context,
    args: JsonObject | undefined,
  ): Entry | Promise<never> {
    if (found === undefined) return refuse(kind, name, who, context, undefined);
    if (found.kind === 'entry') {
      const { entry } = found;
      return access.mayUse(kind, entry, who, args)
        ? entry
        : refuse(kind, name, who, context, entry.server);
    }
    const server = found.server.name;
    const item = { name: found.name, server, annotations: {} };
    return access.mayUse(kind, item, who, args)
      ? failAbsent(found.server, who)
      : refuse(kind, name, who, context, server);
  }

  async function refuse(
    kind: ListKind,
    name: string,
    who: Who,
    context: Context,
    deniedAt: string | undefined,
  ): Promise<never> {
    const nearest = await suggestName(kind, name, who, context);
    return failUnknownItem(kind, name, { nearest, ...(deniedAt !== undefined && { deniedAt }) });
  }
}

/** No result: whether there is such a tool nobody knows, and series of metrics are named after tools. */
function failAbsent({ name, lists }: Server, who: Who): never {
  const problem = lists.peekProblem(who.upstream);
  const reason = problem === undefined ? '' : ` The reason: ${problem}.`;
  const message = `${name} is not available now; try again in a moment.${reason}`;
  return fail('upstream_error', {
    jsonRpc: { code: -32603, message },
    facts: { server: name },
  });
}
