// §18.2: checks the items of servers' lists: a single item that clients cannot read would make them reject the whole list.

import type { PolicyItem } from '../mcp/calls/policy.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import {
  decodeName,
  findSkillRoot,
  isPlainName,
  listDirectories,
  MAX_DIRECTORIES,
} from '../mcp/catalog/content.ts';
import { canCompile } from '../mcp/catalog/foreign-schema.ts';
import { Findings, LISTED } from '../mcp/protocol/fit.ts';
import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { type Clock, createTurns } from '../platform/clock.ts';
import { toAsciiJson } from '../platform/invisible.ts';
import { isObject } from '../platform/json.ts';
import { type Log, truncateForLog } from '../platform/log.ts';
import { editValue } from '../platform/noted-json.ts';
import { stripUri } from '../platform/secret-texts.ts';
import type { JsonPath } from '../platform/splice-json.ts';
import { quote } from '../platform/text.ts';
import { isAppUri } from './apps/app-tools.ts';
import { cleanItem, hasHidden, MAX_ITEM } from './clean-item.ts';

/** An entry in a form that clients can read. */
interface FittingItem {
  /** Lacks optional members that MCP does not allow. The same object if there are none. */
  readonly item: RawItem;
  /** Why clients cannot use the entry; undefined if they can. Continues a sentence that begins with its name. */
  readonly problem: string | undefined;
  /** Paths of the members that were left out. */
  readonly leftOut: readonly string[];
}

const known = new WeakMap<RawItem, FittingItem>();

/** Each item is of a single kind, so it is checked once. */
export function fitItem(kind: ListKind, item: RawItem): FittingItem {
  const fitting = known.get(item) ?? checkItem(kind, item);
  known.set(item, fitting);
  return fitting;
}

export const findItemProblem = (kind: ListKind, item: RawItem): string | undefined =>
  fitItem(kind, item).problem;

/** Checks each item before the list is served, in turns of the event loop; the findings are remembered with each item. */
export async function checkItems(
  clock: Clock,
  kind: ListKind,
  items: readonly RawItem[],
  checkLock: (item: RawItem) => void,
): Promise<void> {
  const work = createTurns(clock);
  for (const item of items) {
    const isUsable = findItemProblem(kind, item) === undefined;
    if (work.isOver()) await work.next();
    if (isUsable) checkLock(item);
    if (work.isOver()) await work.next();
  }
}

function checkItem(kind: ListKind, raw: RawItem): FittingItem {
  const hide = (why: string): FittingItem => ({ item: raw, problem: why, leftOut: [] });
  const key = raw[LIST_KINDS[kind].key];
  if (typeof key !== 'string') return hide(`has no ${LIST_KINDS[kind].key}`);
  const namingProblem = checkKey(kind, key);
  if (namingProblem !== undefined) return hide(namingProblem);
  if (kind !== 'skills' && cleanItem(raw).isTooLarge)
    return hide(`is larger than ${MAX_ITEM} characters`);
  const found = new Findings();
  if (!LISTED[kind](raw, found))
    return hide(`has a member ${showPath(found.misfit ?? [])} that MCP does not allow`);
  const fitting = editValue(raw, found.list);
  const { outputSchema } = fitting;
  if (kind === 'tools' && isObject(outputSchema) && !canCompile(outputSchema))
    found.list.push({ path: ['outputSchema'] });
  const item = editValue(raw, found.list);
  const leftOut = found.list.map(({ path }) => showPath(path));
  if (kind === 'skills') return { item, problem: findSkillProblem(item), leftOut };
  const { hiding } = cleanItem(item);
  const problem =
    hiding &&
    `has characters that cannot be seen in a name or value that calls must have: ${showName(hiding)}`;
  return { item, problem, leftOut };
}

const showPath = (path: JsonPath): string => showName(path.join('.'));

const MAX_SHOWN = 100;

/** Escaped, so that no two characters look alike. */
export const showName = (name: string): string => {
  const shown = toAsciiJson(name);
  return shown.length <= MAX_SHOWN ? shown : `${shown.slice(0, MAX_SHOWN)}...`;
};

/** MCP "Tool Names". */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;
/** No control, format or private-use characters, no lone surrogates, no line breaks. */
const NAME = /^[^\p{C}\p{Zl}\p{Zp}]{1,1024}$/u;
const MAX_PROMPT_NAME = 128;
const URI = /^[^\p{Cc}\p{Cs}\s]{1,4096}$/u;

const checkUri = (uri: string): string | undefined =>
  URI.test(uri) && !hasHidden(uri)
    ? undefined
    : 'is no URI: it has spaces or characters that cannot be seen, or is too long';

const checkName = (name: string): string | undefined =>
  NAME.test(name) && !hasHidden(name)
    ? undefined
    : 'has a name with characters that cannot be seen, or with more than 1024, or with none';

const checkKey = (kind: ListKind, key: string): string | undefined =>
  LIST_KINDS[kind].key === 'name' ? checkName(key) : checkUri(key);

/** Explains why clients reject a name that is passed on as its server wrote it. */
function findOwnNameProblem(kind: ListKind, name: string): string | undefined {
  if (kind === 'tools' && !TOOL_NAME.test(name))
    return `has a name that clients refuse: it may have 1 to 128 letters, digits, "_", "-" and "." (${SUGGESTION})`;
  return kind === 'prompts' && [...name].length > MAX_PROMPT_NAME
    ? `has a name of more than ${MAX_PROMPT_NAME} characters (${SUGGESTION})`
    : undefined;
}

/** Explains why clients cannot use an item with this name. `isStrict`: they see a different name. */
export const findUseProblem = (
  kind: ListKind,
  item: RawItem,
  isStrict: boolean,
): string | undefined =>
  findItemProblem(kind, item) ??
  (isStrict ? undefined : findOwnNameProblem(kind, String(item[LIST_KINDS[kind].key])));

const SUGGESTION = '"names": "strict" in the configuration file lists it under another one';

/** `isStrict`: clients see a different name. */
export const isNameAllowed = (kind: ListKind, name: string, isStrict: boolean): boolean =>
  checkKey(kind, name) === undefined && (isStrict || findOwnNameProblem(kind, name) === undefined);

// §18.8: each hidden item is logged once, however often it is listed.

/** `problem` ends a sentence that begins with the item. */
export type WarnOfItem = (
  server: string,
  kind: ListKind | 'instructions',
  /** Undefined if the problem concerns the list itself. */
  name: string | undefined,
  problem: string,
) => void;

/** Limit per server: a server chooses its own names, and could fill the log. */
const MAX_WARNINGS = 200;
const MAX_NAME = 100;

/** `more` names the further problems that are not logged once a server has caused too many warnings. */
export function createWarnOfItem(log: Log, more: string): WarnOfItem {
  const said = new Map<string, Set<string>>();

  return function warnOfItem(server, kind, name, problem) {
    const ofServer = said.get(server) ?? new Set();
    said.set(server, ofServer);
    const line = `${kind} ${name} ${problem}`;
    if (ofServer.has(line) || ofServer.size > MAX_WARNINGS) return;
    ofServer.add(line);
    if (ofServer.size > MAX_WARNINGS) {
      log.warn(`Server ${server}: ${more}; the reasons are no longer logged.`);
      return;
    }
    const isUri = kind !== 'instructions' && LIST_KINDS[kind].ruled === 'resource';
    const shown = name !== undefined && isUri ? stripUri(name) : name;
    const what = tellItem(kind, shown);
    log.warn(`Server ${server}: ${what} ${problem}.`, {
      server,
      name: shown && truncateForLog(shown),
    });
  };
}

function tellItem(kind: ListKind | 'instructions', name: string | undefined): string {
  if (kind === 'instructions') return 'its description of itself (instructions)';
  return name === undefined
    ? `the list of its ${kind}`
    : `${LIST_KINDS[kind].noun} ${quote(name, MAX_NAME)}`;
}

// SEP-2640: a skill in a server's list, which is untrusted. It is passed on unchanged or not at all: clients compare it with its
// SKILL.md, and load nothing that differs.

/** SEP-2640 "Limits". */
const MAX_FILES = 512;
const MAX_FILE_BYTES = 16_777_216;
/** Maximum size of a skill as JSON, in characters: 512 files with URIs of some 400 characters, and its description. */
const MAX_SKILL = 262_144;
/** Agent Skills, "name" and "description". */
const SKILL_NAME = /^[a-z0-9-]{1,64}$/;
const MAX_DESCRIPTION = 4_096;

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * Undefined if clients can use the skill; otherwise continues a sentence that begins with the skill's name. The URI was checked
 * earlier.
 */
function findSkillProblem(item: RawItem): string | undefined {
  const { uri, frontmatter, resources } = item;
  const root = typeof uri === 'string' ? findSkillRoot(uri) : undefined;
  if (root === undefined) return 'has a URI that does not end with /SKILL.md';
  // Clients see such URIs with the server's name inserted, but nothing in a skill may be changed.
  if (isAppUri(root)) return 'has a URI of an app (ui://)';
  if (listDirectories(`${root}/`).length >= MAX_DIRECTORIES)
    return `has a URI with ${MAX_DIRECTORIES} slashes or more`;
  if (!root.split('/').every((segment) => segment === '' || isPlainName(segment)))
    return 'has a URI with "." or ".." in it, or with a name that has a slash';
  if (JSON.stringify(item).length > MAX_SKILL) return `is larger than ${MAX_SKILL} characters`;
  if (!isObject(frontmatter)) return 'has no frontmatter';
  const { name, description } = frontmatter;
  if (typeof name !== 'string' || !SKILL_NAME.test(name))
    return 'has a name that Agent Skills do not allow: it may have 1 to 64 lower-case letters, digits and "-"';
  if (decodeName(root.slice(root.lastIndexOf('/') + 1)) !== name)
    return 'has a name that is not the last part of its path';
  if (typeof description !== 'string' || description.trim() === '') return 'has no description';
  if (description.length > MAX_DESCRIPTION)
    return `has a description of more than ${MAX_DESCRIPTION} characters`;
  if (hides(frontmatter)) return 'has characters in its frontmatter that cannot be seen';
  return resources === 'dynamic' ? undefined : findFilesProblem(resources, root);
}

/** True if a string in the value, or a name of a member, has characters that people cannot see but models can read. */
function hides(value: unknown): boolean {
  if (typeof value === 'string') return hasHidden(value);
  if (Array.isArray(value)) return value.some(hides);
  return isObject(value) && Object.entries(value).some((member) => member.some(hides));
}

function findFilesProblem(files: unknown, root: string): string | undefined {
  if (!Array.isArray(files)) return 'lists no files, and does not say that they are "dynamic"';
  if (files.length > MAX_FILES) return `has more than ${MAX_FILES} files`;
  const uris = new Set<string>();
  let bytes = 0;
  for (const file of files) {
    if (!isFile(file)) return 'has a file without a URI, a SHA-256 digest or a size';
    const problem = checkUri(file.uri);
    if (problem !== undefined) return `has a file whose URI ${problem}`;
    if (!file.uri.startsWith(`${root}/`)) return 'has a file outside its folder';
    if (
      !file.uri
        .slice(root.length + 1)
        .split('/')
        .every(isPlainName)
    )
      return 'has a file whose path has "." or ".." in it, or a name that has a slash or none';
    if (uris.has(file.uri)) return 'lists a file twice';
    uris.add(file.uri);
    bytes += file.size;
  }
  if (!uris.has(`${root}/SKILL.md`)) return 'does not list its SKILL.md';
  return bytes > MAX_FILE_BYTES ? `has files of more than ${MAX_FILE_BYTES} bytes` : undefined;
}

const isFile = (file: unknown): file is { readonly uri: string; readonly size: number } =>
  isObject(file) &&
  typeof file.uri === 'string' &&
  typeof file.digest === 'string' &&
  DIGEST.test(file.digest) &&
  typeof file.size === 'number' &&
  Number.isSafeInteger(file.size) &&
  file.size >= 0;

/** The files of a skill that clients can use, as far as the files are known: at least its SKILL.md. */
export function listFiles({ uri, resources }: RawItem, server: string): readonly PolicyItem[] {
  const uris = Array.isArray(resources)
    ? resources.flatMap((file: unknown) => (isFile(file) ? [file.uri] : []))
    : [String(uri)];
  return uris.map((name) => ({ kind: 'resource', name, server, annotations: NO_ANNOTATIONS }));
}

const NO_ANNOTATIONS = {};
