// A server of the configuration file, of either kind.
import { isSafeForTokens } from '../../../platform/address.ts';
import { findSecretArguments } from '../../../platform/secret-texts.ts';
import type { HttpUpstreamConfig, StdioUpstreamConfig, UpstreamConfig } from '../gateway-file.ts';
import { createRecord } from '../shapes/collection.ts';
import { type Member, type MemberReader, object } from '../shapes/object.ts';
import type { Shape } from '../shapes/shape.ts';
import { IGNORED_SERVER_MEMBERS, REPLACED_SERVER_MEMBERS } from './foreign-members.ts';
import { addressMembers, commonMembers, httpMembers, stdioMembers } from './server-members.ts';
import { ALL_TOOLS } from './tools-members.ts';

/** Its name, and the prefix that comes from it, are for the file to add. */
export type UnnamedServer =
  | (Omit<HttpUpstreamConfig, 'name' | 'prefix'> & WithPrefix)
  | (Omit<StdioUpstreamConfig, 'name' | 'prefix'> & WithPrefix);

interface WithPrefix {
  readonly prefix: string | undefined;
}

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_MAX_PROCESSES = 20;
const DEFAULT_IDLE_SECONDS = 300;

const httpOnly: readonly Member<unknown>[] = Object.values(httpMembers);
const stdioOnly: readonly Member<unknown>[] = Object.values(stdioMembers);

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

function readCommon({ read }: MemberReader) {
  return {
    prefix: read(commonMembers.prefix),
    timeoutMs: read(commonMembers.timeout) ?? DEFAULT_TIMEOUT_MS,
    required: read(commonMembers.required) ?? false,
    era: read(commonMembers.era) ?? 'auto',
    tools: read(commonMembers.tools) ?? ALL_TOOLS,
  };
}

function buildHttp(members: MemberReader): UnnamedServer | undefined {
  const { read, report } = members;
  const common = readCommon(members);
  const type = read(commonMembers.type);
  if (type === 'stdio')
    report(
      '"stdio" is for a server with command. With url it is "http" or "sse".',
      commonMembers.type,
    );
  if (type === 'sse' && common.era === 'stateless')
    report('"sse" has sessions always. Remove "era", or the type.', commonMembers.era);
  const [address = httpMembers.url] = addressMembers.filter(members.has);
  const url = read(address);
  const headers = readHeaders(members);
  const auth = read(httpMembers.auth) ?? ({ type: 'none' } as const);
  const ca = read(httpMembers.ca);
  if (auth.type !== 'none' && headers.authorization !== undefined)
    report('auth sends the header Authorization itself. Remove one of them.', httpMembers.headers);
  if (auth.type === 'forward' && url !== undefined && !isSafeForTokens(url))
    report(
      'auth passes callers’ tokens on, so the URL must be https, or http on localhost, 127.0.0.1 or [::1].',
      address,
    );
  return url === undefined
    ? undefined
    : {
        kind: 'http',
        url,
        transport: type === 'sse' ? 'sse' : 'streamable-http',
        headers,
        ca,
        auth,
        // One that is told who calls belongs to those who call.
        roots: read(commonMembers.roots) ?? auth.type !== 'none',
        ...common,
      };
}

/** By their names in lower case. */
function readHeaders({ read, report }: MemberReader): Readonly<Record<string, string>> {
  const given = Object.entries(read(httpMembers.headers) ?? {});
  const names = given.map(([name]) => name.toLowerCase());
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined)
    report(`The header ${twice} is given twice: case does not count.`, httpMembers.headers);
  return createRecord(given.map(([name, value]) => [name.toLowerCase(), value]));
}

function buildStdio(members: MemberReader): UnnamedServer | undefined {
  const { read, report } = members;
  const common = readCommon(members);
  const type = read(commonMembers.type);
  if (type !== undefined && type !== 'stdio')
    report(`"${type}" is for a server with url. With command it is "stdio".`, commonMembers.type);
  const command = read(stdioMembers.command);
  const given = read(stdioMembers.args) ?? [];
  const args = given.map((argument) => argument.text);
  const stdio = {
    args,
    secretArguments: [...given.flatMap(({ values }) => values), ...findSecretArguments(args)],
    env: read(stdioMembers.env) ?? createRecord([]),
    cwd: read(stdioMembers.cwd),
    // Looked up where the server is completed: RUN_PROGRAMS_AS counts, too.
    runAs: undefined,
    isolation: read(stdioMembers.isolation) ?? 'shared',
    maxProcesses: read(stdioMembers.maxProcesses) ?? DEFAULT_MAX_PROCESSES,
    idleSeconds: read(stdioMembers.idleSeconds) ?? DEFAULT_IDLE_SECONDS,
    roots: read(commonMembers.roots) ?? false,
  };
  if (command?.trim() === '') report('"command" is empty.', stdioMembers.command);
  return command === undefined ? undefined : { kind: 'stdio', command, ...stdio, ...common };
}
