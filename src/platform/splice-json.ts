// Parts of a JSON text found, removed and replaced in it, so that all the rest stays as it was written. For texts that were parsed
// already: of what is no JSON, or deeper than it may be, the results mean nothing.
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

/** Names of members, and positions in arrays. */
export type JsonPath = readonly (string | number)[];

export interface JsonEdit {
  readonly path: JsonPath;
  /** Written there instead; without it, the member or entry is removed. */
  readonly json?: string;
}

/**
 * The text after the edits. Positions in arrays are those before them. A path that leads nowhere changes nothing; one to a member
 * that is there twice changes both. An edit within what another one removes or replaces is void.
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

/** The text of the value there, as `JSON.parse` takes it: of members of one name the last. Undefined where there is none. */
export function cutJson(text: string, path: JsonPath): string | undefined {
  const start = findValue(text, path);
  return start === undefined ? undefined : text.slice(start, findEndOfValue(text, start));
}

/** Those of all members of the object there, by their names: however many they are, the text is gone through once. */
export function cutMembers(text: string, path: JsonPath): ReadonlyMap<string, string> {
  const cut = new Map<string, string>();
  const start = findValue(text, path);
  if (start !== undefined)
    eachMember(text, start, (name, from, to) => {
      if (typeof name === 'string') cut.set(name, text.slice(from, to));
    });
  return cut;
}

/** The text of an object without its members of these names. */
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

/** Where the value of a member begins that is there, by the engine's search; undefined where its name may be there twice, at any depth. */
export function findOnlyMember(text: string, name: string): number | undefined {
  const quoted = `"${name}"`;
  const start = text.indexOf(quoted);
  // Its name, without characters that JSON may escape, is there once in quotes, and none is spelled by its code: so it is no other's.
  const isOnly = start !== -1 && text.indexOf(quoted, start + 1) === -1 && !text.includes('\\u');
  return isOnly ? findValueOfMember(text, start) : undefined;
}

/** The place where it begins. */
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

/** Tells of each member, or entry, where its value begins and ends, and where it begins itself; of what has none nothing. */
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

/** Edits of a value, or of values in it. */
interface Change {
  edit?: JsonEdit;
  readonly members: Map<string | number, Change>;
}

/** An array or object that was opened. */
interface OpenContainer {
  readonly members: Change['members'];
  readonly isArray: boolean;
  /** Members so far. */
  index: number;
  /** The end of the last one that stays. */
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
    // Not by calling itself: as deep as a text is, so deep are paths into it.
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

  /** Behind the comma that is before it, if any, to behind its value, or into it. */
  #readMember(from: number, parent: OpenContainer, open: OpenContainer[]): number {
    const text = this.#text;
    const start = text.charCodeAt(from) === COMMA ? skipSpace(text, from + 1) : from;
    const key = parent.isArray ? parent.index : readKey(text, start);
    const value = parent.isArray ? start : findValueOfMember(text, start);
    parent.index += 1;
    const change = parent.members.get(key);
    if (change?.edit !== undefined && change.edit.json === undefined) {
      const end = findEndOfValue(text, value);
      // A comma goes with it: the one before it, or the one behind it where nothing stays before it.
      if (parent.keptEnd === undefined) this.#replace(start, skipComma(text, end), '');
      else this.#replace(parent.keptEnd, end, '');
      return end;
    }
    const end = this.#enter(value, change, open);
    parent.keptEnd = end;
    return end;
  }

  /** The end of the value, or where its members begin where some of them change. */
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

/** To what follows a value: a further member, or the end of what is around. */
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
      // It closes the value around a number or a word.
      if (depth === 0) return at;
      depth--;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (character === COMMA || character <= 0x20)) return at;
  }
  return text.length;
}
