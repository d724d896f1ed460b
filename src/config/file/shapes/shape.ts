// Shapes of values in the configuration file. One object both reads a value and describes it as JSON Schema, so that the two cannot
// differ.
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
  /**
   * Set if the value may be a secret: it is never shown, and in a server or its `auth` the file gets a warning if it is in plain
   * text.
   */
  readonly isSecret?: true;
  /** Returns undefined for an invalid value, after reporting it. */
  read(node: FileNode, place: FilePlace): T | undefined;
}

/** The position of a value in the file. */
export interface FilePlace {
  /** For example `mcpServers.github.tools.include[0]`; empty for the whole file. */
  readonly path: string;
  readonly context: FileReading;
}

export interface FileReading {
  readonly env: Env;
  report(line: number, path: string, message: string): void;
  /** Warns about a value that is valid but may be unintended. */
  warn(line: number, path: string, message: string): void;
  /** Reports a member that only another program uses. */
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

/** Names the type of a value that is not a string, number or flag, for messages. */
export const nameKind = ({ kind }: FileNode): string =>
  kind === 'list' ? 'A list' : kind === 'object' ? 'An object' : 'This value';

const reportKind = (node: FileNode, place: FilePlace, allowed: string) =>
  report(place, node.line, `${nameKind(node)} is not valid. It must be ${allowed}.`);

/** Returns the object without repeated names, which it reports. Undefined if the value is not an object, which it also reports. */
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

// Lists, and objects with arbitrary member names.

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
    /** Describes the problem with a name, but does not quote the name, since it may be a misplaced secret. */
    checkName?(name: string): string | undefined;
    /** JSON Schema for the names. */
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

/** The record has no prototype, so that a name such as `constructor` exists only if the file has it. */
export function createRecordShape<T>(
  entries: readonly (readonly [string, T])[],
): Readonly<Record<string, T>> {
  const empty: Record<string, T> = Object.create(null);
  for (const [name, value] of entries) empty[name] = value;
  return empty;
}

// Objects with known members.

export interface Member<T> {
  readonly name: string;
  readonly shape: Shape<T>;
  /** One sentence for editors. If only one of several types has the member, it names that type (`…, with token-exchange.`). */
  readonly summary: string;
}

export const defineMember = <T>(name: string, shape: Shape<T>, summary: string): Member<T> => ({
  name,
  shape,
  summary,
});

interface ObjectShape<T> {
  /** Completes the sentence "It must be …". */
  readonly allowed: string;
  readonly members: readonly Member<unknown>[];
  /** Members that only other programs use. */
  readonly ignored?: readonly string[];
  /** Members of other programs that have an equivalent here, with the member to use instead. */
  readonly replaced?: Readonly<Record<string, string>>;
  /** JSON Schema keywords besides those for the members. */
  readonly schema?: JsonObject;
  /** Returns undefined if a required member is missing, after reporting it. */
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

/** `line` is the line of the object's name. */
export function createMemberReader(node: ObjectNode, place: FilePlace, line = node.line) {
  const find = ({ name }: Member<unknown>) => node.members.find((given) => given.name === name);
  return {
    /** The line of the object. */
    line,
    isEmpty: node.members.length === 0,
    has: (member: Member<unknown>) => find(member) !== undefined,
    /** Undefined if the member is missing, or if it is invalid and has been reported. */
    read<T>(member: Member<T>): T | undefined {
      const given = find(member);
      return given && member.shape.read(given.value, placeMember(place, member.name));
    },
    /** Reports the problem at the member, or at the object if it has no such member. */
    report(message: string, member?: Member<unknown>): undefined {
      const given = member && find(member);
      return given === undefined
        ? report(place, line, message)
        : report(placeMember(place, given.name), given.line, message);
    },
  };
}

function describeUnknown(name: string, names: readonly string[]) {
  const nearest = findNearestName(name, names);
  const allowed =
    nearest === undefined ? `Allowed are ${names.join(', ')}.` : `Did you mean ${nearest}?`;
  return `${quote(name, 64)} is not known. ${allowed}`;
}

// Reads the text of a configuration file by its shape, and collects all problems.

export interface TextSource {
  /** The file name used in messages. */
  readonly fileName: string;
  readonly format: FileFormat;
  /** Values of the variables in `${VAR}`. */
  readonly env: Env;
}

/** `broken` means that the text is neither JSON nor YAML. */
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
    /** Undefined if the file is unusable; the problems say why. */
    content: shape.read(syntax.root, { path: '', context }),
    /** Problems found by the shape and by later checks, in the order of the file. */
    listProblems: () => problems.toSorted((a, b) => a.line - b.line).map(({ problem }) => problem),
    /** Warnings about ignored members of other programs, if any. */
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
