// §18.2: /mcp/<server>: one server under its own names.

import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { computeOnce } from '../platform/compute-once.ts';
import { isAppUri, listClientUris, toMovedUri, toSharedUri } from './apps/app-tools.ts';
import { CallerLists, isComplete } from './caller-lists.ts';
import { indexEntries } from './join-lists.ts';
import type { Plan, PlannedServer, ServedPlan } from './plan.ts';
import type { Entry, PreparedList } from './prepare-list.ts';
import { findInSkillFolder, findSkillFile } from './skills/skill-files.ts';
import { EMPTY_LIST, type FoundItem, mayUseSome, type View, type Who } from './view.ts';

/** `joined` is the view of `/mcp`. */
export function createServerView(name: string, served: ServedPlan, joined: View): View {
  const getOwnList = computeOnce(({ entries }: PreparedList) => indexEntries(entries, getOwnName));
  const findPlanned = () => served.current.servers.get(name);
  const isOwn = ({ server }: Pick<Entry, 'server'>): boolean => server === name;
  const open = (plan: Plan, who: Who) => new CallerLists(plan, plan.whole, who);

  /**
   * With rules a path shows nothing that `/mcp` does not: rules are about the names there. Otherwise a server without a prefix
   * could take a name that they allow and that belongs to another server there.
   */
  const dependsOnJoined = (kind: ListKind): boolean =>
    served.current.policies.dependOnCaller &&
    (LIST_KINDS[kind].ruled === 'resource' || findPlanned()?.config.prefix === '');

  /** An item is treated as if the server were there: its absence tells a caller nothing about the item. */
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

  /** `findOwn` says whether the server has the URI where no rules are about it. */
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
    path: name,
    isCurated: false,
    list: (kind, who) =>
      served.ask(async (plan) => {
        const planned = plan.servers.get(name);
        if (planned !== undefined && !mayUseSome(plan, planned, who)) return EMPTY_LIST;
        const prepared = planned && (await open(plan, who).load(planned, kind));
        const isPersonal = planned?.server.isPersonal === true;
        if (prepared === undefined)
          return { ...EMPTY_LIST, ttlMs: 1_000, isPersonal, hasAllServers: false };
        const shown = dependsOnJoined(kind)
          ? indexEntries((await joined.list(kind, who)).entries.filter(isOwn), getOwnName)
          : getOwnList(prepared);
        return { ...shown, ttlMs: prepared.ttlMs, isPersonal, hasAllServers: true };
      }),
    async listAtHand(kind, who) {
      const planned = findPlanned();
      if (planned === undefined) return [];
      if (!dependsOnJoined(kind))
        return open(served.current, who).peek(planned, kind)?.entries ?? [];
      return (await joined.listAtHand(kind, who)).filter(isOwn);
    },
    findAtHand(kind, ownName, caller) {
      const planned = dependsOnJoined(kind) ? undefined : findPlanned();
      const list = planned?.server.lists.findCurrent(kind, caller);
      return list && planned?.prepareList(kind, list).byOwnName.get(ownName);
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
        // As the later one of two servers with the same template it has another name there.
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
      // Servers need not list the apps that their tools name: the server itself says what such a URI is.
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
