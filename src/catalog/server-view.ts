// §18.2: /mcp/<server>: one server under its own names.

import type { CatalogDescription, Offers } from '../mcp/catalog/catalog.ts';
import type { IdentifiedCaller } from '../mcp/catalog/served-catalog.ts';
import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { TASKS } from '../mcp/protocol/revisions.ts';
import { canSubscribe, offersList } from '../mcp/upstream/description.ts';
import type { UpstreamDescription } from '../mcp/upstream/upstream.ts';
import { isObject } from '../platform/json.ts';
import { isAppUri, listClientUris, toMovedUri, toSharedUri } from './apps/app-tools.ts';
import { cleanForeignText } from './clean-item.ts';
import { DEFAULT_TTL_MS } from './fetch-list.ts';
import { createFindTemplate } from './find-template.ts';
import { indexEntries, type JoinedList } from './join-lists.ts';
import { findOwnAnnotations, isComplete, loadPrepared, peekPrepared } from './joined-view.ts';
import type { Plan, PlannedServer } from './plan.ts';
import { BUILT_IN, type Entry, type PreparedList } from './prepare-list.ts';
import { findBuiltIn, type ServedPath, seesSome } from './served-path.ts';
import { findInSkillFolder, findSkillFile } from './skills/skill-files.ts';
import {
  askByCurrentPlan,
  type FoundItem,
  type ListView,
  mayUseSome,
  toWho,
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
  const ownInstructions =
    own?.instructions && (await passInstructions(path, BUILT_IN, own.instructions));
  const sections = told.flatMap(({ instructions }) => instructions ?? []);
  return {
    offers: toOffers((name) => [own, ...told].some((one) => one?.offers[name] === true)),
    instructions: joinOrReplace(view, ownInstructions, sections),
  };
}

function joinOrReplace(
  view: View,
  own: string | undefined,
  sections: readonly ServerInstructions[],
): string | undefined {
  const given = view.findConfig()?.instructions;
  if (given !== undefined) return given.trim() === '' ? undefined : given;
  return view.shown === 'joined'
    ? joinInstructions(own, sections)
    : sections.map(({ text }) => fitInstructions(text))[0];
}

const NOT_DESCRIBED = { offers: toOffers(() => false), instructions: undefined };

async function describeServer(path: ServedPath, planned: PlannedServer, who: Who) {
  if (!mayUseSome(path.getPlan(), planned, who)) return NOT_DESCRIBED;
  const description = await planned.server.lists.describe(who.upstream, who.patience);
  return {
    offers: readOffers(description),
    instructions: await readInstructions(path, planned, description, who),
  };
}

async function readInstructions(
  path: ServedPath,
  planned: PlannedServer,
  description: UpstreamDescription | undefined,
  who: Who,
): Promise<ServerInstructions | undefined> {
  const { name } = planned.server;
  const { policies, warn } = path.getPlan();
  const text = description?.instructions;
  if (typeof text !== 'string' || text.trim() === '') return undefined;
  if (path.view.findConfig()?.instructions !== undefined) return undefined;
  const hidden = policies.findHidden(name, 'instructions', text);
  if (hidden !== undefined) {
    warn(name, 'instructions', undefined, hidden);
    return undefined;
  }
  const seesAll = !policies.dependOnCaller && !path.view.isCurated;
  const maySee = seesAll || (await mayUseAny(path, planned, who));
  const passed = maySee ? await passInstructions(path, name, text) : undefined;
  return passed === undefined ? undefined : { name, text: passed };
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
      : ((await loadPrepared(planned, kind, who))?.entries ?? []),
  );

function readOffers(description: UpstreamDescription | undefined): Offers {
  if (description === undefined) return ALL_OFFERS;
  const { capabilities } = description;
  const { extensions } = capabilities;
  return toOffers((name) => {
    switch (name) {
      case 'listChanges':
        return true;
      case 'subscriptions':
        return canSubscribe(capabilities);
      case 'tasks':
        return isObject(extensions) && isObject(extensions[TASKS]);
      case 'skills':
      // The gateway knows the files of a skill whose server lists no directories.
      case 'directories':
        return offersList(capabilities, 'skills');
      default:
        return isObject(capabilities[name]);
    }
  });
}

// §18.2: the instructions of several servers as one text.

interface ServerInstructions {
  /** The server's name. */
  readonly name: string;
  readonly text: string;
}

/** Bytes of all, in UTF-8. */
const MAX_BYTES = 8_192;

/** The instructions of one server, without a heading. */
const fitInstructions = (text: string): string =>
  cutBytes(cleanForeignText(text.trim(), MAX_BYTES), MAX_BYTES);

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
    const clean = cleanForeignText(text.trim(), MAX_BYTES);
    const fitted = cutBytes(lowerHeadings(clean), share - Buffer.byteLength(heading));
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
