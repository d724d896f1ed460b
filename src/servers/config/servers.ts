// `mcpServers`: servers by name, and what they must not be together.
import {
  createMemberReader,
  type FilePlace,
  type Member,
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
  type ServersConfig,
  type UpstreamConfig,
} from '../../mcp/upstream/upstream-config.ts';
import { commonMembers, type FileSurroundings, type FoundProgramUser } from './common-members.ts';
import {
  addressMembers,
  buildHttp,
  completeHttp,
  httpMembers,
  type UnnamedHttpServer,
} from './http-server.ts';
import {
  buildStdio,
  completeStdio,
  stdioMembers,
  type UnnamedStdioServer,
} from './stdio-server.ts';

/** A server, and its members, by which problems are reported where they stand. */
export interface PlacedServer {
  readonly config: UpstreamConfig;
  /** Its name in the file, from which the one here was derived. */
  readonly givenName: string;
  readonly members: MemberReader;
}

/** One that is left out. Nothing else of it is looked at: it may lack its variables. */
export interface DisabledServer {
  readonly disabledPrefix: string;
}

/** Name of the shape of one server in the JSON Schema. */
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
    report(place, line, `This is no name of a server. ${ALLOWED_SERVER_NAME}`);
  const server = serverShape.read(value, place);
  if (server === undefined || members === undefined || name === undefined) return [];
  const config = { ...server, name, prefix: server.prefix ?? name };
  return [{ config, givenName, members }];
}

function findPlainPrefix(node: MemberNode['value']): string | undefined {
  const given = node.kind === 'object' && node.members.find(({ name }) => name === 'prefix')?.value;
  return given && given.kind === 'scalar' && typeof given.value === 'string'
    ? given.value
    : undefined;
}

/** The servers with what their paths and users lead to. Reports at each what is wrong. */
export async function completeServers(
  servers: readonly PlacedServer[],
  naming: NamingConfig,
  surroundings: FileSurroundings,
): Promise<readonly UpstreamConfig[]> {
  servers.forEach((server, index) => {
    checkName(server, naming, servers.slice(0, index));
  });
  const users = await findUsers(servers, surroundings);
  return servers.map(({ config, members }) =>
    config.kind === 'http'
      ? completeHttp(config, members, surroundings)
      : completeStdio(config, members, surroundings, users),
  );
}

type NamingConfig = Pick<ServersConfig, 'separator' | 'names' | 'maxNameLength'>;

/** Keyed by the names that the file or RUN_PROGRAMS_AS uses. */
async function findUsers(
  servers: readonly PlacedServer[],
  { config: { upstreams }, findProgramUser }: FileSurroundings,
): Promise<ReadonlyMap<string, FoundProgramUser>> {
  const texts = servers
    .filter(({ config }) => config.kind === 'stdio')
    .flatMap(({ members }) => members.read(stdioMembers.runAs) ?? upstreams.runProgramsAs ?? []);
  return new Map(
    await Promise.all(
      [...new Set(texts)].map(async (text) => [text, await findProgramUser(text)] as const),
    ),
  );
}

function checkName(
  { config, givenName, members }: PlacedServer,
  { separator, names, maxNameLength }: NamingConfig,
  earlier: readonly PlacedServer[],
): void {
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
  const rival = earlier.find((other) => overlap(other.config.prefix, prefix, separator));
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
  else if (rival !== undefined)
    members.report(
      `Its names would begin like those of ${rival.config.name} (line ${rival.members.line}): ${describePrefixes(prefix, rival.config.prefix)}. Give one of them another "prefix".`,
      commonMembers.prefix,
    );
  // Only a hash would tell their tools apart, which a server could hit with a name of its choice.
  else if (likeness !== undefined)
    members.report(
      `Where its names are cut ("maxNameLength": ${maxNameLength}), the first ${kept} characters would be those of ${likeness.config.name} (line ${likeness.members.line}). Give one of them a shorter "prefix".`,
      commonMembers.prefix,
    );
}

/** True if a name could begin with both. */
function overlap(one: string, other: string, separator: string): boolean {
  if (one === '' || other === '') return false;
  const [first, second] = [one + separator, other + separator];
  return first.startsWith(second) || second.startsWith(first);
}

const describePrefixes = (one: string, other: string): string =>
  one === other ? `both have the prefix ${one}` : `${other} and ${one} begin alike`;

const NAME = /^[a-z][a-z0-9-]{0,31}$/;
const MAX_LENGTH = 32;

/** §18.1: what a server is called here. Other programs take any name; here it stands in URLs and before names of tools. */
export const ALLOWED_SERVER_NAME =
  'It must have a letter or digit: names here are a letter, then up to 31 letters, digits and hyphens.';

/** §32: `/mcp/server-card` is where MCP has the gateway's own server card. */
export const SERVER_CARD_PATH_NAME = 'server-card';

export const describeTakenName = (what: 'server' | 'view'): string =>
  `A ${what} cannot be called ${SERVER_CARD_PATH_NAME}: /mcp/${SERVER_CARD_PATH_NAME} is where clients look for the gateway’s own server card. Rename it.`;

/** The same name always becomes the same. Undefined where nothing of it can stand in one. */
export function deriveServerName(name: string): string | undefined {
  const lowerName = name.toLowerCase();
  if (NAME.test(lowerName)) return lowerName;
  const fitting = name
    .normalize('NFD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .replace(/^(?=\d)/, 'mcp-')
    .slice(0, MAX_LENGTH)
    .replace(/-+$/, '');
  return NAME.test(fitting) ? fitting : undefined;
}

/** Case alone is no other name. */
export const isOtherName = (given: string, name: string): boolean => given.toLowerCase() !== name;

/** A sentence: which two names of the file become the same. `where` is of the earlier one. */
export const describeSameName = (
  name: string,
  given: { readonly earlier: string; readonly later: string; readonly where?: string },
): string =>
  `${JSON.stringify(given.later)} and ${JSON.stringify(given.earlier)}${given.where ?? ''} would both be called ${name} here. Rename one of them.`;

// A server of the configuration file, of either kind.

type UnnamedServer = UnnamedHttpServer | UnnamedStdioServer;

const httpOnly: readonly Member<unknown>[] = Object.values(httpMembers);
const stdioOnly: readonly Member<unknown>[] = Object.values(stdioMembers);

// Members that other programs write into the files that they share with us.

/** Members of a server that are about the program that asks its user, or about showing the server there. */
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
const USE_TYPE = 'Postern has "type" for this: "http", "sse" or "stdio".';
const NO_USER_LOGIN =
  'Postern cannot log in at this server for its users yet. Give it a token with "headers", or remove this.';

/** They would be missed: what they say, another member says here. */
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

export const serverShape: Shape<UnnamedServer> = object<UnnamedServer>({
  allowed: 'an object with command (a program to start) or url (a server that runs)',
  members: [...Object.values(commonMembers), ...httpOnly, ...stdioOnly],
  ignored: IGNORED_SERVER_MEMBERS,
  replaced: REPLACED_SERVER_MEMBERS,
  schema: {
    anyOf: [{ required: ['command'] }, ...addressMembers.map(({ name }) => ({ required: [name] }))],
    dependencies: {
      command: forbid(httpOnly),
      ...Object.fromEntries(
        addressMembers.map((address) => [
          address.name,
          forbid([...stdioOnly, ...addressMembers.filter((other) => other !== address)]),
        ]),
      ),
    },
  },
  build(members) {
    const kind = chooseKind(members);
    if (kind === undefined) return undefined;
    reportStrangers(members, kind);
    return kind === 'http' ? buildHttp(members) : buildStdio(members);
  },
});

function forbid(members: readonly Member<unknown>[]) {
  return { properties: Object.fromEntries(members.map(({ name }) => [name, false])) };
}

type Kind = UpstreamConfig['kind'];

/** Undefined where it cannot be told, which it reports. */
function chooseKind({ has, report: reportAt }: MemberReader): Kind | undefined {
  const [first, second] = addressMembers.filter(has);
  const hasCommand = has(stdioMembers.command);
  if (first === undefined && !hasCommand)
    return reportAt(
      '"command" or "url" is missing: a program to start, or the address of a server that runs.',
    );
  if (first !== undefined && hasCommand)
    reportAt(
      `Both command and ${first.name} are given. Keep command for a program that Postern starts, or ${first.name} for a server that runs.`,
      first,
    );
  else if (second !== undefined)
    reportAt(`Both ${first?.name} and ${second.name} are given. Keep one.`, second);
  return hasCommand ? 'stdio' : 'http';
}

function reportStrangers({ has, report: reportAt }: MemberReader, kind: Kind): void {
  const strangers = kind === 'http' ? stdioOnly : httpOnly;
  const isAmbiguous = addressMembers.some(has) && has(stdioMembers.command);
  for (const member of isAmbiguous ? [] : strangers.filter(has)) {
    reportAt(
      kind === 'http'
        ? 'Only a server with command has this: Postern does not start this one.'
        : 'Only a server with url has this. A program gets its settings and secrets by env or args.',
      member,
    );
  }
}
