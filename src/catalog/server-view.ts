// §18.2: /mcp/<server>: one server under its own names.

import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { isAppUri, listClientUris, toMovedUri, toSharedUri } from './apps/app-tools.ts';
import { DEFAULT_TTL_MS } from './fetch-list.ts';
import { createFindTemplate } from './find-template.ts';
import { indexEntries, type JoinedList } from './join-lists.ts';
import { findOwnAnnotations, isComplete, loadPrepared, peekPrepared } from './joined-view.ts';
import type { Plan, PlannedServer } from './plan.ts';
import type { Entry, PreparedList } from './prepare-list.ts';
import { findInSkillFolder, findSkillFile } from './skills/skill-files.ts';
import {
  askByCurrentPlan,
  type FoundItem,
  type ListView,
  mayUseSome,
  type View,
  type Who,
} from './view.ts';

/** `joined` is the view of `/mcp`. */
export function createServerView(name: string, getPlan: () => Plan, joined: View): View {
  const findTemplate = createFindTemplate();
  const ownLists = new WeakMap<PreparedList, JoinedList>();
  const findPlanned = () => getPlan().servers.get(name);

  /**
   * With rules a path shows nothing that `/mcp` does not: rules are about the names there. A server without a prefix
   * could otherwise take a name that they allow, which there is another's.
   */
  const dependsOnJoined = (kind: ListKind): boolean =>
    getPlan().policies.dependOnCaller &&
    (LIST_KINDS[kind].ruled === 'resource' || findPlanned()?.config.prefix === '');

  const list: View['list'] = (kind, who) =>
    askByCurrentPlan(getPlan, async (plan) => {
      const planned = plan.servers.get(name);
      if (planned !== undefined && !mayUseSome(plan, planned, who)) return NOTHING;
      const prepared = planned && (await loadPrepared(planned, kind, who));
      const isPersonal = planned?.server.isPersonal === true;
      if (prepared === undefined)
        return { ...NOTHING, ttlMs: 1_000, isPersonal, hasAllServers: false };
      const { ttlMs } = prepared;
      return {
        ...(await toShownList(prepared, kind, who)),
        ttlMs,
        isPersonal,
        hasAllServers: true,
      };
    });

  async function toShownList(prepared: PreparedList, kind: ListKind, who: Who) {
    if (!dependsOnJoined(kind)) return toOwnList(prepared);
    const { entries } = await joined.list(kind, who);
    return indexEntries(
      entries.filter(({ server }) => server === name),
      getOwnName,
    );
  }

  const listAtHand: View['listAtHand'] = async (kind, who) => {
    const planned = findPlanned();
    if (planned === undefined) return [];
    if (!dependsOnJoined(kind)) return peekPrepared(planned, kind, who)?.entries ?? [];
    const entries = await joined.listAtHand(kind, who);
    return entries.filter(({ server }) => server === name);
  };

  function toOwnList(prepared: PreparedList): JoinedList {
    const known = ownLists.get(prepared) ?? indexEntries(prepared.entries, getOwnName);
    ownLists.set(prepared, known);
    return known;
  }

  const find: View['find'] = (kind, ownName, who) =>
    askByCurrentPlan(getPlan, async ({ servers }): Promise<FoundItem | undefined> => {
      const planned = servers.get(name);
      if (planned === undefined) return undefined;
      const prepared = await loadPrepared(planned, kind, who);
      const entry = prepared?.byOwnName.get(ownName);
      if (entry === undefined)
        return isComplete(prepared) ? undefined : findAbsent(planned, kind, ownName, who);
      return dependsOnJoined(kind) ? findJoinedEntry(kind, entry, who) : entry;
    });

  /** Names are judged as they are while the server is there: nobody finds out more about them meanwhile. */
  async function findAbsent(
    { config, server, mayHave }: PlannedServer,
    kind: ListKind,
    ownName: string,
    who: Who,
  ): Promise<FoundItem | undefined> {
    if (!mayHave(kind, ownName)) return undefined;
    const { naming } = getPlan();
    const absent = { kind: 'absent', server, name: naming.join(config, ownName) } as const;
    if (!dependsOnJoined(kind)) return absent;
    if (!naming.findOwners(absent.name).includes(name)) return undefined;
    const found = await joined.find(kind, absent.name, who);
    return found === undefined || found.kind === 'absent' ? absent : undefined;
  }

  /** As a later one of two servers with the same template it has another name there. */
  async function findJoinedEntry(kind: ListKind, entry: Entry, who: Who) {
    const found = await joined.find(kind, entry.name, who);
    if (LIST_KINDS[kind].ruled !== 'resource' || found?.server === name) return toOwn(found);
    return toOwn(await joined.find(kind, toMovedUri(name, entry.name), who));
  }

  const toOwn = (found: FoundItem | undefined): FoundItem | undefined =>
    found?.server === name ? found : undefined;

  /** Looks at the list that is known; nothing is waited for. */
  const findListed = createFind('findListed', async (planned, uri, who) => {
    const listed = peekPrepared(planned, 'resources', who)?.byOwnName.get(uri);
    if (listed) return listed.annotations;
    const skills = peekPrepared(planned, 'skills', who)?.entries ?? [];
    return findSkillFile(skills, uri, 'own')?.annotations;
  });
  const findResource = createFind('findResource', findAnnotations);

  function createFind(
    wanted: 'findListed' | 'findResource',
    findIn: typeof findAnnotations,
  ): View['findResource'] {
    return (uri, who) =>
      askByCurrentPlan(getPlan, async ({ servers, policies }) => {
        const planned = servers.get(name);
        if (planned === undefined) return undefined;
        if (policies.dependOnCaller) return findJoined(joined[wanted], uri, who);
        const annotations = await findIn(planned, uri, who);
        return (
          annotations && { server: name, ownUri: uri, uri: toSharedUri(name, uri), annotations }
        );
      });
  }

  async function findJoined(findIt: View['findResource'], uri: string, who: Who) {
    for (const candidate of listClientUris(name, uri)) {
      const found = await findIt(candidate, who);
      if (found?.server === name && found.ownUri === uri) return found;
    }
    return undefined;
  }

  async function findAnnotations(planned: PlannedServer, uri: string, who: Who) {
    const annotations = await findOwnAnnotations(planned, uri, who, findTemplate);
    if (annotations !== undefined) return annotations;
    // Servers need not list what their tools name as an app: what such a URI is, they say themselves.
    if (isAppUri(uri)) return {};
    const skills = (await loadPrepared(planned, 'skills', who))?.entries ?? [];
    const file = findSkillFile(skills, uri, 'own') ?? findInSkillFolder(skills, uri, 'own');
    return file?.annotations;
  }

  return {
    path: name,
    isCurated: false,
    list,
    listAtHand,
    find,
    findListed,
    findResource,
    findServer: (wanted) => (wanted === name ? findPlanned()?.server : undefined),
    listServers: () => [findPlanned()].flatMap((planned) => (planned ? [planned.server] : [])),
    includes: () => true,
    hasBuiltIn: () => false,
    findConfig: () => undefined,
    shown: 'own',
  };
}

/** For a server that offers nothing. */
const NOTHING: ListView = {
  ...indexEntries([]),
  ttlMs: DEFAULT_TTL_MS,
  isPersonal: false,
  hasAllServers: true,
};

const getOwnName = ({ ownName }: Entry): string => ownName;
