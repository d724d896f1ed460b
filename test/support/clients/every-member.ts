// Values that have every member which a definition of a published schema has: one with all of them, and one more for each further
// way in which a member can be written. What the schema leaves open has a member that nobody knows.
import type { Published } from './published-schemas.ts';

interface Schema {
  readonly $ref?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
}

export type Value = Readonly<Record<string, unknown>>;

/** In place of what is generated, by the definition and its member (`Tool.inputSchema`): what is no JSON Schema of its own. */
export type Replacements = Readonly<Record<string, readonly unknown[]>>;

/** @throws for a definition that the schema does not have. */
export function createEveryMember(published: Published, replacements: Replacements = {}) {
  const definitions: Readonly<Record<string, Schema>> = JSON.parse(
    JSON.stringify(published.$defs ?? published.definitions ?? {}),
  );

  function list(name: string): readonly Value[] {
    const schema = definitions[name];
    if (schema === undefined) throw new Error(`The schema defines no ${name}.`);
    return listOf(schema, name).filter(isObject);
  }

  /** Names of members, of an object of this definition. */
  const listMembers = (name: string): readonly string[] =>
    Object.keys(definitions[name]?.properties ?? {});

  function listOf(schema: Schema, place: string): readonly unknown[] {
    const replaced = replacements[place];
    if (replaced !== undefined) return replaced;
    if (schema.$ref !== undefined) {
      const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
      const { [name]: found } = definitions;
      if (found === undefined) throw new Error(`The schema defines no ${name}.`);
      return listOf(found, name);
    }
    if (schema.const !== undefined) return [schema.const];
    if (schema.enum !== undefined) return schema.enum;
    if (schema.anyOf !== undefined) return schema.anyOf.flatMap((one) => listOf(one, place));
    if (typeof schema.type === 'object')
      return schema.type.flatMap((type) => listOf({ ...schema, type }, place));
    switch (schema.type) {
      case 'string':
        return [FORMATS[schema.format ?? ''] ?? `${place} – “text”`];
      case 'boolean':
        return [true, false];
      case 'integer':
      case 'number':
        return listNumbers(schema);
      case 'array':
        return [schema.items === undefined ? [] : listOf(schema.items, place)];
      case 'object':
        return listObjects(schema, place);
      // Any value of JSON.
      default:
        return ANYTHING;
    }
  }

  function listObjects(schema: Schema, place: string): readonly unknown[] {
    const members = Object.entries(schema.properties ?? {}).map(
      ([name, member]) => [name, listOf(member, `${place}.${name}`)] as const,
    );
    const isOpen = members.length === 0 || /MetaObject$|\._meta$/.test(place);
    const open = isOpen ? UNKNOWN : {};
    const full = {
      ...open,
      ...Object.fromEntries(members.map(([name, [first]]) => [name, first])),
    };
    const others = members.flatMap(([name, [, ...further]]) =>
      further.map((value) => ({ ...full, [name]: value })),
    );
    return [full, ...others];
  }

  return { list, listMembers };
}

const isObject = (value: unknown): value is Value =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const listNumbers = ({ minimum, maximum, type }: Schema): readonly number[] => [
  ...(maximum === undefined ? [] : [maximum]),
  ...(type === 'number' && maximum !== undefined ? [maximum / 2] : []),
  minimum ?? 12_345,
];

const UNKNOWN = { 'com.example/open': { deep: [1, null, { text: 'ä' }] } };

const ANYTHING = [{ a: { b: [null] } }, [1, 'two', null], 'text', 0.5, true, false, null];

const FORMATS: Readonly<Record<string, string>> = {
  uri: 'https://example.com/a?b=c#d',
  'uri-template': 'test://{a}/{b}',
  byte: 'AAEC',
};
