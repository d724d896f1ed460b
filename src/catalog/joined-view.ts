// §18.2: /mcp: everything, under names that say whose they are.

import type { ListKind } from '../mcp/protocol/list-kinds.ts';
import { isAppUri, readSharedUri, toOwnUri, toSharedUri } from './apps/app-tools.ts';
import type { FetchedList } from './fetch-list.ts';
import { createFindTemplate, type FindTemplate } from './find-template.ts';
import type { JoinedList } from './join-lists.ts';
import type { Naming } from './naming.ts';
import { askByCurrentPlan, type Plan, type PlannedServer } from './plan.ts';
import { BUILT_IN, type Entry, type PreparedList } from './prepare-list.ts';
import { findInSkillFolder, findSkillFile } from './skills/find-file.ts';
import {
  type FoundItem,
  type FoundResource,
  type ListView,
  mayUseSome,
  type View,
  type Who,
} from './view.ts';

export function createJoinedView(getPlan: () => Plan): View {
  const findTemplate = createFindTemplate();

  /** Without a call under way, the last list is as much as can be known. */
  async function listBuiltIn(kind: ListKind, { context }: Who) {
    const { builtIn } = getPlan();
    return context === undefined ? builtIn?.peek(kind) : builtIn?.list(kind, context);
  }

  const list = (kind: ListKind, who: Who): Promise<ListView> =>
    askByCurrentPlan(getPlan, (plan) => listBy(plan, kind, who));

  /** All that is read by a URI, but for templates. */
  const listFiles = (who: Who) =>
    askByCurrentPlan(getPlan, async (plan) => {
      const resources = await listBy(plan, 'resources', who);
      const { entries: skills } = await listBy(plan, 'skills', who, resources);
      return { resources, skills };
    });

  async function listBy(
    plan: Plan,
    kind: ListKind,
    who: Who,
    listed?: ListView,
  ): Promise<ListView> {
    const { servers, joinLists } = plan;
    const resources =
      kind === 'skills' ? (listed ?? (await listBy(plan, 'resources', who))) : undefined;
    const planned = [...servers.values()];
    const own = await listBuiltIn(kind, who);
    const cache = own?.cache;
    const prepared = await Promise.all(planned.map((one) => loadPrepared(one, kind, who)));
    const parts = [
      own?.entries ?? NOTHING,
      ...prepared.map((one) => one?.prepared.entries ?? NOTHING),
    ];
    // Whether a server runs is told to nobody who may use nothing of it.
    const told = prepared.filter((_, index) => {
      const one = planned[index];
      return one !== undefined && mayUseSome(plan, one, who);
    });
    return {
      ...joinLists(kind, parts, resources),
      ttlMs: Math.min(
        resources?.ttlMs ?? MAX_TTL_MS,
        ...told.map((one) => one?.ttlMs ?? SHORT_TTL_MS),
        cache?.ttlMs ?? MAX_TTL_MS,
        MAX_TTL_MS,
      ),
      isPersonal:
        resources?.isPersonal === true ||
        cache?.scope === 'private' ||
        planned.some(({ server }) => server.isPersonal),
      hasAllServers: resources?.hasAllServers !== false && told.every((one) => one !== undefined),
    };
  }

  /** Nearly always the list is there, and the first server that can have the name has it: nothing is waited for. */
  function find(kind: ListKind, name: string, who: Who) {
    return (
      findAtHand(kind, name, who) ??
      askByCurrentPlan(getPlan, (plan) => findAnywhere(plan, kind, name, who))
    );
  }

  function findAtHand(kind: ListKind, name: string, who: Who): FoundItem | undefined {
    const { builtIn, servers, naming } = getPlan();
    if (!isCalled(kind)) return undefined;
    const own = builtIn?.fixed.get(kind);
    if (builtIn !== undefined && own === undefined) return undefined;
    const ownEntry = own?.byName.get(name);
    if (ownEntry) return { kind: 'entry', entry: ownEntry };
    const [owner = ''] = naming.findOwners(name);
    const planned = servers.get(owner);
    const loaded = planned && loadPrepared(planned, kind, who);
    return loaded === undefined || loaded instanceof Promise
      ? undefined
      : toFound(loaded.prepared.byName.get(name));
  }

  async function findAnywhere(
    { servers, naming }: Plan,
    kind: ListKind,
    name: string,
    who: Who,
  ): Promise<FoundItem | undefined> {
    if (!isCalled(kind)) {
      const atHand = findIn(await joinAtHand(kind, who), name);
      return toFound(atHand ?? findIn(await list(kind, who), name));
    }
    const own = await findBuiltIn(kind, name, naming, who);
    if (own) return { kind: 'entry', entry: own };
    const owners = naming.findOwners(name).flatMap((owner) => servers.get(owner) ?? []);
    return (
      (await findAtQuick(owners, kind, name, who)) ?? findAtOwners(owners, kind, name, naming, who)
    );
  }

  /** A name that can only be a server's is looked for there if the gateway cannot say what it has. */
  async function findBuiltIn(
    kind: ListKind,
    name: string,
    naming: Naming,
    who: Who,
  ): Promise<Entry | undefined> {
    try {
      return (await listBuiltIn(kind, who))?.byName.get(name);
    } catch (error) {
      if (naming.hasPrefix(name)) return undefined;
      throw error;
    }
  }

  /** Servers that list slowly are not waited for if several can have the name, as without a prefix. */
  async function findAtQuick(
    owners: readonly PlannedServer[],
    kind: ListKind,
    name: string,
    who: Who,
  ): Promise<FoundItem | undefined> {
    if (owners.length === 1) return undefined;
    for (const planned of owners) {
      const { lists } = planned.server;
      await lists.waitIfQuick(kind, who.upstream);
      const mayHaveIt = peekPrepared(planned, kind, who)?.byName.has(name);
      const loaded = mayHaveIt ? await loadPrepared(planned, kind, who) : undefined;
      const entry = loaded?.prepared.byName.get(name);
      if (entry) return { kind: 'entry', entry };
    }
    return undefined;
  }

  async function findAtOwners(
    owners: readonly PlannedServer[],
    kind: ListKind,
    name: string,
    naming: Naming,
    who: Who,
  ): Promise<FoundItem | undefined> {
    for (const planned of owners) {
      const loaded = await loadPrepared(planned, kind, who);
      const entry = loaded?.prepared.byName.get(name);
      if (entry) return { kind: 'entry', entry };
      if (isComplete(loaded) || !naming.hasPrefix(name)) continue;
      const ownName = naming.toOwnName(planned.config, name);
      if (ownName === undefined || planned.mayHave(kind, ownName)) {
        return { kind: 'absent', server: planned.server, name };
      }
    }
    return undefined;
  }

  async function findListed(uri: string, who: Who): Promise<FoundResource | undefined> {
    const resources = await joinAtHand('resources', who);
    const listed = findIn(resources, uri);
    if (listed) return toResource(listed, uri);
    return findSkillFile((await joinAtHand('skills', who, resources)).entries, uri, 'joined');
  }

  /** Joins what servers have said so far. */
  async function joinAtHand(kind: ListKind, who: Who, resources?: JoinedList): Promise<JoinedList> {
    const own = await listBuiltIn(kind, who);
    const { servers, joinLists } = getPlan();
    const parts = [...servers.values()].map(
      (planned) => peekPrepared(planned, kind, who)?.entries ?? NOTHING,
    );
    const listed =
      kind === 'skills' ? (resources ?? (await joinAtHand('resources', who))) : undefined;
    return joinLists(kind, [own?.entries ?? NOTHING, ...parts], listed);
  }

  /** A resource that one server lists can be read without waiting for another. */
  async function findResource(uri: string, who: Who): Promise<FoundResource | undefined> {
    const atHand = await findListed(uri, who);
    if (atHand) return atHand;
    // A `ui://` URI says whose it is: nobody else is waited for.
    const { resources, skills } = isAppUri(uri) ? NO_FILES : await listFiles(who);
    const listed = findIn(resources, uri);
    if (listed) return toResource(listed, uri);
    const file = findSkillFile(skills, uri, 'joined');
    if (file) return file;
    const servers = [...getPlan().servers.values()];
    return findUnlisted(servers, uri, who, {
      findTemplate,
      listTemplates: async () => (await list('templates', who)).entries,
      skills,
    });
  }

  return {
    path: '',
    isCurated: false,
    list,
    listAtHand: async (kind, who) => (await joinAtHand(kind, who)).entries,
    find,
    findListed,
    findResource,
    findServer: (name) => getPlan().servers.get(name)?.server,
    listServers: () => [...getPlan().servers.values()].map(({ server }) => server),
    includes: () => true,
    hasBuiltIn: () => true,
    getTitle: () => undefined,
    getInstructions: () => undefined,
    shown: 'joined',
  };
}

/** True for kinds that are called by a name of their server; the rest is found by URIs, which may be any. */
export const isCalled = (kind: ListKind): boolean => kind !== 'templates' && kind !== 'skills';

const NOTHING: readonly Entry[] = [];
const NO_FILES = { resources: { entries: NOTHING, positions: new Map() }, skills: NOTHING };
/** While a server has not said what it has. */
const SHORT_TTL_MS = 1_000;
const MAX_TTL_MS = 60_000;

export interface LoadedList {
  readonly prepared: PreparedList;
  readonly ttlMs: number;
}

/** True if a name that is not in it is not there: a server may not have said yet what it has, or not to this caller. */
export const isComplete = (loaded: LoadedList | undefined): boolean =>
  loaded !== undefined && !loaded.prepared.needsLogin;

/** Undefined while the server has not said what it has. */
export function loadPrepared(
  { server, prepareList }: PlannedServer,
  kind: ListKind,
  who: Who,
): LoadedList | undefined | Promise<LoadedList | undefined> {
  const toLoaded = (fetched: FetchedList | undefined) =>
    fetched && { prepared: prepareList(kind, fetched), ttlMs: fetched.ttlMs };
  const fetching = server.lists.load(kind, who.upstream, who.patience);
  return fetching instanceof Promise ? fetching.then(toLoaded) : toLoaded(fetching);
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

/** §30.1: one that names a server, which need not list what its tools name as an app. */
async function findAppResource(
  servers: readonly PlannedServer[],
  uri: string,
  who: Who,
  findTemplate: FindTemplate,
): Promise<FoundResource | undefined> {
  const { server = BUILT_IN, ownUri = uri } = readSharedUri(uri) ?? {};
  const planned = servers.find(({ config }) => config.name === server);
  if (planned === undefined) return undefined;
  const annotations = await findOwnAnnotations(planned, ownUri, who, findTemplate);
  return { server, ownUri, uri, annotations: annotations ?? {} };
}

/** Undefined where the server neither lists the URI nor has a template that fits it. */
export async function findOwnAnnotations(
  planned: PlannedServer,
  ownUri: string,
  who: Who,
  findTemplate: FindTemplate,
): Promise<Entry['annotations'] | undefined> {
  const { name, lists } = planned.server;
  const listed = await loadPrepared(planned, 'resources', who);
  const entry = listed?.prepared.byOwnName.get(ownUri);
  if (entry) return entry.annotations;
  if (lists.hadResource(ownUri, who.upstream)) return {};
  const offered = await loadPrepared(planned, 'templates', who);
  const fitting = offered && findTemplate(offered.prepared.entries, toSharedUri(name, ownUri));
  return fitting?.annotations;
}

/** A URI that no list has: whose it was, else whose template fits it. */
export async function findUnlisted(
  servers: readonly PlannedServer[],
  uri: string,
  who: Who,
  templates: Templates,
): Promise<FoundResource | undefined> {
  if (isAppUri(uri)) {
    const found = await findAppResource(servers, uri, who, templates.findTemplate);
    return found ?? findBuiltInTemplate(uri, templates);
  }
  const former = servers.find(({ server }) => server.lists.hadResource(uri, who.upstream));
  if (former) return { server: former.server.name, ownUri: uri, uri, annotations: {} };
  // As clients were shown the URI of one server it is no other's, whatever templates say.
  if (servers.some((planned) => isNamedFor(planned, uri, who))) return undefined;
  const fitting = templates.findTemplate(await templates.listTemplates(), uri);
  return fitting ? toResource(fitting, uri) : findInSkillFolder(templates.skills, uri, 'joined');
}

interface Templates {
  readonly findTemplate: FindTemplate;
  listTemplates(): Promise<readonly Entry[]>;
  /** In whose folders a URI may lie that they do not name. */
  readonly skills: readonly Entry[];
}

/** Whatever a server's templates say, a `ui://` URI that does not name the server is not the server's. */
async function findBuiltInTemplate(uri: string, { findTemplate, listTemplates }: Templates) {
  const entries = (await listTemplates()).filter(({ server }) => server === BUILT_IN);
  const fitting = findTemplate(entries, uri);
  return fitting && toResource(fitting, uri);
}

/** True if it is `<server>+<uri>`, of a URI that this server lists, or did. */
function isNamedFor(planned: PlannedServer, uri: string, who: Who): boolean {
  const { name, lists } = planned.server;
  const ownUri = toOwnUri(name, uri);
  if (ownUri === uri) return false;
  const isListed = peekPrepared(planned, 'resources', who)?.byOwnName.has(ownUri) === true;
  return isListed || lists.hadResource(ownUri, who.upstream);
}

export function findIn({ entries, positions }: JoinedList, name: string): Entry | undefined {
  const position = positions.get(name);
  return position === undefined ? undefined : entries[position];
}

const toFound = (entry: Entry | undefined): FoundItem | undefined =>
  entry && { kind: 'entry', entry };

/** `uri` is that of the entry, or one that fits its template: then both begin alike. */
function toResource({ server, name, ownName, annotations }: Entry, uri: string): FoundResource {
  const isRenamed = server !== BUILT_IN && name !== ownName;
  return { server, uri, ownUri: isRenamed ? toOwnUri(server, uri) : uri, annotations };
}
