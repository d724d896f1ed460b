// What servers must not be together, and what the settings of the gateway rule out.
import { X509Certificate } from 'node:crypto';
import {
  countKeptCharacters,
  type GatewayFile,
  type HttpUpstreamConfig,
  type ProgramUser,
  type StdioUpstreamConfig,
  type UpstreamConfig,
} from './gateway-file.ts';
import { commonMembers, httpMembers, stdioMembers } from './members/server-members.ts';
import type { PlacedServer } from './members/servers-shape.ts';
import type { FoundProgramUser, ParseOptions } from './parse-options.ts';
import { describeSameName, isOtherName } from './server-name.ts';
import type { MemberReader } from './shapes/object.ts';

/** The servers with what their paths lead to. Reports at each what is wrong. */
export async function checkServers(
  servers: readonly PlacedServer[],
  naming: Naming,
  options: ParseOptions,
): Promise<readonly UpstreamConfig[]> {
  servers.forEach((server, index) => {
    checkName(server, naming, servers.slice(0, index));
  });
  const users = await findUsers(servers, options);
  return servers.map((server) => completeServer(server, options, users));
}

type Naming = Pick<GatewayFile, 'separator' | 'names' | 'maxNameLength'>;

/** By what the file or RUN_PROGRAMS_AS calls them. */
type Users = ReadonlyMap<string, FoundProgramUser>;

async function findUsers(
  servers: readonly PlacedServer[],
  { runProgramsAs, findProgramUser }: ParseOptions,
): Promise<Users> {
  const texts = servers
    .filter(({ config }) => config.kind === 'stdio')
    .flatMap(({ members }) => members.read(stdioMembers.runAs) ?? runProgramsAs ?? []);
  return new Map(
    await Promise.all(
      [...new Set(texts)].map(async (text) => [text, await findProgramUser(text)] as const),
    ),
  );
}

function checkName(
  { config, givenName, members }: PlacedServer,
  { separator, names, maxNameLength }: Naming,
  earlier: readonly PlacedServer[],
): void {
  const { name, prefix } = config;
  if (name.includes(separator))
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

/** Whether a name could begin with both. */
function overlap(one: string, other: string, separator: string): boolean {
  if (one === '' || other === '') return false;
  const [first, second] = [one + separator, other + separator];
  return first.startsWith(second) || second.startsWith(first);
}

const describePrefixes = (one: string, other: string): string =>
  one === other ? `both have the prefix ${one}` : `${other} and ${one} begin alike`;

const completeServer = (
  server: PlacedServer,
  options: ParseOptions,
  users: Users,
): UpstreamConfig =>
  server.config.kind === 'http'
    ? completeHttp(server.config, server, options)
    : completeStdio(server.config, server, options, users);

function completeHttp(
  config: HttpUpstreamConfig,
  { members }: PlacedServer,
  options: ParseOptions,
): HttpUpstreamConfig {
  if (config.auth.type === 'identity' && options.hasRedis && !options.hasStateSecret)
    members.report(
      '"identity" with REDIS_URL needs OAUTH_STATE_SECRET, which seals the keys that all replicas share. Set it to the output of openssl rand -base64 48.',
      httpMembers.auth,
    );
  if (config.ca === undefined) return config;
  const certificates = readCertificates(options, config.ca);
  if (certificates.kind === 'problem') members.report(certificates.message, httpMembers.ca);
  return certificates.kind === 'problem' ? config : { ...config, ca: certificates.text };
}

type Certificates =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'problem'; readonly message: string };

function readCertificates({ resolvePath, readText }: ParseOptions, path: string): Certificates {
  try {
    const text = readText(resolvePath(path));
    return hasCertificate(text)
      ? { kind: 'text', text }
      : {
          kind: 'problem',
          message: 'The file has no certificate in PEM form (-----BEGIN CERTIFICATE-----).',
        };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'problem', message: `The file cannot be read (${reason}).` };
  }
}

function hasCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).subject !== undefined;
  } catch {
    return false;
  }
}

function completeStdio(
  config: StdioUpstreamConfig,
  { members }: PlacedServer,
  options: ParseOptions,
  users: Users,
): StdioUpstreamConfig {
  const { hasRedis, resolvePath } = options;
  if (config.isolation === 'session' && hasRedis)
    members.report(
      '"session" cannot be used with REDIS_URL: another replica could not reach the process of a session. Use "user" or "shared", or run one replica without REDIS_URL.',
      stdioMembers.isolation,
    );
  const runAs = findUser(members, options, users);
  if (runAs !== undefined) checkEnvironment(config, members);
  const cwd = config.cwd === undefined ? undefined : resolvePath(config.cwd);
  return { ...config, cwd, runAs };
}

function findUser(
  { read, report }: MemberReader,
  { runProgramsAs }: ParseOptions,
  users: Users,
): ProgramUser | undefined {
  const own = read(stdioMembers.runAs);
  const text = own ?? runProgramsAs;
  const found = text === undefined ? undefined : users.get(text);
  if (found === undefined) return undefined;
  if (found.kind === 'found') return found.user;
  return own === undefined
    ? report(`RUN_PROGRAMS_AS: ${found.message}`)
    : report(found.message, stdioMembers.runAs);
}

/** What the dynamic linker and the C library load code by, before there is a program. */
const LOADS_CODE = /^(LD_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|NLSPATH)$/;

/** Until setpriv has changed the user, it runs in this environment with the rights of the gateway. */
function checkEnvironment({ env }: StdioUpstreamConfig, { report }: MemberReader): void {
  const names = Object.keys(env).filter((name) => LOADS_CODE.test(name));
  if (names.length > 0)
    report(
      `${names.join(', ')} cannot be set for a program that runs as another user: setpriv, which changes the user, would load code by it with the rights of the gateway. Set it in a script that starts the program.`,
      stdioMembers.env,
    );
}
