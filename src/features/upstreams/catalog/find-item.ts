// §18.2, §18.5: what a caller asks for: found, and allowed.
import { fail } from '../../../core/errors/gateway-error.ts';
import type { JsonObject } from '../../../core/json.ts';
import type { Context } from '../../mcp/catalog/catalog.ts';
import { type Access, failUnknown, toUsedResource } from './access.ts';
import type { Entry } from './entry.ts';
import type { ListKind } from './list-kinds.ts';
import type { ResolveResource } from './resolve-resource.ts';
import type { Server } from './server.ts';
import type { Found, FoundResource, View, Who } from './view.ts';

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

export function createFindItem(
  view: View,
  access: Access,
  resolveResource: ResolveResource,
): FindItem {
  return {
    findEntry(kind, name, who, context, args) {
      const finding = view.find(kind, name, who, context);
      const check = (found: Found | undefined) => checkEntry(found, kind, name, who, args);
      return finding instanceof Promise ? finding.then(check) : check(finding);
    },
    async findResource(uri, who, context) {
      const found = await resolveResource(uri, who, context);
      if (found === undefined) return failUnknown('resources', uri);
      access.checkUse('resources', toUsedResource(uri, found), who);
      return found;
    },
  };

  function checkEntry(
    found: Found | undefined,
    kind: ListKind,
    name: string,
    who: Who,
    args: JsonObject | undefined,
  ): Entry {
    if (found === undefined) return failUnknown(kind, name);
    if (found.kind === 'entry') {
      const { entry } = found;
      const { server, annotations } = entry;
      access.checkUse(kind, { asked: name, name: entry.name, server, annotations }, who, args);
      return entry;
    }
    const server = found.server.name;
    access.checkUse(kind, { asked: name, name: found.name, server, annotations: {} }, who, args);
    return failAbsent(found.server, who);
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
