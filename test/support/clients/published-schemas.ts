// The published schemas, cut out of the one file of the conformance tool that carries them.
import { runInNewContext } from 'node:vm';

/** What is looked at here; the rest is ajv's. */
export interface Definition {
  readonly $ref?: string;
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Definition>>;
  readonly allOf?: readonly Definition[];
  readonly anyOf?: readonly Definition[];
}

export interface Published {
  readonly $schema: string;
  readonly definitions?: Readonly<Record<string, Definition>>;
  readonly $defs?: Readonly<Record<string, Definition>>;
}

const SCHEMA = /([\w$]+)=(\{\$schema:`[^`]+`,(?:definitions|\$defs):\{)/g;
const BY_REVISION =
  /\{"2025-03-26":([\w$]+),"2025-06-18":([\w$]+),"2025-11-25":([\w$]+),\[([\w$]+)\]:([\w$]+)\}/;

/**
 * By revision, as the tool itself says which is which.
 * @throws when the tool is not built as this one is: other schemas, or no such table.
 */
export function findPublishedSchemas(source: string): ReadonlyMap<string, Published> {
  const [, march, june, november, latest, july] = BY_REVISION.exec(source) ?? [];
  if (!march || !june || !november || !july || !source.includes(`${latest}=\`2026-07-28\``))
    throw new Error('The conformance tool has no table of schemas by revision any more.');
  const found = new Map(
    [...source.matchAll(SCHEMA)].map(({ 1: name, 2: opening = '', 0: all, index }) => [
      name,
      index + all.length - opening.length,
    ]),
  );
  const expected = { '2025-03-26': march, '2025-06-18': june, '2025-11-25': november };
  const names = Object.entries({ ...expected, '2026-07-28': july });
  const at = names.map(([revision, name]) => [revision, found.get(name)] as const);
  const published = at.flatMap(([revision, start]) =>
    start === undefined ? [] : [[revision, evaluate(objectAt(source, start))] as const],
  );
  if (published.length !== names.length || found.size !== names.length)
    throw new Error(
      `The conformance tool carries ${found.size} schemas, of them ${published.length} of the ${names.length} revisions ${names.map(([revision]) => revision).join(', ')}.`,
    );
  return new Map(published);
}

/** The text of the object literal that begins at `start`. */
function objectAt(source: string, start: number): string {
  const stringOrBrace = /(["'`])(?:\\.|(?!\1)[^\\])*\1|[{}]/gs;
  stringOrBrace.lastIndex = start;
  let depth = 0;
  for (let token = stringOrBrace.exec(source); token; token = stringOrBrace.exec(source)) {
    if (token[0] === '{') depth += 1;
    if (token[0] === '}') depth -= 1;
    if (depth === 0) return source.slice(start, stringOrBrace.lastIndex);
  }
  throw new Error('A schema of the conformance tool has no end.');
}

/** A literal knows no names: there is nothing that it could reach. */
function evaluate(literal: string): Published {
  const published: Published = JSON.parse(runInNewContext(`JSON.stringify(${literal})`, {}));
  return allowFractions(published);
}

/**
 * The generator of 2025-06-18 and 2025-11-25 wrote `integer` for the bounds and the default of a
 * number to be asked for; their text says number, and so does 2026-07-28's schema.
 */
function allowFractions(published: Published): Published {
  return JSON.parse(
    JSON.stringify(published, (name, value) =>
      name === 'NumberSchema'
        ? JSON.parse(JSON.stringify(value).replaceAll('"type":"integer"', '"type":"number"'))
        : value,
    ),
  );
}
