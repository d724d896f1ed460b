// Finds, removes and replaces parts of JSON text, and leaves the rest as written. The text must have been parsed successfully:
// results for invalid or overly deep JSON are meaningless.
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  findEndOfString,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  readKey,
  skipSpace,
} from './exact-json.ts';

/** Member names and array indexes. */
export type JsonPath = readonly (string | number)[];

export interface JsonEdit {
  readonly path: JsonPath;
  /** The replacement. If absent, the member or entry is removed. */
  readonly json?: string;
}

/**
 * Applies the edits. Array indexes are those before the edits. A path that does not exist changes nothing; a path to a repeated
 * member changes each occurrence. An edit inside a part that another edit removes or replaces has no effect.
 */
export function spliceJson(text: string, edits: readonly JsonEdit[]): string {
  if (edits.length === 0) return text;
  const top: Change = { members: new Map() };
  for (const edit of edits) {
    let change = top;
    for (const step of edit.path) {
      const known = change.members.get(step) ?? { members: new Map() };
      change.members.set(step, known);
      change = known;
    }
    change.edit = edit;
  }
  let written = '';
  let copied = 0;
  // Iterative: paths can be as deep as the text.
  const open: OpenContainer[] = [];
  let at = enter(skipSpace(text, 0), top);
  for (let parent = open.at(-1); parent !== undefined; parent = open.at(-1)) {
    at = skipSpace(text, at);
    if (isClosing(text, at)) {
      open.pop();
      at += 1;
      const around = open.at(-1);
      if (around !== undefined) around.keptEnd = at;
    } else at = readMember(at, parent);
  }
  return written + text.slice(copied);

  /** Reads one member with the comma before it; returns the end of its value, or the start of its members. */
  function readMember(from: number, parent: OpenContainer): number {
    const start = text.charCodeAt(from) === COMMA ? skipSpace(text, from + 1) : from;
    const key = parent.isArray ? parent.index : readKey(text, start);
    const value = parent.isArray ? start : findValueOfMember(text, start);
    parent.index += 1;
    const change = parent.members.get(key);
    if (change?.edit !== undefined && change.edit.json === undefined) {
      const end = findEndOfValue(text, value);
      // Also removes a comma: the one before the member, or, if nothing before the member is kept, the one after it.
      if (parent.keptEnd === undefined) replace(start, skipComma(text, end), '');
      else replace(parent.keptEnd, end, '');
      return end;
    }
    parent.keptEnd = enter(value, change);
    return parent.keptEnd;
  }

  /** Returns the end of the value, or the start of its members if some of them change. */
  function enter(start: number, change: Change | undefined): number {
    const json = change?.edit?.json;
    if (
      change !== undefined &&
      json === undefined &&
      change.members.size > 0 &&
      isContainer(text, start)
    ) {
      const isArray = text.charCodeAt(start) === OPEN_ARRAY;
      open.push({ members: change.members, isArray, index: 0 });
      return start + 1;
    }
    const end = findEndOfValue(text, start);
    if (json !== undefined) replace(start, end, json);
    return end;
  }

  function replace(start: number, end: number, json: string) {
    written += text.slice(copied, Math.max(copied, start)) + json;
    copied = end;
  }
}

/** The text of the value at the path; the last one for a repeated member, as in `JSON.parse`. Undefined if absent. */
export function cutJson(text: string, path: JsonPath): string | undefined {
  const start = findValue(text, path);
  return start === undefined ? undefined : text.slice(start, findEndOfValue(text, start));
}

/** The JSON text of all members of the object at the path, by name, in a single pass. */
export function cutMembers(text: string, path: JsonPath): ReadonlyMap<string, string> {
  const cut = new Map<string, string>();
  const start = findValue(text, path);
  if (start !== undefined)
    eachMember(text, start, (name, from, to) => {
      if (typeof name === 'string') cut.set(name, text.slice(from, to));
    });
  return cut;
}

/** Removes members by name from the text of an object. */
export const removeMembers = (text: string, names: readonly string[]): string =>
  spliceJson(
    text,
    names.map((name) => ({ path: [name] })),
  );

/** The start of the value at the path. */
function findValue(text: string, path: JsonPath): number | undefined {
  let start = skipSpace(text, 0);
  for (const step of path) {
    let found: number | undefined;
    eachMember(text, start, (key, from) => {
      if (key === step) found = from;
    });
    if (found === undefined) return undefined;
    start = found;
  }
  return start;
}

/** Calls `tell` for each member or entry with its key, and the start and end of its value. */
function eachMember(
  text: string,
  start: number,
  tell: (key: string | number, from: number, to: number) => void,
) {
  if (!isContainer(text, start)) return;
  const isArray = text.charCodeAt(start) === OPEN_ARRAY;
  let at = skipSpace(text, start + 1);
  for (let index = 0; !isClosing(text, at); index++) {
    const key = isArray ? index : readKey(text, at);
    const from = isArray ? at : findValueOfMember(text, at);
    const to = findEndOfValue(text, from);
    tell(key, from, to);
    at = skipComma(text, to);
  }
}

/** Edits to a value or to values inside it. */
interface Change {
  edit?: JsonEdit;
  readonly members: Map<string | number, Change>;
}

/** An array or object that is being read. */
interface OpenContainer {
  readonly members: Change['members'];
  readonly isArray: boolean;
  /** Members read so far. */
  index: number;
  /** End of the last member that is kept. */
  keptEnd?: number;
}

const isContainer = (text: string, at: number) =>
  text.charCodeAt(at) === OPEN_OBJECT || text.charCodeAt(at) === OPEN_ARRAY;

const isClosing = (text: string, at: number) =>
  at >= text.length || text.charCodeAt(at) === CLOSE_OBJECT || text.charCodeAt(at) === CLOSE_ARRAY;

/** Skips to the next member, or to the end of the enclosing value. */
function skipComma(text: string, end: number) {
  const at = skipSpace(text, end);
  return text.charCodeAt(at) === COMMA ? skipSpace(text, at + 1) : at;
}

function findValueOfMember(text: string, start: number) {
  let at = findEndOfString(text, start) + 1;
  while (at < text.length && text.charCodeAt(at) !== COLON) at++;
  return skipSpace(text, at + 1);
}

function findEndOfValue(text: string, start: number) {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) {
      at = findEndOfString(text, at);
      if (depth === 0) return at + 1;
    } else if (character === OPEN_OBJECT || character === OPEN_ARRAY) depth++;
    else if (character === CLOSE_OBJECT || character === CLOSE_ARRAY) {
      // Closes the value that encloses a number or literal.
      if (depth === 0) return at;
      depth--;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (character === COMMA || character <= 0x20)) return at;
  }
  return text.length;
}
