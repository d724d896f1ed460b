// Lists, and objects whose members have any name.
import type { JsonObject } from '../../../platform/json.ts';
import type { FileNode } from '../syntax/file-node.ts';
import {
  type FilePlace,
  nameKind,
  openObject,
  placeItem,
  placeMember,
  report,
  type Shape,
} from './shape.ts';

export const list = <T>(
  item: Shape<T>,
  { allowed, isNotEmpty }: { readonly allowed: string; readonly isNotEmpty?: true },
): Shape<readonly T[]> => ({
  schema: { type: 'array', items: item.schema, ...(isNotEmpty && { minItems: 1 }) },
  read(node, place) {
    if (node.kind !== 'list')
      return report(place, node.line, `${nameKind(node)} is not valid. It must be ${allowed}.`);
    if (isNotEmpty && node.items.length === 0)
      return report(place, node.line, `The list is empty. It must be ${allowed}.`);
    return node.items.flatMap((value, index) => item.read(value, placeItem(place, index)) ?? []);
  },
});

export interface RecordOptions {
  readonly allowed: string;
  /** What is wrong with a name; without a part of it, where it may be a secret that slipped. */
  checkName?(name: string): string | undefined;
  /** JSON Schema of the names. */
  readonly names?: JsonObject;
}

export const record = <T>(
  value: Shape<T>,
  { allowed, checkName = () => undefined, names }: RecordOptions,
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
