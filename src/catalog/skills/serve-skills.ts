// SEP-2640: serves a single skill, and the contents of a directory, from the server that owns them. The results are treated like
// lists: rules, the lock and guards apply to them.

import { fail } from '../../errors/gateway-error.ts';
import type { GuardPoint } from '../../mcp/calls/guards.ts';
import type { Cursor, Page, RawItem, RawResult } from '../../mcp/catalog/catalog.ts';
import { DIRECTORY, decodeName, isPlainName, listChildren } from '../../mcp/catalog/content.ts';
import type { CallerContext, ServedCatalog } from '../../mcp/catalog/served-catalog.ts';
import { failNoDirectory, failUnknownItem } from '../../mcp/protocol/list-kinds.ts';
import { canReadDirectories, offersList } from '../../mcp/upstream/envelope.ts';
import type { RelayedRequest } from '../../mcp/upstream/server-request.ts';
import { isObject } from '../../platform/json.ts';
import { toMovedUri } from '../apps/app-tools.ts';
import { toJudgedKind } from '../built-in.ts';
import { findIn } from '../caller-lists.ts';
import { NO_LIST } from '../fetch-list.ts';
import { renameSkill } from '../join-lists.ts';
import type { PassOn } from '../pass-on.ts';
import { toWho, type Who } from '../plan.ts';
import { BUILT_IN, type Entry, toJudgedList } from '../prepare-list.ts';
import {
  findBuiltIn,
  findDenial,
  guardUri,
  isUnseen,
  type ServedPath,
  toItem,
} from '../served-path.ts';
import { type FoundResource, failAtServer, toShownItem, type View } from '../view.ts';
import { findSkillAround, isRenamed, locateFile } from './skill-files.ts';

export function createServeSkills(
  path: ServedPath,
  passOn: PassOn,
  resolveResource: View['findResource'],
): Pick<ServedCatalog, 'getSkill' | 'readDirectory'> {
  const { view, access, served } = path;

  /** Sends a request. If a guard should have checked the server's words about a failure, hides them. */
  async function ask(
    server: string,
    request: RelayedRequest,
    point: GuardPoint,
    context: CallerContext,
  ): Promise<RawResult> {
    try {
      return await passOn(server, toWho(context, context), request, context);
    } catch (thrown) {
      if (!isUnseen(served.current, point, thrown)) throw thrown;
      return failAtServer(server, 'could not say it', thrown);
    }
  }

  /** Like the preparation of lists: removes items that clients could not use, that are not approved, or that a guard hides. */
  async function prepare(server: string, kind: 'skills' | 'resources', items: readonly RawItem[]) {
    const { servers, listGuards, naming } = served.current;
    const planned = servers.get(server);
    if (planned === undefined) return [];
    const list = { ...NO_LIST, kind, items };
    await listGuards?.judge(toJudgedList(list, planned.config, naming));
    return planned.prepareList(list).entries;
  }

  // Serves one skill.

  async function getSkill(uri: string, context: CallerContext) {
    const who = toWho(context, context);
    const listed = findIn(await view.list('skills', who), uri);
    if (listed !== undefined && !access.mayList(listed, who)) return failUnknownItem('skills', uri);
    if (listed?.server === BUILT_IN) return { skill: toShownItem(view, listed) };
    const place =
      listed === undefined
        ? await findUnlisted(uri, context)
        : { server: listed.server, ownUri: listed.ownName, isRenamed: isRenamed(listed) };
    const { server, ownUri } = place;
    const request = { method: 'skills/get', params: { uri: ownUri } } as const;
    const { skill, cache } = await ask(server, request, 'skills/list', context);
    if (!isObject(skill) || skill.uri !== ownUri)
      return failAtServer(server, 'did not answer with the skill');
    const [own] = await prepare(server, 'skills', [skill]);
    const entry = own && place.isRenamed ? renameSkill(own) : own;
    if (entry === undefined || !(await isServed(entry, who))) return failUnknownItem('skills', uri);
    return { skill: toShownItem(view, entry), ...(cache && { cache }) };
  }

  /** SEP-2640: a skill may be unlisted, so the server that owns the resource is asked. */
  async function findUnlisted(uri: string, context: CallerContext) {
    const who = toWho(context, context);
    const found = await resolveResource(uri, who);
    if (found === undefined || found.server === BUILT_IN) return failUnknownItem('skills', uri);
    const facts = findDenial(served.current.policies, toItem(found), who);
    if (facts !== undefined) return failUnknownItem('skills', uri, { facts });
    const description = await view
      .findServer(found.server)
      ?.lists.describe(who.upstream, who.patience);
    return description !== undefined &&
      offersList(description.capabilities, 'skills') &&
      (await guardUri(path, 'resources/read', toItem(found), context))
      ? { server: found.server, ownUri: found.ownUri, isRenamed: found.uri !== found.ownUri }
      : failUnknownItem('skills', uri);
  }

  /** False if another server lists one of the skill's files, since the file would then be read there. */
  async function isServed(entry: Entry, who: Who): Promise<boolean> {
    const { server, files = [] } = entry;
    if (!access.mayList(entry, who)) return false;
    for (const { name } of files) {
      if (!view.includes({ server, uri: name })) return false;
      if (view.shown === 'own') continue;
      const owner = await view.findListed(name, who);
      if (owner !== undefined && owner.server !== server) return false;
    }
    return true;
  }

  // Lists the contents of a directory.

  async function readDirectory(
    uri: string,
    cursor: Cursor,
    context: CallerContext,
  ): Promise<Page<RawItem>> {
    const who = toWho(context, context);
    const { entries: skills } = await view.list('skills', who);
    const skill = findSkillAround(skills, uri, view.shown);
    const found = skill ? locateFile(skill, uri, view.shown) : await resolveResource(uri, who);
    if (found === undefined) return failNoDirectory(uri);
    const directory = { ...found, uri: toDirectory(found.uri) };
    if (!view.includes(directory)) return failNoDirectory(uri);
    const facts = findDenial(served.current.policies, toItem(directory), who);
    if (facts !== undefined) return failNoDirectory(uri, facts);
    const page =
      found.server === BUILT_IN
        ? await readBuiltIn(uri, cursor, context)
        : await readAtServer({ ...found, clientUri: uri }, skill, cursor, context);
    const items = page.entries
      .map((entry) => toVisible(entry, found, who))
      .filter((item) => item !== undefined);
    const { nextCursor } = page;
    return { items, ...(typeof nextCursor === 'string' && { nextCursor }) };
  }

  async function readBuiltIn(
    uri: string,
    cursor: Cursor,
    context: CallerContext,
  ): Promise<ReadPage> {
    const page = await findBuiltIn(path)?.readDirectory(uri, cursor, context);
    if (page === undefined) return failNoDirectory(uri);
    const items = page.items.map((item) => ({ ...item }));
    const { listGuards } = served.current;
    const list = toJudgedKind('resources');
    await listGuards?.judge({ ...list, items });
    const entries = items.flatMap((item) => {
      const verdict = listGuards?.peek(list, item);
      if (verdict?.kind === 'hidden') return [];
      return [toChild(verdict?.item ?? item, BUILT_IN)];
    });
    return { entries, nextCursor: page.nextCursor };
  }

  /** `clientUri` is the URI as the client wrote it; `skill` is the skill that contains the directory. */
  async function readAtServer(
    found: FoundResource & { readonly clientUri: string },
    skill: Entry | undefined,
    cursor: Cursor,
    context: CallerContext,
  ): Promise<ReadPage> {
    const { server, ownUri, clientUri: uri } = found;
    const who = toWho(context, context);
    const description = await view.findServer(server)?.lists.describe(who.upstream, who.patience);
    if (description === undefined || !canReadDirectories(description.capabilities)) {
      // A server that lists no directories still lists the files of its skill.
      const files = skill?.ownItem.resources;
      const described = (Array.isArray(files) ? files : []).map(describeFile);
      const children = listChildren(described, ownUri);
      if (children === undefined) return failNoDirectory(uri);
      if (cursor !== undefined) fail('invalid_params', { details: 'params.cursor is not known' });
      const listed = children.map((child) => ({ ...child }));
      return { entries: await prepare(server, 'resources', listed), nextCursor: undefined };
    }
    const page = cursor !== undefined && { cursor };
    if (!(await guardUri(path, 'resources/read', { ...toItem(found), cursor }, context)))
      return failNoDirectory(uri);
    const params = { uri: ownUri, ...page };
    const request = { method: 'resources/directory/read', params } as const;
    const { resources, nextCursor } = await ask(server, request, 'resources/list', context);
    if (!Array.isArray(resources)) return failAtServer(server, `did not say what ${uri} has`);
    const items = resources.slice(0, MAX_CHILDREN).filter((item) => isChild(item, ownUri));
    return { entries: await prepare(server, 'resources', items), nextCursor };
  }

  /** The item as clients see it; undefined if the caller has no access. */
  function toVisible(own: Entry, directory: FoundResource, who: Who): RawItem | undefined {
    const isMoved = directory.uri !== directory.ownUri;
    const name = isMoved ? toMovedUri(own.server, own.ownName) : own.ownName;
    const isDirectory = own.ownItem.mimeType === DIRECTORY;
    const entry = { ...own, name: isDirectory ? toDirectory(name) : name };
    if (!access.mayList(entry, who)) return undefined;
    if (!view.includes({ server: own.server, uri: entry.name })) return undefined;
    return view.shown === 'own' ? own.ownItem : { ...own.ownItem, uri: name };
  }

  return { getSkill, readDirectory };
}

interface ReadPage {
  readonly entries: readonly Entry[];
  readonly nextCursor: unknown;
}

/** Maximum entries per page. */
const MAX_CHILDREN = 10_000;

/**
 * The form of a directory's URI that rules and views check: a pattern for its contents (`skill://refunds/*`) also matches the
 * directory itself.
 */
const toDirectory = (uri: string): string => (uri.endsWith('/') ? uri : `${uri}/`);

/** True if the item is directly in the directory: a server may not list any others. */
function isChild(item: unknown, directory: string): item is RawItem {
  if (!isObject(item) || typeof item.uri !== 'string') return false;
  const start = toDirectory(directory);
  return item.uri.startsWith(start) && isPlainName(item.uri.slice(start.length));
}

const toChild = (item: RawItem, server: string): Entry => {
  const uri = String(item.uri);
  return {
    kind: 'resource',
    server,
    ownName: uri,
    name: uri,
    ownItem: item,
    item,
    annotations: {},
  };
};

function describeFile(file: unknown): { readonly uri: string; readonly name: string } {
  const uri = String(isObject(file) ? file.uri : '');
  return { uri, name: decodeName(uri.slice(uri.lastIndexOf('/') + 1)) };
}
