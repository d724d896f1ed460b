// §18.2, §25.1: the views under names that say whose they are: `/mcp` with everything, and `/mcp/<view>` with a part of it.

import { LIST_KINDS } from '../mcp/protocol/list-kinds.ts';
import { isAppUri, readSharedUri } from './apps/app-tools.ts';
import { CallerLists, findIn, isCalled } from './caller-lists.ts';
import { findTemplate } from './find-template.ts';
import type { Plan, Selection, ServedPlan } from './plan.ts';
import { BUILT_IN } from './prepare-list.ts';
import { EMPTY_LIST, type ListView, type View, type Who } from './view.ts';

export function createJoinedView(served: ServedPlan): View {
  const inPlan = <Answer>(who: Who, find: (lists: CallerLists) => Promise<Answer>) =>
    served.ask((plan) => find(new CallerLists(plan, plan.whole, who)));

  return {
    ...createSelection('', served, ({ whole }) => whole),
    findServer: served.findServer,
    findAtHand: served.findAtHand,
    find: (kind, name, who) => inPlan(who, (lists) => lists.find(kind, name)),
    findListed: (uri, who) => inPlan(who, (lists) => lists.findKnownResource(uri)),
    findResource: (uri, who) => inPlan(who, (lists) => lists.findResource(uri)),
  };
}

/**
 * A part of what `/mcp` serves, under the same names. It only takes away: rules and lock hold here as there. `joined` is the view of
 * `/mcp`.
 */
export function createCuratedView(name: string, served: ServedPlan, joined: View): View {
  const select = ({ views }: Plan) => views.get(name);
  const selection = createSelection(name, served, select);
  const { list, listAtHand, includes } = selection;
  const isIncluded = (item: Parameters<Selection['includes']>[0]): boolean =>
    select(served.current)?.includes(item) === true;
  const canHave = (wanted: string): boolean =>
    served.current.naming
      .findOwners(wanted)
      .some((server) => select(served.current)?.hasServer(server) === true);

  return {
    ...selection,
    findAtHand(kind, wanted, caller) {
      const found = canHave(wanted) ? joined.findAtHand(kind, wanted, caller) : undefined;
      return found && isIncluded(found) ? found : undefined;
    },
    async find(kind, wanted, who) {
      // Servers outside of the view are asked nothing.
      if (!isCalled(kind) || !canHave(wanted)) {
        const known = (await listAtHand(kind, who)).find(({ name: one }) => one === wanted);
        return known ?? (isCalled(kind) ? undefined : findIn(await list(kind, who), wanted));
      }
      const found = await joined.find(kind, wanted, who);
      if (found === undefined) return undefined;
      const item =
        found.kind === 'absent'
          ? { kind: LIST_KINDS[kind].ruled, server: found.server.name, name: found.name }
          : found;
      return isIncluded(item) ? found : undefined;
    },
    async findListed(uri, who) {
      const listed = await joined.findListed(uri, who);
      return listed && includes(listed) ? listed : undefined;
    },
    /** The resource as its owner at /mcp has it; found here by its own URI, or by a template of the view. */
    async findResource(uri, who) {
      const atHand = await joined.findListed(uri, who);
      // Skills need the list of resources: both are loaded then.
      if (atHand === undefined && !isAppUri(uri)) await list('skills', who);
      const listed = atHand ?? (await joined.findListed(uri, who));
      if (listed) return includes(listed) ? listed : undefined;
      return served.ask(async (plan) => {
        const planned = select(plan);
        if (planned === undefined) return undefined;
        const { server = BUILT_IN } = readSharedUri(uri) ?? {};
        if (plan.servers.has(server) && !planned.hasServer(server)) return undefined;
        const found = await new CallerLists(plan, planned, who).findUnlisted(uri);
        if (found === undefined || !planned.hasServer(found.server)) return undefined;
        if (includes(found)) return found;
        const { entries } = await list('templates', who);
        return findTemplate(entries, uri)?.server === found.server ? found : undefined;
      });
    },
  };
}

/** The lists of what `select` takes, and all that follows from that alone. */
function createSelection(
  path: string,
  served: ServedPlan,
  select: (plan: Plan) => Selection | undefined,
): Omit<View, 'findAtHand' | 'find' | 'findListed' | 'findResource'> {
  const hasServer = (server: string): boolean => select(served.current)?.hasServer(server) === true;

  return {
    path,
    isCurated: path !== '',
    shown: 'joined',
    list: (kind, who) =>
      served.ask(async (plan) => {
        const selection = select(plan);
        if (selection === undefined) return GONE;
        const list = await new CallerLists(plan, selection, who).join(kind);
        return { ...list, ...selection.curate(list) };
      }),
    listAtHand: async (kind, who) => {
      const { entries } = await served.ask(async (plan) => {
        const selection = select(plan);
        if (selection === undefined) return GONE;
        return selection.curate(await new CallerLists(plan, selection, who).joinKnown(kind));
      });
      return entries;
    },
    includes: ({ server, uri }) =>
      select(served.current)?.includes({ kind: 'resource', server, name: uri }) === true,
    findServer: (server) => (hasServer(server) ? served.findServer(server) : undefined),
    listServers: () =>
      [...served.current.servers.values()]
        .filter(({ config }) => hasServer(config.name))
        .map(({ server }) => server),
    hasBuiltIn: () => hasServer(BUILT_IN),
    findConfig: () => select(served.current)?.config,
  };
}

/** The view was removed from the configuration since it was found. */
const GONE: ListView = { ...EMPTY_LIST, ttlMs: 0 };
