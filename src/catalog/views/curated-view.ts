// §25.1: /mcp/<view>: some of what /mcp serves, under the same names. It only takes away: rules and lock hold here as there.

import { LIST_KINDS, type ListKind } from '../../mcp/protocol/list-kinds.ts';
import { isAppUri, readSharedUri } from '../apps/app-tools.ts';
import { findTemplate } from '../find-template.ts';
import type { JoinedList } from '../join-lists.ts';
import { findIn, findUnlisted, isCalled, joinAll, joinKnown } from '../joined-view.ts';
import type { Plan } from '../plan.ts';
import { BUILT_IN } from '../prepare-list.ts';
import {
  askByCurrentPlan,
  EMPTY_LIST,
  type FoundItem,
  type ListView,
  type View,
  type Who,
} from '../view.ts';
import type { CuratedItem } from './planned-view.ts';

/** `joined` is the view of `/mcp`. */
export function createCuratedView(name: string, getPlan: () => Plan, joined: View): View {
  const findPlanned = () => getPlan().views.get(name);
  const hasServer = (server: string): boolean => findPlanned()?.hasServer(server) === true;
  const includes = (item: CuratedItem): boolean => findPlanned()?.includes(item) === true;
  const includesResource: View['includes'] = ({ server, uri }) =>
    includes({ kind: 'resource', server, name: uri });

  const list: View['list'] = (kind, who) =>
    askByCurrentPlan(getPlan, async (plan) => {
      const planned = plan.views.get(name);
      if (planned === undefined) return GONE;
      const whole = await joinAll(plan, planned, kind, who);
      return { ...whole, ...planned.curate(whole.entries) };
    });

  const listKnown = (kind: ListKind, who: Who): Promise<JoinedList> =>
    askByCurrentPlan(getPlan, async (plan) => {
      const planned = plan.views.get(name);
      if (planned === undefined) return GONE;
      return planned.curate((await joinKnown(plan, planned, kind, who)).entries);
    });

  /** Nearly always it is known at /mcp who has it: then nothing is waited for. */
  function find(kind: ListKind, wanted: string, who: Who) {
    if (!isCalled(kind)) return findInList(kind, wanted, who);
    // Nothing is asked of a server that is not of the view.
    if (!getPlan().naming.findOwners(wanted).some(hasServer)) return findKnown(kind, wanted, who);
    const found = joined.find(kind, wanted, who);
    return found instanceof Promise ? found.then((one) => admit(kind, one)) : admit(kind, found);
  }

  function admit(kind: ListKind, found: FoundItem | undefined): FoundItem | undefined {
    if (found === undefined) return undefined;
    const item =
      found.kind === 'absent'
        ? { kind: LIST_KINDS[kind].ruled, server: found.server.name, name: found.name }
        : found;
    return includes(item) ? found : undefined;
  }

  const findKnown = async (kind: ListKind, wanted: string, who: Who) =>
    findIn(await listKnown(kind, who), wanted);

  const findInList = async (kind: ListKind, wanted: string, who: Who) =>
    (await findKnown(kind, wanted, who)) ?? findIn(await list(kind, who), wanted);

  const findListed: View['findListed'] = async (uri, who) => {
    const listed = await joined.findListed(uri, who);
    return listed && includesResource(listed) ? listed : undefined;
  };

  /** The resource as its owner at /mcp has it; found here by its own URI, or by a template that is of the view. */
  const findResource: View['findResource'] = async (uri, who) => {
    const atHand = await joined.findListed(uri, who);
    // Skills need the list of resources: both are there then.
    if (atHand === undefined && !isAppUri(uri)) await list('skills', who);
    const listed = atHand ?? (await joined.findListed(uri, who));
    if (listed) return includesResource(listed) ? listed : undefined;
    return askByCurrentPlan(getPlan, async (plan) => {
      const planned = plan.views.get(name);
      if (planned === undefined) return undefined;
      const { server = BUILT_IN } = readSharedUri(uri) ?? {};
      if (plan.servers.has(server) && !planned.hasServer(server)) return undefined;
      const found = await findUnlisted(plan, planned, uri, who);
      if (found === undefined || !planned.hasServer(found.server)) return undefined;
      if (includesResource(found)) return found;
      const { entries } = await list('templates', who);
      return findTemplate(entries, uri)?.server === found.server ? found : undefined;
    });
  };

  return {
    path: name,
    isCurated: true,
    list,
    listAtHand: async (kind, who) => (await listKnown(kind, who)).entries,
    find,
    findListed,
    findResource,
    includes: includesResource,
    findServer: (wanted) => (hasServer(wanted) ? getPlan().servers.get(wanted)?.server : undefined),
    listServers: () =>
      [...getPlan().servers.values()]
        .filter(({ config }) => hasServer(config.name))
        .map(({ server }) => server),
    hasBuiltIn: () => hasServer(BUILT_IN),
    findConfig: () => findPlanned()?.config,
    shown: 'joined',
  };
}

/** The configuration has changed since it was found. */
const GONE: ListView = { ...EMPTY_LIST, ttlMs: 0 };
