// `mcpServers`: reads servers by name, and checks them together.
import {
  createMemberReader,
  type FilePlace,
  type MemberReader,
  object,
  openObject,
  placeMember,
  report,
  type Shape,
} from '../../config/file/shapes/shape.ts';
import type { MemberNode } from '../../config/file/syntax/read-syntax.ts';
import {
  countKeptCharacters,
  deriveServerName,
  describeTakenName,
  SERVER_CARD_PATH_NAME,
  type ServersConfig,
} from '../../mcp/upstream/upstream-config.ts';
import { findTransport, type ServerEntry, TRANSPORTS } from '../transport/transports.ts';
import {
  commonMembers,
  type FileSurroundings,
  type FoundProgramUser,
  type ServerType,
} from './common-members.ts';

/** A server, with the members of its entry, at which problems are reported. */
export interface PlacedServer {
  readonly config: ServerEntry;
  /** The name in the file, which the server's name was derived from. */
  readonly givenName: string;
  readonly members: MemberReader;
}

/** A disabled server. Nothing else in its entry is checked: its variables may be missing. */
export interface DisabledServer {
  readonly disabledPrefix: string;
}

/** The name of a server's shape in the JSON Schema. */
export const SERVER_DEFINITION = 'server';

export const serversShape: Shape<readonly (PlacedServer | DisabledServer)[]> = {
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
  place: FilePlace,
): readonly (PlacedServer | DisabledServer)[] {
  const members = value.kind === 'object' ? createMemberReader(value, place, line) : undefined;
  const name = deriveServerName(givenName);
  if (members?.read(commonMembers.disabled) === true)
    return [{ disabledPrefix: findPlainPrefix(value) ?? name ?? givenName }];
  if (name === undefined)
    report(place, line, `This is not a valid name for a server. ${ALLOWED_SERVER_NAME}`);
  const server = serverShape.read(value, place);
  if (server === undefined || members === undefined || name === undefined) return [];
  const config = { ...server, name, prefix: server.prefix ?? name };
  return [{ config, givenName, members }];
}

function findPlainPrefix(node: MemberNode['value']) {
  const given = node.kind === 'object' && node.members.find(({ name }) => name === 'prefix')?.value;
  return given && given.kind === 'scalar' && typeof given.value === 'string'
    ? given.value
    : undefined;
}

/** Resolves the paths and users of the servers, and reports problems. */
export async function completeServers(
  servers: readonly PlacedServer[],
  naming: NamingConfig,
  surroundings: FileSurroundings,
): Promise<readonly ServerEntry[]> {
  servers.forEach((server, index) => {
    checkName(server, naming, servers.slice(0, index));
  });
  const users = new Map<string, Promise<FoundProgramUser>>();
  /** Looks up each name only once. */
  function findProgramUser(text: string) {
    const found = users.get(text) ?? surroundings.findProgramUser(text);
    users.set(text, found);
    return found;
  }
  return Promise.all(
    servers.map(({ config, members }) =>
      findTransport(config).complete(config, members, { ...surroundings, findProgramUser }),
    ),
  );
}

type NamingConfig = Pick<ServersConfig, 'separator' | 'names' | 'maxNameLength'>;

function checkName(
  { config, givenName, members }: PlacedServer,
  { separator, names, maxNameLength }: NamingConfig,
  earlier: readonly PlacedServer[],
) {
  const { name, prefix } = config;
  if (name === SERVER_CARD_PATH_NAME) members.report(describeTakenName('server'));
  else if (name.includes(separator))
    members.report(
      isOtherName(givenName, name)
        ? `It would be called ${name} here, and a server’s name cannot contain the separator (${separator}). Rename it.`
        : `A server’s name cannot contain the separator (${separator}). Rename it.`,
    );
  else if (prefix.includes(separator))
    members.report(`A prefix cannot contain the separator (${separator}).`, commonMembers.prefix);
  else if (names === 'strict' && prefix.includes('.'))
    members.report('With "names": "strict" a prefix has no dot. Use _ or -.', commonMembers.prefix);
  const namesake = earlier.find((other) => other.config.name === name);
  /** A tool's name could begin with both prefixes. */
  const rival = earlier.find(({ config: { prefix: other } }) => {
    if (prefix === '' || other === '') return false;
    const [first, second] = [other + separator, prefix + separator];
    return first.startsWith(second) || second.startsWith(first);
  });
  const kept = countKeptCharacters(maxNameLength);
  const cut = (one: string) => (one + separator).slice(0, kept);
  const likeness = earlier.find(
    (other) => prefix !== '' && cut(other.config.prefix) === cut(prefix),
  );
  if (namesake !== undefined)
    members.report(
      describeSameName(name, {
        earlier: namesake.givenName,
        later: givenName,
        where: ` (line ${namesake.members.line})`,
      }),
    );
  else if (rival !== undefined) {
    const other = rival.config.prefix;
    const same =
      prefix === other ? `both have the prefix ${prefix}` : `${other} and ${prefix} begin alike`;
    members.report(
      `Its names would begin like those of ${rival.config.name} (line ${rival.members.line}): ${same}. Give one of them another "prefix".`,
      commonMembers.prefix,
    );
  }
  // Only a hash would distinguish the tools of these servers, and a server could choose a name that collides.
  else if (likeness !== undefined)
    members.report(
      `If its names are cut ("maxNameLength": ${maxNameLength}), the first ${kept} characters would be those of ${likeness.config.name} (line ${likeness.members.line}). Give one of them a shorter "prefix".`,
      commonMembers.prefix,
    );
}

/** §18.1: names of servers. Other programs accept any name; here the name is part of URLs and of tool names. */
export const ALLOWED_SERVER_NAME =
  'It must have a letter or digit: names here are a letter, then up to 31 letters, digits and hyphens.';

/** A name that differs only in case counts as the same. */
export const isOtherName = (given: string, name: string): boolean => given.toLowerCase() !== name;

/** Describes two names in the file that become the same name. `where` is the position of the earlier one. */
export const describeSameName = (
  name: string,
  given: { readonly earlier: string; readonly later: string; readonly where?: string },
): string =>
  `${JSON.stringify(given.later)} and ${JSON.stringify(given.earlier)}${given.where ?? ''} would both be called ${name} here. Rename one of them.`;

// Members that other programs write into shared files.

/** Members that control how the other program asks its user, or displays the server. */
const IGNORED_SERVER_MEMBERS: readonly string[] = [
  '//',
  '_comment',
  'alwaysAllow',
  'alwaysLoad',
  'autoApprove',
  'comment',
  'description',
  'dev',
  'displayName',
  'fromGalleryId',
  'gallery',
  'icon',
  'metadata',
  'note',
  'sandbox',
  'sandboxEnabled',
  'source',
  'trust',
  'version',
  'watchPaths',
];

const USE_EXCLUDE = 'Postern has "tools": { "exclude": ["name", …] } for this.';
const USE_INCLUDE = 'Postern has "tools": { "include": ["name", …] } for this.';
const TOLD_TYPES = TRANSPORTS.toReversed().flatMap(({ types }) =>
  types.all.length === 0 ? [] : types.told,
);
const USE_TYPE = `Postern has "type" for this: ${TOLD_TYPES.join(' or ')}.`;
const NO_USER_LOGIN =
  'Postern cannot log in to this server for its users yet. Give it a token with "headers", or remove this.';

/** Members of other programs' configuration files, with the Postern equivalent. */
const REPLACED_SERVER_MEMBERS: Readonly<Record<string, string>> = {
  allowedTools: USE_INCLUDE,
  disabledTools: USE_EXCLUDE,
  enabled: 'Postern has "disabled": true for servers that are to be left out.',
  enabledTools: USE_INCLUDE,
  envFile: 'Postern reads no file for one server. Write its variables under "env".',
  excludeTools: USE_EXCLUDE,
  headersHelper: 'Postern runs no program for headers. Write them under "headers".',
  includeTools: USE_INCLUDE,
  oauth: NO_USER_LOGIN,
  transport: USE_TYPE,
  transportType: USE_TYPE,
};

type UnnamedServer = NonNullable<ReturnType<(typeof TRANSPORTS)[number]['build']>>;

export const serverShape: Shape<UnnamedServer> = object<UnnamedServer>({
  allowed: `an object with ${TRANSPORTS.map(({ addresses: [{ name }], words }) => `${name} (${words.address})`).join(' or ')}`,
  members: [
    ...Object.values(commonMembers),
    ...TRANSPORTS.toReversed().flatMap(({ members }) => members),
  ],
  ignored: IGNORED_SERVER_MEMBERS,
  replaced: REPLACED_SERVER_MEMBERS,
  schema: {
    anyOf: TRANSPORTS.flatMap(({ addresses }) =>
      addresses.map(({ name }) => ({ required: [name] })),
    ),
    dependencies: Object.fromEntries(
      TRANSPORTS.flatMap((transport) =>
        transport.addresses.map((address) => [
          address.name,
          {
            properties: Object.fromEntries(
              [
                ...listForeign(transport).map(({ member }) => member),
                ...transport.addresses.filter((other) => other !== address),
              ].map(({ name }) => [name, false]),
            ),
          },
        ]),
      ),
    ),
  },
  build(members) {
    const transport = chooseTransport(members);
    return transport?.build(members, readType(members, transport));
  },
});

type AnyTransport = (typeof TRANSPORTS)[number];

/** The members of other transports. */
function listForeign(transport: AnyTransport) {
  return TRANSPORTS.filter((other) => other !== transport).flatMap((owner) =>
    owner.members.map((member) => ({ owner, member })),
  );
}

/** Undefined if it cannot be determined, after reporting it. */
function chooseTransport({ has, report: reportAt }: MemberReader): AnyTransport | undefined {
  const given = TRANSPORTS.flatMap((one) =>
    one.addresses.filter(has).map((address) => ({ transport: one, address })),
  );
  const [first, second] = given;
  if (first === undefined) {
    const names = TRANSPORTS.map(({ addresses: [{ name }] }) => `"${name}"`).join(' or ');
    const kinds = TRANSPORTS.map(({ words }) => words.address).join(', or ');
    return reportAt(`${names} is missing: ${kinds}.`);
  }
  const { transport } = first;
  const other = given.find((one) => one.transport !== transport);
  if (other !== undefined) {
    const [one, another] = [first.address.name, other.address.name];
    reportAt(
      `Both ${one} and ${another} are given. Keep ${one} for ${transport.words.server}, or ${another} for ${other.transport.words.server}.`,
      other.address,
    );
    return transport;
  }
  if (second !== undefined)
    reportAt(
      `Both ${first.address.name} and ${second.address.name} are given. Keep one.`,
      second.address,
    );
  for (const { owner, member } of listForeign(transport).filter(({ member: one }) => has(one)))
    reportAt(
      `Only a server with ${owner.addresses[0].name} has this${transport.words.whyNoOthers}`,
      member,
    );
  return transport;
}

/** Reports a type that belongs to another transport. */
function readType(
  { read, report: reportAt }: MemberReader,
  transport: AnyTransport,
): ServerType | undefined {
  const type = read(commonMembers.type);
  if (type === undefined || transport.types.all.includes(type)) return type;
  const owner = TRANSPORTS.find(({ types }) => types.all.includes(type));
  return reportAt(
    `"${type}" is for a server with ${owner?.addresses[0].name}. With ${transport.addresses[0].name} it is ${transport.types.told}.`,
    commonMembers.type,
  );
}
