// §18.2: what a caller asks for by its name: found, or unknown in words that help.
import { fail } from '../../../core/errors/gateway-error.ts';
import { failUnknownItem } from '../../../protocol/fail-unknown-item.ts';
import type { ListKind } from '../../../protocol/list-kinds.ts';
import type { CallerContext } from '../../mcp/catalog/served-catalog.ts';
import type { ResolveResource } from './resolve-resource.ts';
import type { Server } from './server.ts';
import { createSuggestName, type SuggestNameDeps } from './suggest-name.ts';
import type { Found, FoundResource, Who } from './view.ts';

export interface FindItem {
  /** @throws GatewayError `invalid_params` where nobody has it. */
  find(kind: ListKind, name: string, who: Who, context: CallerContext): Found | Promise<Found>;
  /** @throws GatewayError `invalid_params` where nobody has it. */
  findResource(uri: string, who: Who, context: CallerContext): Promise<FoundResource>;
  /** `facts` are for the log. @throws GatewayError `invalid_params` always. */
  failAsUnknown(
    kind: ListKind,
    name: string,
    who: Who,
    context: CallerContext,
    facts?: Readonly<Record<string, unknown>>,
  ): Promise<never>;
}

export interface FindItemDeps extends SuggestNameDeps {
  readonly resolveResource: ResolveResource;
}

export function createFindItem(deps: FindItemDeps): FindItem {
  const { view, resolveResource } = deps;
  const suggestName = createSuggestName(deps);

  const failAsUnknown: FindItem['failAsUnknown'] = async (kind, name, who, context, facts) => {
    const nearest = await suggestName(kind, name, who, context);
    return failUnknownItem(kind, name, { nearest, ...(facts && { facts }) });
  };

  return {
    find(kind, name, who, context) {
      const finding = view.find(kind, name, who, context);
      if (finding === undefined) return failAsUnknown(kind, name, who, context);
      if (!(finding instanceof Promise)) return finding;
      return finding.then((found) => found ?? failAsUnknown(kind, name, who, context));
    },
    async findResource(uri, who, context) {
      const found = await resolveResource(uri, who, context);
      return found ?? failUnknownItem('resources', uri);
    },
    failAsUnknown,
  };
}

/** No result: whether there is such a tool nobody knows, and series of metrics are named after tools. */
export function failAbsent({ name, lists }: Server, who: Who): never {
  const problem = lists.peekProblem(who.upstream);
  const reason = problem === undefined ? '' : ` The reason: ${problem}.`;
  const message = `${name} is not available now; try again in a moment.${reason}`;
  return fail('upstream_error', {
    jsonRpc: { code: -32603, message },
    facts: { server: name },
  });
}
