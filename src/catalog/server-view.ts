// §18.2: /mcp/<server>: one server under its own names.

import type { CatalogDescription, Offers } from '../mcp/catalog/catalog.ts';
import type { IdentifiedCaller } from '../mcp/catalog/served-catalog.ts';
import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { TASKS } from '../mcp/protocol/revisions.ts';
import { canSubscribe, offersList } from '../mcp/upstream/envelope.ts';
import type { UpstreamDescription } from '../mcp/upstream/upstream.ts';
import { computeOnce } from '../platform/compute-once.ts';
import { isObject } from '../platform/json.ts';
import {
  isAppUri,
  listClientUris,
  readSharedUri,
  toMovedUri,
  toSharedUri,
} from './apps/app-tools.ts';
import { cleanForeignText } from './clean-item.ts';
import { findTemplate } from './find-template.ts';
import { indexEntries, type JoinedList } from './join-lists.ts';
import {
  findIn,
  findOwnAnnotations,
  findUnlisted,
  isCalled,
  isComplete,
  joinAll,
  joinKnown,
  loadPrepared,
  peekPrepared,
} from './joined-view.ts';
import type { CuratedItem, Plan, PlannedServer } from './plan.ts';
import { BUILT_IN, type Entry, type PreparedList } from './prepare-list.ts';
import { findBuiltIn, type ServedPath, seesSome } from './served-path.ts';
import { findInSkillFolder, findSkillFile } from './skills/skill-files.ts';
import {
  askByCurrentPlan,
  EMPTY_LIST,
  type FoundItem,
  type ListView,
  mayUseSome,
  toWho,
  type View,
  type Who,
} from './view.ts';

/** `joined` is the view of `/mcp`. */
export function createServerView(name: string, getPlan: () => Plan, joined: View): View {
  const getOwnList = computeOnce(({ entries }: PreparedList) => indexEntries(entries, getOwnName));
  const findPlanned = () => getPlan().servers.get(name);
  const isOwn = ({ server }: Entry): boolean => server === name;

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
      if (planned !== undefined && !mayUseSome(plan, planned, who)) return EMPTY_LIST;
      const prepared = planned && (await loadPrepared(plan, planned, kind, who));
      const isPersonal = planned?.server.isPersonal === true;
      if (prepared === undefined)
        return { ...EMPTY_LIST, ttlMs: 1_000, isPersonal, hasAllServers: false };
      const shown = dependsOnJoined(kind)
        ? indexEntries((await joined.list(kind, who)).entries.filter(isOwn), getOwnName)
        : getOwnList(prepared);
      return { ...shown, ttlMs: prepared.ttlMs, isPersonal, hasAllServers: true };
    });

  const listAtHand: View['listAtHand'] = async (kind, who) => {
    const planned = findPlanned();
    if (planned === undefined) return [];
    if (!dependsOnJoined(kind)) return peekPrepared(planned, kind, who)?.entries ?? [];
    return (await joined.listAtHand(kind, who)).filter(isOwn);
  };

  const find: View['find'] = (kind, ownName, who) =>
    askByCurrentPlan(getPlan, async (plan): Promise<FoundItem | undefined> => {
      const planned = plan.servers.get(name);
      if (planned === undefined) return undefined;
      const prepared = await loadPrepared(plan, planned, kind, who);
      const entry = prepared?.byOwnName.get(ownName);
      if (entry === undefined)
        return isComplete(prepared) ? undefined : findAbsent(planned, kind, ownName, who);
      if (!dependsOnJoined(kind)) return entry;
      const found = await joined.find(kind, entry.name, who);
      if (LIST_KINDS[kind].ruled !== 'resource' || found?.server === name) return toOwn(found);
      // As a later one of two servers with the same template it has another name there.
      return toOwn(await joined.find(kind, toMovedUri(name, entry.name), who));
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

  const toOwn = (found: FoundItem | undefined): FoundItem | undefined =>
    found?.server === name ? found : undefined;

  /** Looks at the list that is known; nothing is waited for. */
  const findListed = createFind('findListed', async (_plan, planned, uri, who) => {
    const listed = peekPrepared(planned, 'resources', who)?.byOwnName.get(uri);
    if (listed) return listed.annotations;
    const skills = peekPrepared(planned, 'skills', who)?.entries ?? [];
    return findSkillFile(skills, uri, 'own')?.annotations;
  });
  const findResource = createFind('findResource', findAnnotations);

  function createFind(
    wanted: 'findListed' | 'findResource',
    findOwn: typeof findAnnotations,
  ): View['findResource'] {
    return (uri, who) =>
      askByCurrentPlan(getPlan, async (plan) => {
        const planned = plan.servers.get(name);
        if (planned === undefined) return undefined;
        if (plan.policies.dependOnCaller) {
          for (const candidate of listClientUris(name, uri)) {
            const found = await joined[wanted](candidate, who);
            if (found?.server === name && found.ownUri === uri) return found;
          }
          return undefined;
        }
        const annotations = await findOwn(plan, planned, uri, who);
        return (
          annotations && { server: name, ownUri: uri, uri: toSharedUri(name, uri), annotations }
        );
      });
  }

  async function findAnnotations(plan: Plan, planned: PlannedServer, uri: string, who: Who) {
    const annotations = await findOwnAnnotations(plan, planned, uri, who);
    if (annotations !== undefined) return annotations;
    // Servers need not list what their tools name as an app: what such a URI is, they say themselves.
    if (isAppUri(uri)) return {};
    const skills = (await loadPrepared(plan, planned, 'skills', who))?.entries ?? [];
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

const getOwnName = ({ ownName }: Entry): string => ownName;

// §18.2: what there is for one caller, and how it is used.

const toOffers = (has: (name: keyof Offers) => boolean): Offers => ({
  tools: has('tools'),
  prompts: has('prompts'),
  resources: has('resources'),
  subscriptions: has('subscriptions'),
  listChanges: has('listChanges'),
  completions: has('completions'),
  logging: has('logging'),
  skills: has('skills'),
  directories: has('directories'),
  tasks: has('tasks'),
});

/** Offers that a server may have which has not said so yet, or which comes tomorrow. */
export const ALL_OFFERS = toOffers(() => true);
const NO_OFFERS = toOffers(() => false);

export async function describeView(
  path: ServedPath,
  caller: IdentifiedCaller,
): Promise<CatalogDescription> {
  const who = toWho(caller, undefined, 'told');
  const { view, getPlan } = path;
  const { servers } = getPlan();
  const own = await findBuiltIn(path)?.describe(caller);
  const told = await Promise.all(
    view.listServers().flatMap(({ name }) => {
      const planned = servers.get(name);
      return planned ? [describeServer(path, planned, who)] : [];
    }),
  );
  const ownText = own?.instructions && (await passInstructions(path, BUILT_IN, own.instructions));
  const sections = told.flatMap(({ instructions }) => instructions ?? []);
  const joined =
    view.shown === 'joined'
      ? joinInstructions(ownText, sections)
      : // Those of one server, without a heading.
        sections.map(({ text }) => cutBytes(cleanText(text), MAX_BYTES))[0];
  const given = view.findConfig()?.instructions;
  const replaced = given?.trim() === '' ? undefined : given;
  return {
    offers: toOffers((name) => [own, ...told].some((one) => one?.offers[name] === true)),
    instructions: given === undefined ? joined : replaced,
  };
}

async function describeServer(
  path: ServedPath,
  planned: PlannedServer,
  who: Who,
): Promise<{ readonly offers: Offers; readonly instructions?: ServerInstructions }> {
  if (!mayUseSome(path.getPlan(), planned, who)) return { offers: NO_OFFERS };
  const description = await planned.server.lists.describe(who.upstream, who.patience);
  const offers = readOffers(description);
  const text = description?.instructions;
  const isReplaced = path.view.findConfig()?.instructions !== undefined;
  if (typeof text !== 'string' || text.trim() === '' || isReplaced) return { offers };
  const { name } = planned.server;
  const { policies, warn } = path.getPlan();
  const hidden = policies.findHidden(name, 'instructions', text);
  if (hidden !== undefined) {
    warn(name, 'instructions', undefined, hidden);
    return { offers };
  }
  const seesAll = !policies.dependOnCaller && !path.view.isCurated;
  const maySee = seesAll || (await mayUseAny(path, planned, who));
  const passed = maySee ? await passInstructions(path, name, text) : undefined;
  return { offers, ...(passed !== undefined && { instructions: { name, text: passed } }) };
}

/** As the guards let it be told; undefined where they do not. */
async function passInstructions(
  { getPlan }: ServedPath,
  server: string,
  text: string,
): Promise<string | undefined> {
  const { listGuards } = getPlan();
  return listGuards === undefined ? text : listGuards.passInstructions(server, text);
}

/** With rules, a server of which a caller may use nothing does not exist for it; nor does one in a view that has nothing of it. */
const mayUseAny = (path: ServedPath, planned: PlannedServer, who: Who) =>
  seesSome(path, who, async (kind) =>
    path.view.isCurated
      ? (await path.view.list(kind, who)).entries.filter(
          ({ server }) => server === planned.server.name,
        )
      : ((await loadPrepared(path.getPlan(), planned, kind, who))?.entries ?? []),
  );

function readOffers(description: UpstreamDescription | undefined): Offers {
  if (description === undefined) return ALL_OFFERS;
  const { capabilities } = description;
  const { extensions } = capabilities;
  const skills = offersList(capabilities, 'skills');
  return {
    ...toOffers((name) => isObject(capabilities[name])),
    listChanges: true,
    subscriptions: canSubscribe(capabilities),
    tasks: isObject(extensions) && isObject(extensions[TASKS]),
    skills,
    // The gateway knows the files of a skill whose server lists no directories.
    directories: skills,
  };
}

// §18.2: the instructions of several servers as one text.

interface ServerInstructions {
  /** The server's name. */
  readonly name: string;
  readonly text: string;
}

/** Bytes of all, in UTF-8. */
const MAX_BYTES = 8_192;

const cleanText = (text: string): string => cleanForeignText(text.trim(), MAX_BYTES);

/** `own` are those of the built-in catalogue; undefined where there is nothing to say. */
function joinInstructions(
  own: string | undefined,
  sections: readonly ServerInstructions[],
): string | undefined {
  let joined = own ?? '';
  for (const [index, { name, text }] of sections.entries()) {
    const heading = `${joined === '' ? '' : '\n\n'}## ${name}\n\n`;
    // Each gets its share of what those before it left: none can push the others out.
    const share = Math.floor((MAX_BYTES - Buffer.byteLength(joined)) / (sections.length - index));
    const fitted = cutBytes(lowerHeadings(cleanText(text)), share - Buffer.byteLength(heading));
    if (fitted !== '') joined += heading + fitted;
  }
  return joined === '' ? undefined : joined;
}

/** So that a server cannot speak under the heading of another; a text that is underlined is a heading, too. */
const lowerHeadings = (text: string): string =>
  text
    .replace(/^([ \t]{0,3})(#{1,6})(?=\s|$)/gm, '$1##$2')
    .replace(/(?<=\S[^\n]*\n[ \t]{0,3})(?=(?:=+|-+)[ \t]*$)/gm, '\\');

/** A character is never cut in two. */
function cutBytes(text: string, max: number): string {
  if (Buffer.byteLength(text) <= max) return text;
  if (max <= ELLIPSIS_BYTES) return '';
  let bytes = ELLIPSIS_BYTES;
  let kept = '';
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > max) break;
    kept += character;
  }
  return `${kept}…`;
}

const ELLIPSIS_BYTES = 3;

// §25.1: /mcp/<view>: some of what /mcp serves, under the same names. It only takes away: rules and lock hold here as there.

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
