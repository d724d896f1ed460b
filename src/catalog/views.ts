// §18.2, §25.1: the views of `/mcp` (everything), `/mcp/<view>` (a part of it) and `/mcp/<server>` (one server, with its own
// names).

import { failUnknownItem, LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { APPS } from '../mcp/protocol/revisions.ts';
import { computeOnce } from '../platform/bounded-map.ts';
import { createTurns } from '../platform/clock.ts';
import type { JsonObject } from '../platform/json.ts';
import { createJudgeLikeness } from '../platform/nearest-name.ts';
import {
  hasApp,
  isAppUri,
  isVisibleTo,
  listClientUris,
  readSharedUri,
  toMovedUri,
  toSharedUri,
} from './apps/app-tools.ts';
import { CallerLists, findIn, isCalled, isComplete } from './caller-lists.ts';
import { findTemplate } from './find-template.ts';
import { indexEntries } from './join-lists.ts';
import type { Plan, PlannedServer, Selection, ServedPlan, Who } from './plan.ts';
import { BUILT_IN, type Entry, type PreparedList } from './prepare-list.ts';
import { JUDGED_AT_ONCE, type ServedPath } from './served-path.ts';
import { findInSkillFolder, findSkillFile } from './skills/skill-files.ts';
import {
  EMPTY_LIST,
  type FoundItem,
  type FoundResource,
  type ListView,
  mayUseSome,
  toShownName,
  type View,
} from './view.ts';

export function createJoinedView(served: ServedPlan): View {
  const inPlan = <Answer>(who: Who, find: (lists: CallerLists) => Promise<Answer>) =>
    served.ask((plan) => find(new CallerLists(plan, plan.whole, who)));

  return {
    ...createSelection('', served, ({ whole }) => whole),
    findServer: served.findServer,
    findCurrent: served.findCurrent,
    find: (kind, name, who) => inPlan(who, (lists) => lists.find(kind, name)),
    findListed: (uri, who) => inPlan(who, (lists) => lists.findKnownResource(uri)),
    findResource: (uri, who) => inPlan(who, (lists) => lists.findResource(uri)),
  };
}

/**
 * A part of `/mcp`, under the same names. The view only leaves items out: rules and lock still apply. `joined` is the view of
 * `/mcp`.
 */
export function createCuratedView(name: string, served: ServedPlan, joined: View): View {
  const select = ({ views }: Plan) => views.get(name);
  const selection = createSelection(name, served, select);
  const { list, includes } = selection;
  const isIncluded = (item: Parameters<Selection['includes']>[0]): boolean =>
    select(served.current)?.includes(item) === true;
  const canHave = (wanted: string): boolean =>
    served.current.naming
      .findOwners(wanted)
      .some((server) => select(served.current)?.hasServer(server) === true);

  return {
    ...selection,
    findCurrent(kind, wanted, caller) {
      const found = canHave(wanted) ? joined.findCurrent(kind, wanted, caller) : undefined;
      return found && isIncluded(found) ? found : undefined;
    },
    async find(kind, wanted, who) {
      // Servers outside the view are not queried.
      if (!isCalled(kind) || !canHave(wanted)) {
        const known = findIn(await list(kind, who, 'peek'), wanted);
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
    /** The resource as its owner serves it on /mcp. A view includes it by its own URI, or by a template of the view. */
    async findResource(uri, who) {
      const known = await joined.findListed(uri, who);
      // Skills need the list of resources, so this loads both.
      if (known === undefined && !isAppUri(uri)) await list('skills', who);
      const listed = known ?? (await joined.findListed(uri, who));
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

/** The lists of the items that `select` selects, and everything derived from these lists alone. */
function createSelection(
  name: string,
  served: ServedPlan,
  select: (plan: Plan) => Selection | undefined,
): Omit<View, 'findCurrent' | 'find' | 'findListed' | 'findResource'> {
  const hasServer = (server: string): boolean => select(served.current)?.hasServer(server) === true;

  return {
    name,
    isCurated: name !== '',
    shown: 'joined',
    list: (kind, who, peek) =>
      served.ask(async (plan) => {
        const selection = select(plan);
        if (selection === undefined) return GONE;
        const list = await new CallerLists(plan, selection, who).join(kind, peek);
        return { ...list, ...selection.curate(list) };
      }),
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

/** The list of a view that was removed from the configuration after it was found. */
const GONE: ListView = { ...EMPTY_LIST, ttlMs: 0 };

// §18.2: finds an item by its name, or fails with a suggestion.

export type FindItem = ReturnType<typeof createFindItem>;

export function createFindItem(path: ServedPath, resolveResource: View['findResource']) {
  const { view } = path;

  /** `facts` are for the log. @throws GatewayError `invalid_params` always. */
  async function failAsUnknown(
    kind: ListKind,
    name: string,
    who: Who,
    facts?: JsonObject,
  ): Promise<never> {
    // If the lists cannot be loaded, there is no suggestion.
    const nearest = await suggestName(path, kind, name, who).catch(() => undefined);
    return failUnknownItem(kind, name, { nearest, ...(facts && { facts }) });
  }

  return {
    /** @throws GatewayError `invalid_params` if no server has it. */
    find: async (kind: ListKind, name: string, who: Who): Promise<FoundItem> =>
      (await view.find(kind, name, who)) ??
      (kind === 'tools' ? await findAppTool(path, name, who) : undefined) ??
      failAsUnknown(kind, name, who),
    /** @throws GatewayError `invalid_params` if no server has it. */
    findResource: async (uri: string, who: Who): Promise<FoundResource> =>
      (await resolveResource(uri, who)) ?? failUnknownItem('resources', uri),
    failAsUnknown,
  };
}

// §7.1: the nearest name to an unknown one, among the items that this caller sees.

/** Maximum number of entries that are compared. */
const MAX_COMPARED = 10_000;

/**
 * One search at a time in the whole process: each takes only its turns of the event loop, but many at once would leave
 * little time for other calls.
 */
let lastSearch: Promise<unknown> = Promise.resolve();

/** Undefined if no name is similar. Searches the cached lists, without waiting for a server. */
async function suggestName(
  { view, access, clock }: ServedPath,
  kind: ListKind,
  name: string,
  who: Who,
): Promise<string | undefined> {
  // People copy URIs instead of typing them, and a URI may contain a secret of one call.
  if (LIST_KINDS[kind].ruled === 'resource') return undefined;
  const judge = createJudgeLikeness(name);
  if (judge === undefined) return undefined;
  const work = createTurns(clock);
  const { entries } = await view.list(kind, who, 'peek');
  await access.prepareFor(who, work);
  // The name itself may be listed, but the call denied because of its arguments.
  const isMeant = (entry: Entry) =>
    toShownName(view, entry) !== name &&
    view.findServer(entry.server)?.isDown() !== true &&
    access.mayList(entry, who);

  const findNearest = async (): Promise<Entry | undefined> => {
    let nearest: Entry | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const [place, entry] of entries.slice(0, MAX_COMPARED).entries()) {
      if (place % JUDGED_AT_ONCE === 0 && work.isOver()) await work.next();
      // Models leave out the prefix, or write the prefix of another gateway.
      const distance = Math.min(judge(entry.name, least), judge(entry.ownName, least));
      if (distance >= least || !isMeant(entry)) continue;
      nearest = entry;
      least = distance;
    }
    return nearest;
  };

  const searching = lastSearch.then(findNearest);
  lastSearch = searching.catch(() => {});
  const nearest = await searching;
  return nearest && toShownName(view, nearest);
}

// §30.2: apps call tools by the names of their own server, since they do not know the names that clients of several servers see.

/** Maximum number of tools to search. */
const MAX_LOOKED_AT = 10_000;

/**
 * The tool that an app of a server means, which belongs to the same server. Among all servers with an app that the caller sees,
 * only one may have a tool of that name, whether the caller may use it or not: an app's arguments must not reach another server.
 */
async function findAppTool(
  { view, access, clock }: ServedPath,
  name: string,
  who: Who,
): Promise<Entry | undefined> {
  const { extensions } = who.upstream.capabilities;
  if (view.shown === 'own' || extensions?.[APPS] === undefined) return undefined;
  const isMeant = ({ server, ownName, ownItem }: Entry) =>
    server !== BUILT_IN && ownName === name && isVisibleTo('app', ownItem);
  // Fast path: nearly all unknown names end here, before rules are evaluated or servers are waited for.
  if (!(await view.list('tools', who, 'peek')).entries.some(isMeant)) return undefined;
  const entries = (await view.list('tools', who)).entries.slice(0, MAX_LOOKED_AT);
  const meant = entries.filter(isMeant);
  const wanted = new Set(meant.map(({ server }) => server));
  const work = createTurns(clock);
  await access.prepareFor(who, work);
  const servers = new Set<string>();
  for (const [at, entry] of entries.entries()) {
    if (at % JUDGED_AT_ONCE === 0 && work.isOver()) await work.next();
    const { server, ownItem } = entry;
    if (!wanted.has(server) || servers.has(server)) continue;
    if (hasApp(ownItem) && access.mayList(entry, who)) servers.add(server);
  }
  const [only, ...others] = meant.filter(({ server }) => servers.has(server));
  return only !== undefined && others.length === 0 && access.mayList(only, who) ? only : undefined;
}

// §18.2: /mcp/<server>: one server under its own names.

/** `joined` is the view of `/mcp`. */
export function createServerView(name: string, served: ServedPlan, joined: View): View {
  const getOwnList = computeOnce(({ entries }: PreparedList) => indexEntries(entries, getOwnName));
  const findPlanned = () => served.current.servers.get(name);
  const isOwn = ({ server }: Pick<Entry, 'server'>): boolean => server === name;
  const open = (plan: Plan, who: Who) => new CallerLists(plan, plan.whole, who);

  /**
   * With rules, a path shows nothing that `/mcp` does not, since rules use the names at `/mcp`. Otherwise a server without a prefix
   * could take a name that the rules allow but that belongs to another server at `/mcp`.
   */
  const dependsOnJoined = (kind: ListKind): boolean =>
    served.current.policies.dependOnCaller &&
    (LIST_KINDS[kind].ruled === 'resource' || findPlanned()?.config.prefix === '');

  /** The item is treated as if the server were available, so that an error reveals nothing about it. */
  async function findAbsent(
    { config, server, mayHave }: PlannedServer,
    kind: ListKind,
    ownName: string,
    who: Who,
  ): Promise<FoundItem | undefined> {
    if (!mayHave(kind, ownName)) return undefined;
    const { naming } = served.current;
    const absent = { kind: 'absent', server, name: naming.join(config, ownName) } as const;
    if (!dependsOnJoined(kind)) return absent;
    if (!naming.findOwners(absent.name).includes(name)) return undefined;
    const found = await joined.find(kind, absent.name, who);
    return found === undefined || found.kind === 'absent' ? absent : undefined;
  }

  const toOwn = (found: FoundItem | undefined): FoundItem | undefined =>
    found?.server === name ? found : undefined;

  /** `findOwn` says whether the server has the URI, for the case that no rules apply. */
  const createFind =
    (
      wanted: 'findListed' | 'findResource',
      findOwn: (
        lists: CallerLists,
        planned: PlannedServer,
        uri: string,
      ) => Promise<Entry['annotations'] | undefined>,
    ): View['findResource'] =>
    (uri, who) =>
      served.ask(async (plan) => {
        const planned = plan.servers.get(name);
        if (planned === undefined) return undefined;
        if (plan.policies.dependOnCaller) {
          for (const candidate of listClientUris(name, uri)) {
            const found = await joined[wanted](candidate, who);
            if (found?.server === name && found.ownUri === uri) return found;
          }
          return undefined;
        }
        const annotations = await findOwn(open(plan, who), planned, uri);
        return (
          annotations && { server: name, ownUri: uri, uri: toSharedUri(name, uri), annotations }
        );
      });

  return {
    name,
    isCurated: false,
    list: (kind, who, peek) =>
      served.ask(async (plan) => {
        const planned = plan.servers.get(name);
        const isDenied = planned !== undefined && !mayUseSome(plan, planned, who);
        // The response time of a server would reveal whether it is up. Cached data takes no time.
        if (isDenied && peek === undefined) return EMPTY_LIST;
        const lists = open(plan, who);
        const prepared =
          planned && (peek ? lists.peek(planned, kind) : await lists.load(planned, kind));
        const isPersonal = planned?.server.isPersonal === true;
        if (prepared === undefined)
          return { ...EMPTY_LIST, ttlMs: 1_000, isPersonal, hasAllServers: false };
        const shown = dependsOnJoined(kind)
          ? indexEntries((await joined.list(kind, who, peek)).entries.filter(isOwn), getOwnName)
          : getOwnList(prepared);
        return { ...shown, ttlMs: prepared.ttlMs, isPersonal, hasAllServers: true };
      }),
    findCurrent(kind, ownName, caller) {
      const planned = dependsOnJoined(kind) ? undefined : findPlanned();
      const list = planned?.server.lists.findCurrent(kind, caller);
      return list && planned?.prepareList(list).byOwnName.get(ownName);
    },
    find: (kind, ownName, who) =>
      served.ask(async (plan): Promise<FoundItem | undefined> => {
        const planned = plan.servers.get(name);
        if (planned === undefined) return undefined;
        const prepared = await open(plan, who).load(planned, kind);
        const entry = prepared?.byOwnName.get(ownName);
        if (entry === undefined)
          return isComplete(prepared) ? undefined : findAbsent(planned, kind, ownName, who);
        if (!dependsOnJoined(kind)) return entry;
        const found = await joined.find(kind, entry.name, who);
        if (LIST_KINDS[kind].ruled !== 'resource' || found?.server === name) return toOwn(found);
        // If two servers have the same template, the later server's has a different name at `/mcp`.
        return toOwn(await joined.find(kind, toMovedUri(name, entry.name), who));
      }),
    findListed: createFind('findListed', async (lists, planned, uri) => {
      const listed = lists.peek(planned, 'resources')?.byOwnName.get(uri);
      if (listed) return listed.annotations;
      const skills = lists.peek(planned, 'skills')?.entries ?? [];
      return findSkillFile(skills, uri, 'own')?.annotations;
    }),
    findResource: createFind('findResource', async (lists, planned, uri) => {
      const annotations = await lists.findAnnotations(planned, uri);
      if (annotations !== undefined) return annotations;
      // Servers do not have to list the apps that their tools name, so the server itself has to decide about such a URI.
      if (isAppUri(uri)) return {};
      const skills = (await lists.load(planned, 'skills'))?.entries ?? [];
      const file = findSkillFile(skills, uri, 'own') ?? findInSkillFolder(skills, uri, 'own');
      return file?.annotations;
    }),
    findServer: (wanted) => (wanted === name ? findPlanned()?.server : undefined),
    listServers: () => [findPlanned()].flatMap((planned) => (planned ? [planned.server] : [])),
    includes: () => true,
    hasBuiltIn: () => false,
    findConfig: () => undefined,
    shown: 'own',
  };
}

const getOwnName = ({ ownName }: Entry): string => ownName;
