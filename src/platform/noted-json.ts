// Values whose text is known: whoever passes one on writes that text, and not the value, in which doubles stand for numbers.

import { addExactNumbers, parseExactJson, RawJson, toPlain, writeExactJson } from './exact-json.ts';
import {
  decodeUtf8,
  findWritten,
  hasRepeatedNames,
  isObject,
  type JsonObject,
  joinPieces,
  noteWritten,
  parseObject,
} from './json.ts';
import { createNote } from './note.ts';
import { cutJson, cutMembers, findOnlyMember, type JsonPath, spliceJson } from './splice-json.ts';

/** Text and path of a value. The text is searched only once the value is passed on. */
interface Source {
  text: string;
  path: JsonPath;
  isCut: boolean;
}

const SOURCE = createNote<Source | undefined>();
const EXACT = createNote<JsonObject>();

/** Notes that the value is what the text has at the path. */
export function noteSource(value: object, text: string, path: JsonPath): void {
  SOURCE.set(value, { text, path, isCut: false });
}

/** The same of each object among the members of the one at the path. */
export function noteMembers(value: unknown, text: string, path: JsonPath): void {
  if (!isObject(value)) return;
  for (const [name, cut] of cutMembers(text, path)) {
    const member = value[name];
    if (isObject(member)) noteSource(member, cut, []);
  }
}

/** Notes how a value is written that has some of the members of the one at the path. */
export function noteParts(value: JsonObject, text: string, path: JsonPath): void {
  const parts = [...cutMembers(text, path)].filter(([name]) => Object.hasOwn(value, name));
  const members = parts.map(([name, cut]) => `${JSON.stringify(name)}:${cut}`);
  if (members.length > 0) noteSource(value, `{${members.join(',')}}`, []);
}

/** Lets go of the text, for a value that nobody passes on. */
export function forgetSource(value: object): void {
  SOURCE.set(value, undefined);
}

/**
 * The text of the value, if it is known. One in which a member is there twice is written anew, since readers differ in
 * which one counts (RFC 8259 §4), and only one of them was looked at here.
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

/** Undefined where a look at each character is needed: most clients write what `JSON.stringify` does, and each member once. */
function findUsualText(value: object, { text, path }: Source): string | undefined {
  const name = path.at(-1);
  const start = typeof name === 'string' ? findOnlyMember(text, name) : undefined;
  if (start === undefined) return undefined;
  const written = JSON.stringify(value);
  return text.startsWith(written, start) ? written : undefined;
}

/** The value with its numbers as they were spelled: a copy, or itself where it is not known how it was written. */
export function readExact(value: object): JsonObject {
  const known = EXACT.find(value);
  if (known !== undefined) return known;
  const text = findText(value);
  const found = text === undefined ? value : addExactNumbers(value, text);
  const exact = isObject(found) ? found : {};
  // Many rules may look at one call.
  if (text !== undefined) EXACT.set(value, exact);
  return exact;
}

/** The stand-in for the value in a message that `writeExactJson` writes. */
export function toRawJson<Value extends object>(value: Value): Value | RawJson {
  const text = findText(value);
  return text === undefined ? value : new RawJson(text);
}

/** The same of its members: of each object, or of all where it is known how it was written itself. */
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

/** An exact value with plain numbers, whose text is noted; the same one where it has no number that would be lost. */
export function toNoted(exact: JsonObject): JsonObject {
  const plain = toPlain(exact);
  if (plain === exact || !isObject(plain)) return exact;
  noteWritten(plain, writeExactJson(exact));
  return plain;
}

/** Notes how each entry of a list was written in which a number would be lost. */
export function noteEntries(plain: readonly unknown[], exact: unknown): void {
  if (plain === exact || !Array.isArray(exact)) return;
  for (const [index, entry] of plain.entries()) {
    const written: unknown = exact[index];
    if (!isObject(entry) || !isObject(written) || toPlain(written) === written) continue;
    noteWritten(entry, writeExactJson(written));
  }
}

// Values that go on with some of them changed: the text of all else stays as it was written.

export interface ValueEdit {
  readonly path: JsonPath;
  /** Makes of the JSON that stands there what is written in its place; what is there is removed where this is absent. */
  readonly rewrite?: ((json: string) => string) | undefined;
}

/** The very value where there is nothing to edit. */
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

/** With a further member, before all others; the value has some. */
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
