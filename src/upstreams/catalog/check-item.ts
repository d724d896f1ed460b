// §18.2: an entry of a server's list that its clients could not read would cost them the whole list.

import type { RawItem } from '../../mcp/catalog/catalog.ts';
import { toAsciiJson } from '../../platform/invisible.ts';
import { isObject } from '../../platform/json.ts';
import { type Log, truncateForLog } from '../../platform/log.ts';
import { stripUri } from '../../platform/strip-uri.ts';
import { quote } from '../../platform/text.ts';
import { LIST_KINDS, type ListKind } from '../../protocol/list-kinds.ts';
import { findSkillProblem } from '../skills/check-skill.ts';
import { cleanItem, hasHidden, MAX_ITEM } from './clean-item.ts';

type Check = (value: unknown) => boolean;

const known = new WeakMap<RawItem, { readonly problem: string | undefined }>();

/**
 * Why clients cannot use the entry; undefined where they can. The rest of a sentence that begins with its name. Each item is
 * of one kind, and checked once.
 */
export function findItemProblem(kind: ListKind, item: RawItem): string | undefined {
  const found = known.get(item) ?? { problem: checkItem(kind, item) };
  known.set(item, found);
  return found.problem;
}

function checkItem(kind: ListKind, item: RawItem): string | undefined {
  const key = item[LIST_KINDS[kind].key];
  if (typeof key !== 'string') return `has no ${LIST_KINDS[kind].key}`;
  const namingProblem = NAMING_PROBLEMS[kind](key);
  if (namingProblem !== undefined) return namingProblem;
  const checks = Object.entries({ ...COMMON_MEMBERS, ...MEMBERS[kind] });
  const wrong = checks.find(([name, check]) => !check(item[name]));
  if (wrong) return `has a member ${wrong[0]} that MCP does not allow`;
  if (kind === 'skills') return findSkillProblem(item, checkUri);
  const { hiding, isTooLarge } = cleanItem(item);
  if (isTooLarge) return `is larger than ${MAX_ITEM} characters`;
  return hiding === undefined
    ? undefined
    : `has characters that cannot be seen in a name or value that calls must have: ${showName(hiding)}`;
}

const MAX_SHOWN = 100;

/** Each character can be told from all others. */
export const showName = (name: string): string => {
  const shown = toAsciiJson(name);
  return shown.length <= MAX_SHOWN ? shown : `${shown.slice(0, MAX_SHOWN)}...`;
};

/** MCP "Tool Names". */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;
/** No control, format or private characters, no half of a character, no line ends. */
const PROMPT_NAME = /^[^\p{C}\p{Zl}\p{Zp}]{1,128}$/u;
const URI = /^[^\p{Cc}\p{Cs}\s]{1,4096}$/u;

const checkUri = (uri: string): string | undefined =>
  URI.test(uri) && !hasHidden(uri)
    ? undefined
    : 'is no URI: it has spaces or characters that cannot be seen, or is too long';

const NAMING_PROBLEMS: Readonly<Record<ListKind, (key: string) => string | undefined>> = {
  tools: (name) =>
    TOOL_NAME.test(name)
      ? undefined
      : 'has a name that clients refuse: it may have 1 to 128 letters, digits, "_", "-" and "."',
  prompts: (name) =>
    PROMPT_NAME.test(name) && !hasHidden(name)
      ? undefined
      : 'has a name with characters that cannot be seen, or with more than 128',
  resources: checkUri,
  templates: checkUri,
  skills: checkUri,
};

export const isNameAllowed = (kind: ListKind, name: string): boolean =>
  NAMING_PROBLEMS[kind](name) === undefined;

const isText: Check = (value) => typeof value === 'string';
const isListOf =
  (isItem: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(isItem);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const isObjectSchema: Check = (value) => isObject(value) && value.type === 'object';

const COMMON_MEMBERS: Readonly<Record<string, Check>> = {
  title: optional(isText),
  description: optional(isText),
  annotations: optional(isObject),
  icons: optional(isListOf((icon) => isObject(icon) && isText(icon.src))),
  _meta: optional(isObject),
};

const MEMBERS: Readonly<Record<ListKind, Readonly<Record<string, Check>>>> = {
  tools: { inputSchema: isObjectSchema, outputSchema: optional(isObject) },
  prompts: {
    arguments: optional(
      isListOf(
        (argument) =>
          isObject(argument) &&
          isText(argument.name) &&
          optional(isText)(argument.description) &&
          optional((value) => typeof value === 'boolean')(argument.required),
      ),
    ),
  },
  resources: { name: isText, mimeType: optional(isText), size: optional(Number.isFinite) },
  templates: { name: isText, mimeType: optional(isText) },
  skills: { frontmatter: isObject },
};

// §18.8: what is hidden is said once, however often it is listed.

/** `problem` ends a sentence that begins with the item. */
export type WarnOfItem = (
  server: string,
  kind: ListKind | 'instructions',
  /** Undefined for the list itself. */
  name: string | undefined,
  problem: string,
) => void;

/** Of each server; it chooses its names, so that it could fill the log. */
const MAX_WARNINGS = 200;
const MAX_NAME = 100;

export function createWarnOfItem(log: Log): WarnOfItem {
  const said = new Map<string, Set<string>>();

  return function warnOfItem(server, kind, name, problem) {
    const ofServer = said.get(server) ?? new Set();
    said.set(server, ofServer);
    const line = `${kind} ${name} ${problem}`;
    if (ofServer.has(line) || ofServer.size > MAX_WARNINGS) return;
    ofServer.add(line);
    if (ofServer.size > MAX_WARNINGS) {
      log.warn(
        `Server ${server}: more of what it lists is hidden; the reasons are no longer logged.`,
      );
      return;
    }
    const isUri = kind === 'resources' || kind === 'templates' || kind === 'skills';
    const shown = name !== undefined && isUri ? stripUri(name) : name;
    const what = tellItem(kind, shown);
    log.warn(`Server ${server}: ${what} ${problem}.`, {
      server,
      name: shown && truncateForLog(shown),
    });
  };
}

function tellItem(kind: ListKind | 'instructions', name: string | undefined): string {
  if (kind === 'instructions') return 'what it says of itself (its instructions)';
  return name === undefined
    ? `the list of its ${kind}`
    : `${LIST_KINDS[kind].noun} ${quote(name, MAX_NAME)}`;
}
