// Values that go on with some of them changed: the text of all else stays as it was written.
import { type JsonObject, noteWritten, parseObject } from './json.ts';
import { findText } from './noted-json.ts';
import { cutJson, type JsonPath, spliceJson } from './splice-json.ts';

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

function readNoted(text: string): JsonObject | undefined {
  const value = parseObject(text);
  if (value !== undefined) noteWritten(value, text);
  return value;
}

const readText = (value: JsonObject): string => findText(value) ?? JSON.stringify(value);
