// §25.1: /mcp/<view>: some of what /mcp serves, under the same names. It only takes away: rules and lock hold here as there.
import { LIST_KINDS, type ListKind } from '../../mcp/protocol/list-kinds.ts';
import { isAppUri, readSharedUri } from '../apps/app-tools.ts';
import { createFindTemplate } from '../find-template.ts';
import type { JoinedList } from '../join-lists.ts';
import { findIn, findUnlisted, isCalled, loadPrepared, peekPrepared } from '../joined-view.ts';
import { askByCurrentPlan, type Plan, type PlannedServer } from '../plan.ts';
import { BUILT_IN, type Entry } from '../prepare-list.ts';
import { type FoundItem, type ListView, mayUseSome, type View, type Who } from '../view.ts';
import type { CuratedItem, PlannedView } from './planned-view.ts';

/** `joined` is the view of `/mcp`. */
export function createCuratedView(name: string, getPlan: () => Plan, joined: View): View {
  const findTemplate = createFindTemplate();
  const findPlanned = () => getPlan().views.get(name);
  const includes = (item: CuratedItem): boolean => findPlanned()?.includes(item) === true;
  const includesResource: View['includes'] = ({ server, uri }) =>
    includes({ kind: 'resource', server, name: uri });

  const list = (kind: ListKind, who: Who): Promise<ListView> =>
    askByCurrentPlan(getPlan, (plan) => listBy(plan, kind, who));

  async function listBy(plan: Plan, kind: ListKind, who: Who): Promise<ListView> {
    const planned = plan.views.get(name);
    if (planned === undefined) return GONE;
    const whole = await joinBy(plan, planned, kind, who);
    return { ...whole, ...planned.curate(kind, whole) };
  }

  /** Joins everything at /mcp, as far as it concerns this view. */
  async function joinBy(
    plan: Plan,
    planned: PlannedView,
    kind: ListKind,
    who: Who,
  ): Promise<ListView> {
    const resources = kind === 'skills' ? await joinBy(plan, planned, 'resources', who) : undefined;
    const servers = [...plan.servers.values()];
    const own = await listBuiltIn(plan, planned, kind, who);
    const loaded = await Promise.all(servers.map((one) => load(planned, one, kind, who)));
    const chosen = servers.filter(({ config }) => planned.hasServer(config.name));
    const parts = [own?.entries ?? NOTHING, ...loaded.map((one) => one?.entries ?? NOTHING)];
    const isPersonal = chosen.some(({ server }) => server.isPersonal);
    // If a server runs is told to nobody who may use nothing of it.
    const told = chosen.filter((one) => mayUseSome(plan, one, who));
    const ttls = told.map((one) => loaded[servers.indexOf(one)]?.ttlMs ?? SHORT_TTL_MS);
    const cache = planned.hasServer(BUILT_IN) ? own?.cache : undefined;
    return {
      ...planned.joinLists(kind, parts, resources),
      ttlMs: Math.min(
        resources?.ttlMs ?? MAX_TTL_MS,
        ...ttls,
        cache?.ttlMs ?? MAX_TTL_MS,
        MAX_TTL_MS,
      ),
      hasAllServers:
        resources?.hasAllServers !== false &&
        told.every((one) => loaded[servers.indexOf(one)] !== undefined),
      isPersonal: isPersonal || cache?.scope === 'private' || resources?.isPersonal === true,
    };
  }

  /** Others' names take those of the view's servers at /mcp: so they are known here, too, but nobody waits for them. */
  async function load(planned: PlannedView, one: PlannedServer, kind: ListKind, who: Who) {
    if (planned.hasServer(one.config.name) || mustWait(kind)) {
      const loaded = await loadPrepared(one, kind, who);
      return (
        loaded && {
          entries: loaded.prepared.entries,
          ttlMs: loaded.ttlMs,
        }
      );
    }
    if (!canTake(one, kind)) return undefined;
    void Promise.resolve(loadPrepared(one, kind, who)).catch(() => {});
    const entries = peekPrepared(one, kind, who)?.entries;
    return entries && { entries, ttlMs: MAX_TTL_MS };
  }

  /** Rules about a URI are about the server that has it at /mcp: who that is must be known before they are asked. */
  const mustWait = (kind: ListKind): boolean =>
    LIST_KINDS[kind].ruled === 'resource' && getPlan().policies.dependOnCaller;

  /** No server takes the name of another if every server has its prefix. */
  const canTake = ({ config }: PlannedServer, kind: ListKind): boolean =>
    LIST_KINDS[kind].ruled === 'resource' || config.prefix === '';

  async function listBuiltIn(
    { builtIn }: Plan,
    planned: PlannedView,
    kind: ListKind,
    { context }: Who,
  ) {
    if (context === undefined) return builtIn?.peek(kind);
    const listing = builtIn?.list(kind, context);
    // A failure of the gateway's own is no failure of a view without it.
    return planned.hasServer(BUILT_IN) ? listing : listing?.catch(() => builtIn?.peek(kind));
  }

  /** Lists what servers have said so far. */
  async function listKnown(plan: Plan, kind: ListKind, who: Who): Promise<JoinedList> {
    const planned = plan.views.get(name);
    if (planned === undefined) return GONE;
    return planned.curate(kind, await joinKnown(plan, planned, kind, who));
  }

  async function joinKnown(
    plan: Plan,
    planned: PlannedView,
    kind: ListKind,
    who: Who,
  ): Promise<JoinedList> {
    const resources =
      kind === 'skills' ? await joinKnown(plan, planned, 'resources', who) : undefined;
    const own = await listBuiltIn(plan, planned, kind, who);
    const parts = [...plan.servers.values()].map((one) => {
      const isAsked = planned.hasServer(one.config.name) || mustWait(kind) || canTake(one, kind);
      return (isAsked ? peekPrepared(one, kind, who)?.entries : undefined) ?? NOTHING;
    });
    return planned.joinLists(kind, [own?.entries ?? NOTHING, ...parts], resources);
  }

  /** Nearly always it is known at /mcp who has it: then nothing is waited for. */
  function find(kind: ListKind, wanted: string, who: Who) {
    if (!isCalled(kind)) return findInList(kind, wanted, who);
    const { naming } = getPlan();
    const owners = naming.findOwners(wanted);
    // Nothing is asked of a server that is not of the view.
    if (!owners.some((owner) => findPlanned()?.hasServer(owner)))
      return findKnown(kind, wanted, who);
    const found = joined.find(kind, wanted, who);
    return found instanceof Promise ? found.then((one) => admit(kind, one)) : admit(kind, found);
  }

  function admit(kind: ListKind, found: FoundItem | undefined): FoundItem | undefined {
    if (found === undefined) return undefined;
    const item =
      found.kind === 'entry'
        ? found.entry
        : { kind: LIST_KINDS[kind].ruled, server: found.server.name, name: found.name };
    return includes(item) ? found : undefined;
  }

  async function findKnown(
    kind: ListKind,
    wanted: string,
    who: Who,
  ): Promise<FoundItem | undefined> {
    const entry = findIn(await listKnown(getPlan(), kind, who), wanted);
    return entry && { kind: 'entry', entry };
  }

  async function findInList(
    kind: ListKind,
    wanted: string,
    who: Who,
  ): Promise<FoundItem | undefined> {
    const known = await findKnown(kind, wanted, who);
    if (known) return known;
    const entry = findIn(await list(kind, who), wanted);
    return entry && { kind: 'entry', entry };
  }

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
    return askByCurrentPlan(getPlan, (plan) => findUnlistedBy(plan, uri, who));
  };

  async function findUnlistedBy(plan: Plan, uri: string, who: Who) {
    const planned = plan.views.get(name);
    if (planned === undefined) return undefined;
    const { server = BUILT_IN } = readSharedUri(uri) ?? {};
    if (plan.servers.has(server) && !planned.hasServer(server)) return undefined;
    const found = await findUnlisted([...plan.servers.values()], uri, who, {
      findTemplate,
      listTemplates: async () => (await joinBy(plan, planned, 'templates', who)).entries,
      skills: (await joinBy(plan, planned, 'skills', who)).entries,
    });
    if (found === undefined || !planned.hasServer(found.server)) return undefined;
    if (includesResource(found)) return found;
    const { entries } = await list('templates', who);
    return findTemplate(entries, uri)?.server === found.server ? found : undefined;
  }

  return {
    path: name,
    isCurated: true,
    list,
    listAtHand: async (kind, who) => (await listKnown(getPlan(), kind, who)).entries,
    find,
    findListed,
    findResource,
    includes: includesResource,
    findServer: (wanted) =>
      findPlanned()?.hasServer(wanted) ? getPlan().servers.get(wanted)?.server : undefined,
    listServers: () =>
      [...getPlan().servers.values()]
        .filter(({ config }) => findPlanned()?.hasServer(config.name))
        .map(({ server }) => server),
    hasBuiltIn: () => findPlanned()?.hasServer(BUILT_IN) === true,
    getTitle: () => findPlanned()?.config.title,
    getInstructions: () => findPlanned()?.config.instructions,
    shown: 'joined',
  };
}

const NOTHING: readonly Entry[] = [];
/** The configuration has changed since it was found. */
const GONE: ListView = {
  entries: NOTHING,
  positions: new Map(),
  ttlMs: 0,
  isPersonal: false,
  hasAllServers: true,
};
/** While a server has not said what it has. */
const SHORT_TTL_MS = 1_000;
const MAX_TTL_MS = 60_000;
