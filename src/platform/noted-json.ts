// Remembers the source text of parsed values, so that a value can be forwarded as that text, with numbers as spelled.

import { addExactNumbers, parseExactJson, RawJson, toPlain, writeExactJson } from './exact-json.ts';
import {
  createNote,
  decodeUtf8,
  findWritten,
  hasRepeatedNames,
  isObject,
  type JsonObject,
  noteWritten,
  parseObject,
} from './json.ts';
import { joinPieces } from './pieces.ts';
import { cutJson, cutMembers, type JsonPath, spliceJson } from './splice-json.ts';

/** The text that contains a value, and the value's path. The text is searched only when the value is forwarded. */
interface Source {
  text: string;
  path: JsonPath;
  isCut: boolean;
}

const SOURCE = createNote<Source | undefined>();
const EXACT = createNote<JsonObject>();

/** Notes that the value was parsed from the text at the path. */
export function noteSource(value: object, text: string, path: JsonPath): void {
  SOURCE.set(value, { text, path, isCut: false });
}

/** Notes the text of each member that is an object. */
export function noteMembers(value: unknown, text: string, path: JsonPath): void {
  if (!isObject(value)) return;
  for (const [name, cut] of cutMembers(text, path)) {
    const member = value[name];
    if (isObject(member)) noteSource(member, cut, []);
  }
}

/** Records the text of a value that consists of some members of the value at the path. */
export function noteParts(value: JsonObject, text: string, path: JsonPath): void {
  const parts = [...cutMembers(text, path)].filter(([name]) => Object.hasOwn(value, name));
  const members = parts.map(([name, cut]) => `${JSON.stringify(name)}:${cut}`);
  if (members.length > 0) noteSource(value, `{${members.join(',')}}`, []);
}

/** Releases the text of a value that will not be forwarded. */
export function forgetSource(value: object): void {
  SOURCE.set(value, undefined);
}

/**
 * The text of the value, if known. Text with a repeated member name is serialized again: parsers differ in which member they use
 * (RFC 8259 §4), and only one was checked here.
 */
export function findText(value: object): string | undefined {
  const written = findWritten(value);
  if (written !== undefined)
    return typeof written === 'string' ? written : decodeUtf8(joinPieces(written));
  const source = SOURCE.find(value);
  if (source === undefined || source.isCut) return source?.text;
  const text = findUsualText(value, source) ?? cutText(source);
  if (text === undefined) return undefined;
  source.text = text;
  source.isCut = true;
  return text;
}

function cutText({ text, path }: Source) {
  const cut = cutJson(text, path);
  return cut !== undefined && hasRepeatedNames(cut) ? writeExactJson(parseExactJson(cut)) : cut;
}

/** Fast path, since most clients write JSON like `JSON.stringify`. Undefined if the text has to be scanned. */
function findUsualText(value: object, { text, path }: Source): string | undefined {
  const name = path.at(-1);
  if (typeof name !== 'string') return undefined;
  const quoted = `"${name}"`;
  const start = text.indexOf(quoted);
  // The quoted name occurs once, and nothing is written with `\u`, so no other member can have it.
  if (start === -1 || text.includes(quoted, start + 1) || text.includes('\\u')) return undefined;
  const written = JSON.stringify(value);
  return text.startsWith(`:${written}`, start + quoted.length) ? written : undefined;
}

/** The value with numbers as spelled: a copy, or the value itself if its text is not known. */
export function readExact(value: object): JsonObject {
  const known = EXACT.find(value);
  if (known !== undefined) return known;
  const text = findText(value);
  const found = text === undefined ? value : addExactNumbers(value, text);
  const exact = isObject(found) ? found : {};
  // Cached: several rules may read one call.
  if (text !== undefined) EXACT.set(value, exact);
  return exact;
}

/** Replaces the value with its text, for `writeExactJson`. */
export function toRawJson<Value extends object>(value: Value): Value | RawJson {
  const text = findText(value);
  return text === undefined ? value : new RawJson(text);
}

/** Replaces members with their text: all members if the value's text is known, otherwise each object whose text is known. */
export function toRawMembers(value: JsonObject): JsonObject {
  const parts = cutMembers(findText(value) ?? '', []);
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const cut = parts.get(name);
      if (cut !== undefined) return [name, new RawJson(cut)];
      return [name, isObject(member) ? toRawJson(member) : member];
    }),
  );
}

/** Converts an exact value to plain numbers and notes its text. Returns the same value if no number would be lost. */
export function toNoted(exact: JsonObject): JsonObject {
  const plain = toPlain(exact);
  if (plain === exact || !isObject(plain)) return exact;
  noteWritten(plain, writeExactJson(exact));
  return plain;
}

/** Notes the text of each list entry in which a number would be lost. */
export function noteEntries(plain: readonly unknown[], exact: unknown): void {
  if (plain === exact || !Array.isArray(exact)) return;
  for (const [index, entry] of plain.entries()) {
    const written: unknown = exact[index];
    if (!isObject(entry) || !isObject(written) || toPlain(written) === written) continue;
    noteWritten(entry, writeExactJson(written));
  }
}

// Edits values, and keeps the text of everything else.

export interface ValueEdit {
  readonly path: JsonPath;
  /** Maps the JSON at the path to its replacement. If absent, the value is removed. */
  readonly rewrite?: ((json: string) => string) | undefined;
}

/** Returns the same value if there is nothing to edit. */
export function editValue(value: JsonObject, edits: readonly ValueEdit[]): JsonObject {
  if (edits.length === 0) return value;
  const text = readText(value);
  const edited = spliceJson(
    text,
    edits.map(({ path, rewrite }) =>
      rewrite === undefined ? { path } : { path, json: rewrite(cutJson(text, path) ?? 'null') },
    ),
  );
  return readNoted(edited) ?? value;
}

/** Adds a member before all others; the value must not be empty. */
export const addMember = (value: JsonObject, name: string, json: string): JsonObject =>
  readNoted(`{${JSON.stringify(name)}:${json},${readText(value).trimStart().slice(1)}`) ?? {
    [name]: JSON.parse(json),
    ...value,
  };

function readNoted(text: string) {
  const value = parseObject(text);
  if (value !== undefined) noteWritten(value, text);
  return value;
}

const readText = (value: JsonObject) => findText(value) ?? JSON.stringify(value);
