// `mcpServers`: servers by name.
import type { UpstreamConfig } from '../gateway-file.ts';
import { ALLOWED_SERVER_NAME, deriveServerName } from '../server-name.ts';
import { createMemberReader, type MemberReader } from '../shapes/object.ts';
import { openObject } from '../shapes/open-object.ts';
import { type Place, placeMember, report, type Shape } from '../shapes/shape.ts';
import type { MemberNode } from '../syntax/file-node.ts';
import { commonMembers } from './server-members.ts';
import { serverShape } from './server-shape.ts';

/** A server, and its members, by which problems are reported where they stand. */
export interface PlacedServer {
  readonly config: UpstreamConfig;
  /** Its name in the file, from which the one here was derived. */
  readonly givenName: string;
  readonly members: MemberReader;
}

/** How the JSON Schema calls the shape of one server. */
export const SERVER_DEFINITION = 'server';

export const serversShape: Shape<readonly PlacedServer[]> = {
  schema: {
    type: 'object',
    propertyNames: { pattern: '[A-Za-z0-9]' },
    additionalProperties: { $ref: `#/definitions/${SERVER_DEFINITION}` },
  },
  read(node, place) {
    const servers = openObject(node, place, 'an object of servers by name');
    return servers?.members.flatMap((member) =>
      readServer(member, placeMember(place, member.name)),
    );
  },
};

function readServer(
  { name: givenName, line, value }: MemberNode,
  place: Place,
): readonly PlacedServer[] {
  const members = value.kind === 'object' ? createMemberReader(value, place, line) : undefined;
  // Nothing else of a server that is left out is looked at: it may lack its variables.
  if (members?.read(commonMembers.disabled) === true) return [];
  const name = deriveServerName(givenName);
  if (name === undefined)
    report(place, line, `This is no name of a server. ${ALLOWED_SERVER_NAME}`);
  const server = serverShape.read(value, place);
  if (server === undefined || members === undefined || name === undefined) return [];
  const config = { ...server, name, prefix: server.prefix ?? name };
  return [{ config, givenName, members }];
}
