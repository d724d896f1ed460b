// Finds, removes and replaces parts of JSON text, leaving the rest as written. For text that was parsed successfully: results
// for invalid or overly deep JSON are meaningless.
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
  /** The replacement. Absent: the member or entry is removed. */
  readonly json?: string;
}

/**
 * Applies the edits. Array indexes are those before the edits. A path that leads nowhere changes nothing; one to a repeated
 * member changes each. An edit inside a part that another edit removes or replaces has no effect.
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
  return new Splice(text).apply(top);
}

/** The text of the value at the path; the last one for a repeated member, as in `JSON.parse`. Undefined if absent. */
export function cutJson(text: string, path: JsonPath): string | undefined {
  const start = findValue(text, path);
  return start === undefined ? undefined : text.slice(start, findEndOfValue(text, start));
}

/** The texts of all members of the object at the path, by name, in a single pass. */
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
export function removeMembers(text: string, names: readonly (string | number)[]): string {
  if (names.length === 0) return text;
  let kept = '';
  let start = -1;
  let end = -1;
  eachMember(text, skipSpace(text, 0), (name, _from, to, at) => {
    if (!names.includes(name)) {
      if (start === -1) start = at;
      end = to;
    } else if (start !== -1) {
      kept += `${text.slice(start, end)},`;
      start = -1;
    }
  });
  return `{${start === -1 ? kept.slice(0, -1) : kept + text.slice(start, end)}}`;
}

/** Start of a member's value, by `indexOf`; undefined if the name may occur more than once, at any depth. */
export function findOnlyMember(text: string, name: string): number | undefined {
  const quoted = `"${name}"`;
  const start = text.indexOf(quoted);
  // The quoted name occurs once, and nothing is written with `\u`: so no other member can have it.
  const isOnly = start !== -1 && text.indexOf(quoted, start + 1) === -1 && !text.includes('\\u');
  return isOnly ? findValueOfMember(text, start) : undefined;
}

/** Start of the value at the path. */
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

/** Calls `tell` for each member or entry with its key, the start and end of its value, and its own start. */
function eachMember(
  text: string,
  start: number,
  tell: (key: string | number, from: number, to: number, at: number) => void,
) {
  if (!isContainer(text, start)) return;
  const isArray = text.charCodeAt(start) === OPEN_ARRAY;
  let at = skipSpace(text, start + 1);
  for (let index = 0; !isClosing(text, at); index++) {
    const key = isArray ? index : readKey(text, at);
    const from = isArray ? at : findValueOfMember(text, at);
    const to = findEndOfValue(text, from);
    tell(key, from, to, at);
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

class Splice {
  readonly #text: string;
  #written = '';
  #copied = 0;

  constructor(text: string) {
    this.#text = text;
  }

  apply(top: Change): string {
    const text = this.#text;
    // Iterative: paths can be as deep as the text.
    const open: OpenContainer[] = [];
    let at = this.#enter(skipSpace(text, 0), top, open);
    for (let parent = open.at(-1); parent !== undefined; parent = open.at(-1)) {
      at = skipSpace(text, at);
      if (isClosing(text, at)) {
        open.pop();
        at += 1;
        const around = open.at(-1);
        if (around !== undefined) around.keptEnd = at;
      } else at = this.#readMember(at, parent, open);
    }
    return this.#written + text.slice(this.#copied);
  }

  /** Reads one member with the comma before it; returns the end of its value, or the start of its members. */
  #readMember(from: number, parent: OpenContainer, open: OpenContainer[]): number {
    const text = this.#text;
    const start = text.charCodeAt(from) === COMMA ? skipSpace(text, from + 1) : from;
    const key = parent.isArray ? parent.index : readKey(text, start);
    const value = parent.isArray ? start : findValueOfMember(text, start);
    parent.index += 1;
    const change = parent.members.get(key);
    if (change?.edit !== undefined && change.edit.json === undefined) {
      const end = findEndOfValue(text, value);
      // Removes a comma, too: the one before the member, or the one after it if nothing before it is kept.
      if (parent.keptEnd === undefined) this.#replace(start, skipComma(text, end), '');
      else this.#replace(parent.keptEnd, end, '');
      return end;
    }
    const end = this.#enter(value, change, open);
    parent.keptEnd = end;
    return end;
  }

  /** Returns the end of the value, or the start of its members if some of them change. */
  #enter(start: number, change: Change | undefined, open: OpenContainer[]): number {
    const text = this.#text;
    if (change?.edit?.json !== undefined) {
      const end = findEndOfValue(text, start);
      this.#replace(start, end, change.edit.json);
      return end;
    }
    if (change === undefined || change.members.size === 0 || !isContainer(text, start))
      return findEndOfValue(text, start);
    const isArray = text.charCodeAt(start) === OPEN_ARRAY;
    open.push({ members: change.members, isArray, index: 0 });
    return start + 1;
  }

  #replace(start: number, end: number, json: string): void {
    this.#written += this.#text.slice(this.#copied, Math.max(this.#copied, start)) + json;
    this.#copied = end;
  }
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
