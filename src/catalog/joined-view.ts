// §18.2: /mcp: everything, under names that say whose they are.

import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { isAppUri, readSharedUri, toOwnUri, toSharedUri } from './apps/app-tools.ts';
import type { FetchedList } from './fetch-list.ts';
import { findTemplate } from './find-template.ts';
import type { JoinedList, JoinedPart } from './join-lists.ts';
import type { Plan, PlannedServer } from './plan.ts';
import { BUILT_IN, type Entry, type PreparedList } from './prepare-list.ts';
import { findInSkillFolder, findSkillFile } from './skills/skill-files.ts';
import {
  askByCurrentPlan,
  type FoundItem,
  type FoundResource,
  type ListView,
  mayUseSome,
  type View,
  type Who,
} from './view.ts';

export function createJoinedView(getPlan: () => Plan): View {
  const list: View['list'] = (kind, who) =>
    askByCurrentPlan(getPlan, (plan) => joinAll(plan, toWhole(plan), kind, who));

  const listAtHand = (kind: ListKind, who: Who): Promise<JoinedList> =>
    askByCurrentPlan(getPlan, (plan) => joinKnown(plan, toWhole(plan), kind, who));

  /** Nearly always the list is there, and the first server that can have the name has it: nothing is waited for. */
  function find(kind: ListKind, name: string, who: Who) {
    return (
      findAtHand(kind, name, who) ??
      askByCurrentPlan(getPlan, (plan) => findAnywhere(plan, kind, name, who))
    );
  }

  function findAtHand(kind: ListKind, name: string, who: Who): Entry | undefined {
    const plan = getPlan();
    const { builtIn, servers, naming } = plan;
    if (!isCalled(kind)) return undefined;
    const own = builtIn?.fixed.get(kind);
    if (builtIn !== undefined && own === undefined) return undefined;
    const ownEntry = own?.byName.get(name);
    if (ownEntry) return ownEntry;
    const [owner = ''] = naming.findOwners(name);
    const planned = servers.get(owner);
    const loaded = planned && loadPrepared(plan, planned, kind, who);
    return loaded instanceof Promise ? undefined : loaded?.byName.get(name);
  }

  async function findAnywhere(
    plan: Plan,
    kind: ListKind,
    name: string,
    who: Who,
  ): Promise<FoundItem | undefined> {
    if (!isCalled(kind)) {
      const atHand = findIn(await listAtHand(kind, who), name);
      return atHand ?? findIn(await list(kind, who), name);
    }
    const { naming, servers } = plan;
    const own = await listBuiltIn(plan, toWhole(plan), kind, who).catch((error: unknown) => {
      // A name that can only be a server's is looked for there if the gateway cannot say what it has.
      if (!naming.hasPrefix(name)) throw error;
      return undefined;
    });
    const ownEntry = own?.byName.get(name);
    if (ownEntry) return ownEntry;
    const owners = naming.findOwners(name).flatMap((owner) => servers.get(owner) ?? []);
    // Servers that list slowly are not waited for if several can have the name, as without a prefix.
    for (const planned of owners.length === 1 ? [] : owners) {
      if (mayUseSome(plan, planned, who))
        await planned.server.lists.waitIfQuick(kind, who.upstream);
      if (peekPrepared(planned, kind, who)?.byName.has(name) !== true) continue;
      const entry = (await loadPrepared(plan, planned, kind, who))?.byName.get(name);
      if (entry) return entry;
    }
    for (const planned of owners) {
      const loaded = await loadPrepared(plan, planned, kind, who);
      const entry = loaded?.byName.get(name);
      if (entry) return entry;
      if (isComplete(loaded) || !naming.hasPrefix(name)) continue;
      const ownName = naming.toOwnName(planned.config, name);
      if (ownName === undefined || planned.mayHave(kind, ownName))
        return { kind: 'absent', server: planned.server, name };
    }
    return undefined;
  }

  async function findListed(uri: string, who: Who): Promise<FoundResource | undefined> {
    return askByCurrentPlan(getPlan, async (plan) => {
      const whole = toWhole(plan);
      const resources = await joinKnown(plan, whole, 'resources', who);
      const listed = findIn(resources, uri);
      if (listed) return toResource(listed, uri);
      const skills = await joinKnown(plan, whole, 'skills', who, resources);
      return findSkillFile(skills.entries, uri, 'joined');
    });
  }

  /** A resource that one server lists can be read without waiting for another. */
  const findResource: View['findResource'] = async (uri, who) =>
    (await findListed(uri, who)) ??
    askByCurrentPlan(getPlan, async (plan) => {
      const whole = toWhole(plan);
      // A `ui://` URI says whose it is: nobody else is waited for.
      if (isAppUri(uri)) return findUnlisted(plan, whole, uri, who);
      const resources = await joinAll(plan, whole, 'resources', who);
      const listed = findIn(resources, uri);
      if (listed) return toResource(listed, uri);
      const skills = await joinAll(plan, whole, 'skills', who, resources);
      const file = findSkillFile(skills.entries, uri, 'joined');
      return file ?? findUnlisted(plan, whole, uri, who, skills);
    });

  return {
    path: '',
    isCurated: false,
    list,
    listAtHand: async (kind, who) => (await listAtHand(kind, who)).entries,
    find,
    findListed,
    findResource,
    findServer: (name) => getPlan().servers.get(name)?.server,
    listServers: () => [...getPlan().servers.values()].map(({ server }) => server),
    includes: () => true,
    hasBuiltIn: () => true,
    findConfig: () => undefined,
    shown: 'joined',
  };
}

/** True for kinds that are called by a name of their server; the rest is found by URIs, which may be any. */
export const isCalled = (kind: ListKind): boolean => kind !== 'templates' && kind !== 'skills';

// The lists of all servers, joined: the whole of them, and the part that a view is made of.

const toWhole = ({ joinLists }: Plan): JoinedPart => ({ joinLists, hasServer: () => true });

const NOTHING: readonly Entry[] = [];
/** While a server has not said what it has. */
const SHORT_TTL_MS = 1_000;
const MAX_TTL_MS = 60_000;

/** `listed` are the resources of the part, where they are at hand. */
export async function joinAll(
  plan: Plan,
  part: JoinedPart,
  kind: ListKind,
  who: Who,
  listed?: ListView,
): Promise<ListView> {
  const resources =
    kind === 'skills' ? (listed ?? (await joinAll(plan, part, 'resources', who))) : undefined;
  const servers = [...plan.servers.values()];
  const own = await listBuiltIn(plan, part, kind, who);
  const loaded = await Promise.all(
    servers.map(async (one): Promise<Pick<PreparedList, 'entries' | 'ttlMs'> | undefined> => {
      if (isWaitedFor(plan, part, one, kind)) return loadPrepared(plan, one, kind, who);
      if (!canTake(one, kind)) return undefined;
      // Others' names take those of the part's servers at /mcp: so they are known there, too, but nobody waits for them.
      void Promise.resolve(loadPrepared(plan, one, kind, who)).catch(() => {});
      const known = peekPrepared(one, kind, who);
      return known && { entries: known.entries, ttlMs: MAX_TTL_MS };
    }),
  );
  const cache = part.hasServer(BUILT_IN) ? own?.cache : undefined;
  const chosen = servers
    .map((planned, at) => ({ planned, loaded: loaded[at] }))
    .filter(({ planned }) => part.hasServer(planned.config.name));
  // Nobody who may use nothing of a server is told if it runs.
  const told = chosen.filter(({ planned }) => mayUseSome(plan, planned, who));
  return {
    ...part.joinLists(
      kind,
      [own, ...loaded].map((one) => one?.entries ?? NOTHING),
      resources,
    ),
    ttlMs: Math.min(
      MAX_TTL_MS,
      resources?.ttlMs ?? MAX_TTL_MS,
      cache?.ttlMs ?? MAX_TTL_MS,
      ...told.map((one) => one.loaded?.ttlMs ?? SHORT_TTL_MS),
    ),
    isPersonal:
      resources?.isPersonal === true ||
      cache?.scope === 'private' ||
      chosen.some(({ planned }) => planned.server.isPersonal),
    hasAllServers:
      resources?.hasAllServers !== false && told.every((one) => one.loaded !== undefined),
  };
}

/** The same of what servers have said so far. */
export async function joinKnown(
  plan: Plan,
  part: JoinedPart,
  kind: ListKind,
  who: Who,
  listed?: JoinedList,
): Promise<JoinedList> {
  const resources =
    kind === 'skills' ? (listed ?? (await joinKnown(plan, part, 'resources', who))) : undefined;
  const own = await listBuiltIn(plan, part, kind, who);
  const known = [...plan.servers.values()].map((one) =>
    isWaitedFor(plan, part, one, kind) || canTake(one, kind)
      ? peekPrepared(one, kind, who)
      : undefined,
  );
  return part.joinLists(
    kind,
    [own, ...known].map((one) => one?.entries ?? NOTHING),
    resources,
  );
}

/** Without a call under way, the last list is as much as can be known. */
async function listBuiltIn({ builtIn }: Plan, part: JoinedPart, kind: ListKind, { context }: Who) {
  if (context === undefined) return builtIn?.peek(kind);
  const listing = builtIn?.list(kind, context);
  // A failure of the gateway's own is no failure of a view without it.
  return part.hasServer(BUILT_IN) ? listing : listing?.catch(() => builtIn?.peek(kind));
}

/** Rules about a URI are about the server that has it at /mcp: who that is must be known before they are asked. */
const isWaitedFor = (
  { policies }: Plan,
  part: JoinedPart,
  { config }: PlannedServer,
  kind: ListKind,
): boolean =>
  part.hasServer(config.name) || (LIST_KINDS[kind].ruled === 'resource' && policies.dependOnCaller);

/** No server takes the name of another if every server has its prefix. */
const canTake = ({ config }: PlannedServer, kind: ListKind): boolean =>
  LIST_KINDS[kind].ruled === 'resource' || config.prefix === '';

/** True if a name that is not in it is not there: a server may not have said yet what it has, or not to this caller. */
export const isComplete = (loaded: PreparedList | undefined): boolean =>
  loaded !== undefined && !loaded.needsLogin;

/**
 * Undefined while the server has not said what it has. Nobody who may use nothing of it waits for that: the time would tell if it
 * runs.
 */
export function loadPrepared(
  plan: Plan,
  planned: PlannedServer,
  kind: ListKind,
  who: Who,
): PreparedList | undefined | Promise<PreparedList | undefined> {
  const { server, prepareList } = planned;
  const toPrepared = (fetched: FetchedList | undefined) => fetched && prepareList(kind, fetched);
  const fetching = server.lists.load(kind, who.upstream, who.patience);
  if (!(fetching instanceof Promise)) return toPrepared(fetching);
  const prepared = fetching.then(toPrepared);
  if (mayUseSome(plan, planned, who)) return prepared;
  void prepared.catch(() => {});
  return peekPrepared(planned, kind, who);
}

/** The same, as far as it is known; nothing is asked for. */
export function peekPrepared(
  { server, prepareList }: PlannedServer,
  kind: ListKind,
  who: Who,
): PreparedList | undefined {
  const known = server.lists.peek(kind, who.upstream);
  return known && prepareList(kind, known);
}

// A URI that no list has.

/** Finds whose it was, else whose template fits it, else in whose skill's folder it lies. `skills` are given where they are joined already. */
export async function findUnlisted(
  plan: Plan,
  part: JoinedPart,
  uri: string,
  who: Who,
  skills?: ListView,
): Promise<FoundResource | undefined> {
  const servers = [...plan.servers.values()];
  const listTemplates = async () => (await joinAll(plan, part, 'templates', who)).entries;
  if (isAppUri(uri)) {
    // §30.1: one that names a server, which need not list what its tools name as an app.
    const { server: named = BUILT_IN, ownUri = uri } = readSharedUri(uri) ?? {};
    const planned = plan.servers.get(named);
    if (planned !== undefined) {
      const annotations = await findOwnAnnotations(plan, planned, ownUri, who);
      return { server: named, ownUri, uri, annotations: annotations ?? {} };
    }
    // Whatever a server's templates say, a `ui://` URI that does not name the server is not the server's.
    const own = (await listTemplates()).filter(({ server }) => server === BUILT_IN);
    const fitting = findTemplate(own, uri);
    return fitting && toResource(fitting, uri);
  }
  const former = servers.find(({ server }) => server.lists.hadResource(uri, who.upstream));
  if (former) return { server: former.server.name, ownUri: uri, uri, annotations: {} };
  // `<server>+<uri>`, of a URI that this server lists, or did, is no other's, whatever templates say.
  const isNamedFor = (planned: PlannedServer): boolean => {
    const { name, lists } = planned.server;
    const ownUri = toOwnUri(name, uri);
    if (ownUri === uri) return false;
    const isListed = peekPrepared(planned, 'resources', who)?.byOwnName.has(ownUri) === true;
    return isListed || lists.hadResource(ownUri, who.upstream);
  };
  if (servers.some(isNamedFor)) return undefined;
  const fitting = findTemplate(await listTemplates(), uri);
  if (fitting) return toResource(fitting, uri);
  const { entries } = skills ?? (await joinAll(plan, part, 'skills', who));
  return findInSkillFolder(entries, uri, 'joined');
}

/** Undefined where the server neither lists the URI nor has a template that fits it. */
export async function findOwnAnnotations(
  plan: Plan,
  planned: PlannedServer,
  ownUri: string,
  who: Who,
): Promise<Entry['annotations'] | undefined> {
  const { name, lists } = planned.server;
  const listed = await loadPrepared(plan, planned, 'resources', who);
  const entry = listed?.byOwnName.get(ownUri);
  if (entry) return entry.annotations;
  if (lists.hadResource(ownUri, who.upstream)) return {};
  const offered = await loadPrepared(plan, planned, 'templates', who);
  return offered && findTemplate(offered.entries, toSharedUri(name, ownUri))?.annotations;
}

export function findIn({ entries, positions }: JoinedList, name: string): Entry | undefined {
  const position = positions.get(name);
  return position === undefined ? undefined : entries[position];
}

/** `uri` is that of the entry, or one that fits its template: then both begin alike. */
function toResource({ server, name, ownName, annotations }: Entry, uri: string): FoundResource {
  const isRenamed = server !== BUILT_IN && name !== ownName;
  return { server, uri, ownUri: isRenamed ? toOwnUri(server, uri) : uri, annotations };
}
