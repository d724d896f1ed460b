// The form of a value of the configuration file: read from the file, and described as JSON Schema, by one
// object, so that the two cannot differ.
import type { JsonObject } from '../../../platform/json.ts';
import { findNearestName } from '../../../platform/nearest-name.ts';
import { quote } from '../../../platform/text.ts';
import type { Problem } from '../../problem.ts';
import type { Env } from '../../setting.ts';
import {
  type FileFormat,
  type FileNode,
  type MemberNode,
  type ObjectNode,
  readSyntax,
} from '../syntax/read-syntax.ts';

export interface Shape<T> {
  /** JSON Schema (draft 7). */
  readonly schema: JsonObject;
  /** A text that may be a secret: it is not shown, and of a server or its `auth` the file is warned of where it stands in the clear. */
  readonly isSecret?: true;
  /** Undefined for what is not allowed, which it has reported. */
  read(node: FileNode, place: FilePlace): T | undefined;
}

/** The place of a value. */
export interface FilePlace {
  /** `mcpServers.github.tools.include[0]`; empty for the whole file. */
  readonly path: string;
  readonly context: FileReading;
}

export interface FileReading {
  readonly env: Env;
  report(line: number, path: string, message: string): void;
  /** For what works, but may not be what was meant. */
  warn(line: number, path: string, message: string): void;
  /** For a member of another program. */
  reportIgnored(name: string): void;
}

export const placeMember = ({ path, context }: FilePlace, name: string): FilePlace => ({
  path: /^[A-Za-z_$][\w$-]*$/.test(name)
    ? [...(path === '' ? [] : [path]), name].join('.')
    : `${path}[${JSON.stringify(name.slice(0, 64))}]`,
  context,
});

export function report({ path, context }: FilePlace, line: number, message: string): undefined {
  context.report(line, path, message);
}

/** Names a value that is neither text, number nor flag. */
export const nameKind = ({ kind }: FileNode): string =>
  kind === 'list' ? 'A list' : kind === 'object' ? 'An object' : 'This value';

const reportKind = (node: FileNode, place: FilePlace, allowed: string): undefined =>
  report(place, node.line, `${nameKind(node)} is not valid. It must be ${allowed}.`);

/** The object, each name once; undefined for what is none. Reports what is wrong. */
export function openObject(
  node: FileNode,
  place: FilePlace,
  allowed: string,
): ObjectNode | undefined {
  if (node.kind !== 'object') return reportKind(node, place, allowed);
  const first = new Map<string, MemberNode>();
  for (const member of node.members) {
    const earlier = first.get(member.name);
    if (earlier === undefined) first.set(member.name, member);
    else
      report(
        placeMember(place, member.name),
        member.line,
        `This is given twice, first in line ${earlier.line}. Remove one of them.`,
      );
  }
  return { ...node, members: [...first.values()] };
}

// Lists, and objects whose members have any name.

export const list = <T>(
  item: Shape<T>,
  { allowed, isNotEmpty }: { readonly allowed: string; readonly isNotEmpty?: true },
): Shape<readonly T[]> => ({
  schema: { type: 'array', items: item.schema, ...(isNotEmpty && { minItems: 1 }) },
  read(node, place) {
    if (node.kind !== 'list') return reportKind(node, place, allowed);
    if (isNotEmpty && node.items.length === 0)
      return report(place, node.line, `The list is empty. It must be ${allowed}.`);
    const { path, context } = place;
    return node.items.flatMap(
      (value, index) => item.read(value, { path: `${path}[${index}]`, context }) ?? [],
    );
  },
});

export const record = <T>(
  value: Shape<T>,
  {
    allowed,
    checkName = () => undefined,
    names,
  }: {
    readonly allowed: string;
    /** Says what is wrong with a name; without a part of it, where it may be a secret that slipped. */
    checkName?(name: string): string | undefined;
    /** JSON Schema of the names. */
    readonly names?: JsonObject;
  },
): Shape<Readonly<Record<string, T>>> => ({
  schema: {
    type: 'object',
    additionalProperties: value.schema,
    ...(names && { propertyNames: names }),
  },
  read(node: FileNode, place: FilePlace) {
    const object = openObject(node, place, allowed);
    if (object === undefined) return undefined;
    const entries = object.members.flatMap((member) => {
      const problem = checkName(member.name);
      if (problem !== undefined) report(place, member.line, problem);
      const read = value.read(member.value, placeMember(place, problem ? '…' : member.name));
      return read === undefined ? [] : [[member.name, read] as const];
    });
    return createRecordShape(entries);
  },
});

/** Without a prototype: a name such as `constructor` is there only if the file has it. */
export function createRecordShape<T>(
  entries: readonly (readonly [string, T])[],
): Readonly<Record<string, T>> {
  const empty: Record<string, T> = Object.create(null);
  for (const [name, value] of entries) empty[name] = value;
  return empty;
}

// Objects whose members are known by name.

export interface Member<T> {
  readonly name: string;
  readonly shape: Shape<T>;
  /** One sentence, which editors show: of a member of one type among several, with whose it is (`…, with token-exchange.`). */
  readonly summary: string;
}

export const defineMember = <T>(name: string, shape: Shape<T>, summary: string): Member<T> => ({
  name,
  shape,
  summary,
});

interface ObjectShape<T> {
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

export type MemberReader = ReturnType<typeof createMemberReader>;

export const object = <T>({
  allowed,
  members,
  ignored = [],
  replaced = {},
  schema,
  build,
}: ObjectShape<T>): Shape<T> => ({
  schema: {
    type: 'object',
    properties: Object.fromEntries([
      ...members.map(({ name, shape, summary }) => [
        name,
        { description: summary, ...shape.schema },
      ]),
      ...ignored.map((name) => [name, { description: 'Of another program. Postern ignores it.' }]),
    ]),
    additionalProperties: false,
    ...schema,
  },
  read(node, place) {
    const opened = openObject(node, place, allowed);
    if (opened === undefined) return undefined;
    const names = members.map(({ name }) => name);
    for (const { name, line } of opened.members) {
      if (names.includes(name)) continue;
      const replacement = Object.hasOwn(replaced, name) ? replaced[name] : undefined;
      if (replacement !== undefined) report(placeMember(place, name), line, replacement);
      else if (ignored.includes(name)) place.context.reportIgnored(name);
      else report(place, line, describeUnknown(name, names));
    }
    return build(createMemberReader(opened, place));
  },
});

/** `line` is where the object is named. */
export function createMemberReader(node: ObjectNode, place: FilePlace, line = node.line) {
  const find = ({ name }: Member<unknown>) => node.members.find((given) => given.name === name);
  return {
    /** The line of the object. */
    line,
    isEmpty: node.members.length === 0,
    has: (member: Member<unknown>) => find(member) !== undefined,
    /** Undefined where it is not given, or reported. */
    read<T>(member: Member<T>): T | undefined {
      const given = find(member);
      return given && member.shape.read(given.value, placeMember(place, member.name));
    },
    /** Reports at the member, or at the object where there is none. */
    report(message: string, member?: Member<unknown>): undefined {
      const given = member && find(member);
      return given === undefined
        ? report(place, line, message)
        : report(placeMember(place, given.name), given.line, message);
    },
  };
}

function describeUnknown(name: string, names: readonly string[]): string {
  const nearest = findNearestName(name, names);
  const allowed =
    nearest === undefined ? `Allowed are ${names.join(', ')}.` : `Did you mean ${nearest}?`;
  return `${quote(name, 64)} is not known. ${allowed}`;
}

// The text of a configuration file, read once by its shape, with everything that is wrong with it.

export interface TextSource {
  /** As it is named in messages. */
  readonly fileName: string;
  readonly format: FileFormat;
  /** The variables among which `${VAR}` is looked up. */
  readonly env: Env;
}

/** `broken` is what is neither JSON nor YAML. */
export function parseText<Content>(
  text: string,
  { fileName, format, env }: TextSource,
  shape: Shape<Content>,
) {
  const syntax = readSyntax(text, format);
  if (syntax.kind === 'broken') {
    const problem: Problem = { place: `${fileName}:${syntax.line}`, message: syntax.message };
    return { kind: 'broken', problem } as const;
  }

  const problems: { readonly line: number; readonly problem: Problem }[] = [];
  const warnings: string[] = [];
  const ignored = new Set<string>();
  const context: FileReading = {
    env,
    report(line, path, message) {
      const place = `${fileName}:${line}${path === '' ? '' : `: ${path}`}`;
      problems.push({ line, problem: { place, message } });
    },
    warn: (line, path, message) => void warnings.push(`${fileName}:${line}: ${path}: ${message}`),
    reportIgnored: (name) => void ignored.add(name),
  };
  return {
    kind: 'read' as const,
    root: syntax.root,
    /** Undefined where nothing could be made of it, which was reported. */
    content: shape.read(syntax.root, { path: '', context }),
    /** Found by the shape, and by whoever goes on checking; in the order of the file. */
    listProblems: () => problems.toSorted((a, b) => a.line - b.line).map(({ problem }) => problem),
    /** Members of other programs that were left out, as a warning; none where there are none. */
    describeIgnored(): readonly string[] {
      const names = [...ignored].sort().join(', ');
      return names === ''
        ? []
        : [
            `${fileName}: these members of other programs mean nothing here and are ignored: ${names}.`,
          ];
    },
    warnings,
  };
}
