// Objects whose members are known by name.
import type { JsonObject } from '../../../platform/json.ts';
import { findNearestName } from '../../../platform/nearest-name.ts';
import { quote } from '../../../platform/text.ts';
import type { ObjectNode } from '../syntax/file-node.ts';
import { type FilePlace, openObject, placeMember, report, type Shape } from './shape.ts';

export interface Member<T> {
  readonly name: string;
  readonly shape: Shape<T>;
  /** One sentence, which editors show. */
  readonly summary: string;
}

export const defineMember = <T>(name: string, shape: Shape<T>, summary: string): Member<T> => ({
  name,
  shape,
  summary,
});

export interface ObjectOptions<T> {
  /** To follow "It must be". */
  readonly allowed: string;
  readonly members: readonly Member<unknown>[];
  /** Members of other programs that mean nothing here. */
  readonly ignored?: readonly string[];
  /** Members of other programs that mean something, and what to write in their place. */
  readonly replaced?: Readonly<Record<string, string>>;
  /** JSON Schema beside the members'. */
  readonly schema?: JsonObject;
  /** Undefined where what is missing was reported. */
  build(members: MemberReader): T | undefined;
}

export interface MemberReader {
  /** Where the object stands. */
  readonly line: number;
  readonly isEmpty: boolean;
  has(member: Member<unknown>): boolean;
  /** Undefined where it is not given, or reported. */
  read<T>(member: Member<T>): T | undefined;
  /** Reports at the member, or at the object where there is none. */
  report(message: string, member?: Member<unknown>): undefined;
}

export const object = <T>(options: ObjectOptions<T>): Shape<T> => ({
  schema: createSchema(options),
  read(node, place) {
    const opened = openObject(node, place, options.allowed);
    if (opened === undefined) return undefined;
    reportUnknown(opened, place, options);
    return options.build(createMemberReader(opened, place));
  },
});

/** `line` is where the object is named. */
export function createMemberReader(
  node: ObjectNode,
  place: FilePlace,
  line = node.line,
): MemberReader {
  const find = ({ name }: Member<unknown>) => node.members.find((given) => given.name === name);
  return {
    line,
    isEmpty: node.members.length === 0,
    has: (member) => find(member) !== undefined,
    read(member) {
      const given = find(member);
      return given && member.shape.read(given.value, placeMember(place, member.name));
    },
    report(message, member) {
      const given = member && find(member);
      return given === undefined
        ? report(place, line, message)
        : report(placeMember(place, given.name), given.line, message);
    },
  };
}

function reportUnknown(
  { members }: ObjectNode,
  place: FilePlace,
  { members: known, ignored = [], replaced = {} }: ObjectOptions<unknown>,
): void {
  const names = known.map(({ name }) => name);
  for (const { name, line } of members) {
    if (names.includes(name)) continue;
    const replacement = Object.hasOwn(replaced, name) ? replaced[name] : undefined;
    if (replacement !== undefined) report(placeMember(place, name), line, replacement);
    else if (ignored.includes(name)) place.context.reportIgnored(name);
    else report(place, line, describeUnknown(name, names));
  }
}

function describeUnknown(name: string, names: readonly string[]): string {
  const nearest = findNearestName(name, names);
  const allowed =
    nearest === undefined ? `Allowed are ${names.join(', ')}.` : `Did you mean ${nearest}?`;
  return `${quote(name, 64)} is not known. ${allowed}`;
}

function createSchema({
  members,
  ignored = [],
  schema = {},
}: Pick<ObjectOptions<unknown>, 'members' | 'ignored' | 'schema'>): JsonObject {
  const described = members.map(
    ({ name, shape, summary }) => [name, { description: summary, ...shape.schema }] as const,
  );
  const foreign = ignored.map((name) => [name, IGNORED] as const);
  return {
    type: 'object',
    properties: Object.fromEntries([...described, ...foreign]),
    additionalProperties: false,
    ...schema,
  };
}

const IGNORED = { description: 'Of another program. Postern ignores it.' } as const;
