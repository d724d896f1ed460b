import type { FileNode, MemberNode, ObjectNode } from '../syntax/file-node.ts';
import { nameKind } from './scalar.ts';
import { type Place, placeMember, report } from './shape.ts';

/** The object, each name once; undefined for what is none. Reports what is wrong. */
export function openObject(node: FileNode, place: Place, allowed: string): ObjectNode | undefined {
  if (node.kind !== 'object')
    return report(place, node.line, `${nameKind(node)} is not valid. It must be ${allowed}.`);
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
