// A server of the configuration file, of either kind.
import { type Member, type MemberReader, object } from '../../config/file/shapes/object.ts';
import type { Shape } from '../../config/file/shapes/shape.ts';
import { commonMembers } from './common-members.ts';
import { addressMembers, buildHttp, httpMembers, type UnnamedHttpServer } from './http-server.ts';
import { buildStdio, stdioMembers, type UnnamedStdioServer } from './stdio-server.ts';
import type { UpstreamConfig } from './upstream-config.ts';

export type UnnamedServer = UnnamedHttpServer | UnnamedStdioServer;

const httpOnly: readonly Member<unknown>[] = Object.values(httpMembers);
const stdioOnly: readonly Member<unknown>[] = Object.values(stdioMembers);

// What other programs write into the files that they share with us.

/** Of a server. They are about the program that asks its user, or about showing the server there. */
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
function chooseKind({ has, report }: MemberReader): Kind | undefined {
  const [first, second] = addressMembers.filter(has);
  const hasCommand = has(stdioMembers.command);
  if (first === undefined && !hasCommand)
    return report(
      '"command" or "url" is missing: a program to start, or the address of a server that runs.',
    );
  if (first !== undefined && hasCommand)
    report(
      `Both command and ${first.name} are given. Keep command for a program that Postern starts, or ${first.name} for a server that runs.`,
      first,
    );
  else if (second !== undefined)
    report(`Both ${first?.name} and ${second.name} are given. Keep one.`, second);
  return hasCommand ? 'stdio' : 'http';
}

function reportStrangers({ has, report }: MemberReader, kind: Kind): void {
  const strangers = kind === 'http' ? stdioOnly : httpOnly;
  const isAmbiguous = addressMembers.some(has) && has(stdioMembers.command);
  for (const member of isAmbiguous ? [] : strangers.filter(has)) {
    report(
      kind === 'http'
        ? 'Only a server with command has this: Postern does not start this one.'
        : 'Only a server with url has this. A program gets its settings and secrets by env or args.',
      member,
    );
  }
}
