// `mcpServers`: servers by name.
import type { UpstreamConfig } from '../gateway-file.ts';
import { createMemberReader, type MemberReader } from '../shapes/object.ts';
import { openObject } from '../shapes/open-object.ts';
import { type Place, placeMember, report, type Shape } from '../shapes/shape.ts';
import type { MemberNode } from '../syntax/file-node.ts';
import { commonMembers } from './server-members.ts';
import { serverShape } from './server-shape.ts';

/** A server, and its members, by which problems are reported where they stand. */
export interface PlacedServer {
  readonly config: UpstreamConfig;
  readonly members: MemberReader;
}

const NAME = /^[a-z][a-z0-9-]{0,31}$/;

/** How the JSON Schema calls the shape of one server. */
export const SERVER_DEFINITION = 'server';

export const serversShape: Shape<readonly PlacedServer[]> = {
  schema: {
    type: 'object',
    propertyNames: { pattern: '^[A-Za-z][A-Za-z0-9-]{0,31}$' },
    additionalProperties: { $ref: `#/definitions/${SERVER_DEFINITION}` },
  },
  read(node, place) {
    const servers = openObject(node, place, 'an object of servers by name');
    return servers?.members.flatMap((member) =>
      readServer(member, placeMember(place, member.name)),
    );
  },
};

function readServer({ name, line, value }: MemberNode, place: Place): readonly PlacedServer[] {
  const members = value.kind === 'object' ? createMemberReader(value, place, line) : undefined;
  // Nothing else of a server that is left out is looked at: it may lack its variables.
  if (members?.read(commonMembers.disabled) === true) return [];
  const lowerName = name.toLowerCase();
  if (!NAME.test(lowerName)) report(place, line, describeWrongName(name));
  const server = serverShape.read(value, place);
  if (server === undefined || members === undefined || !NAME.test(lowerName)) return [];
  const config = { ...server, name: lowerName, prefix: server.prefix ?? lowerName };
  return [{ config, members }];
}

function describeWrongName(name: string): string {
  const fitting = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, 32)
    .replace(/-+$/, '');
  const suggestion = NAME.test(fitting) ? ` Rename it, for example to "${fitting}".` : '';
  return `This is no name of a server.${suggestion} It must be a letter, then up to 31 letters, digits and hyphens.`;
}
