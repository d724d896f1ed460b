// Configuration of a server that the gateway starts: its members in the file, and their parsed values.

import { listValues } from '../../config/file/expand.ts';
import {
  choice,
  freeText,
  text,
  trueOrFalse,
  warnOfBareVariable,
  wholeNumber,
} from '../../config/file/shapes/scalar.ts';
import {
  createRecordShape,
  defineMember,
  list,
  type MemberReader,
  record,
  type Shape,
} from '../../config/file/shapes/shape.ts';
import { isSharedStore } from '../../config/groups/store.ts';
import { systemUser } from '../../config/rules.ts';
import type { UpstreamConfig, UpstreamFacts } from '../../mcp/upstream/upstream-config.ts';
import { findSecretArguments } from '../../platform/secret-texts.ts';
import {
  type FileSurroundings,
  type ProgramUser,
  readCommon,
  type Unnamed,
} from '../config/common-members.ts';

export interface StdioUpstreamConfig extends UpstreamConfig {
  readonly kind: 'stdio';
  readonly command: string;
  readonly args: readonly string[];
  /** Parts of `args` that are never shown: values of variables, and text that looks like a secret. */
  readonly secretArguments: readonly string[];
  /** Variables in addition to those that programs get from the gateway. The values are secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** The gateway's proxies that the program gets: with user name and password if true, without them if undefined, none if false. */
  readonly proxyEnvironment: boolean | undefined;
  readonly cwd: string | undefined;
  /** The system user that the program runs as; undefined for the gateway's own. */
  readonly runAs: ProgramUser | undefined;
  /** Whether there is one process for the gateway, one per user, or one per session. */
  readonly isolation: 'shared' | 'user' | 'session';
  /** Maximum number of processes; not used for a shared process. */
  readonly maxProcesses: number;
  /** Time without a call after which a user's process ends. */
  readonly idleSeconds: number;
}

const DEFAULT_MAX_PROCESSES = 20;
const DEFAULT_IDLE_SECONDS = 300;

const argumentText = freeText({ isSecret: true });

/** An argument of a program, and the values of environment variables in it. */
const argumentShape: Shape<{ readonly text: string; readonly values: readonly string[] }> = {
  schema: argumentText.schema,
  read(node, place) {
    const expanded = argumentText.read(node, place);
    if (expanded === undefined || node.kind !== 'scalar') return undefined;
    return { text: expanded, values: listValues(String(node.value), place.context.env) };
  },
};

export const stdioMembers = {
  command: defineMember('command', freeText(), 'The program to start.'),
  args: defineMember('args', list(argumentShape, { allowed: 'a list of texts' }), 'Its arguments.'),
  env: defineMember(
    'env',
    record(warnOfBareVariable(freeText({ isSecret: true })), {
      allowed: `an object of variables, such as { "TOKEN": "\${TOKEN}" }`,
      checkName: (name) =>
        /^[^=\0]+$/.test(name) ? undefined : 'A variable’s name is not empty and has no =.',
    }),
    'Environment variables, in addition to those that every program gets, such as PATH and HOME.',
  ),
  proxyEnvironment: defineMember(
    'proxyEnvironment',
    trueOrFalse,
    'The gateway’s HTTP_PROXY, HTTPS_PROXY and NO_PROXY: true passes them on with user name and password, false not at all. Without it, they are passed on without user name and password.',
  ),
  cwd: defineMember(
    'cwd',
    freeText(),
    'The folder that it runs in. Relative to the configuration file.',
  ),
  runAs: defineMember(
    'runAs',
    text(systemUser),
    'The user of the system that it runs as, such as postern-files or 1001:1001, instead of RUN_PROGRAMS_AS.',
  ),
  isolation: defineMember(
    'isolation',
    choice('shared', 'user', 'session'),
    'The scope of a process: shared by all, one per user, or one per session.',
  ),
  maxProcesses: defineMember(
    'maxProcesses',
    wholeNumber(1, 1000),
    'The maximum number of processes at once, with isolation user or session.',
  ),
  idleSeconds: defineMember(
    'idleSeconds',
    wholeNumber(1, 86_400),
    'Seconds without a call after which a user’s process ends.',
  ),
};

export function buildStdio(members: MemberReader): Unnamed<StdioUpstreamConfig> | undefined {
  const { read, report } = members;
  const ofAnyTransport = readCommon(members);
  const command = read(stdioMembers.command);
  const given = read(stdioMembers.args) ?? [];
  const args = given.map((argument) => argument.text);
  const stdio = {
    args,
    secretArguments: [...given.flatMap(({ values }) => values), ...findSecretArguments(args)],
    env: read(stdioMembers.env) ?? createRecordShape([]),
    proxyEnvironment: read(stdioMembers.proxyEnvironment),
    cwd: read(stdioMembers.cwd),
    // Looked up when the server is completed, since RUN_PROGRAMS_AS may apply.
    runAs: undefined,
    isolation: read(stdioMembers.isolation) ?? 'shared',
    maxProcesses: read(stdioMembers.maxProcesses) ?? DEFAULT_MAX_PROCESSES,
    idleSeconds: read(stdioMembers.idleSeconds) ?? DEFAULT_IDLE_SECONDS,
  };
  if (command?.trim() === '') report('"command" is empty.', stdioMembers.command);
  return command === undefined
    ? undefined
    : { kind: 'stdio', command, ...stdio, ...ofAnyTransport };
}

export const readStdioFacts = ({ isolation }: StdioUpstreamConfig): UpstreamFacts => ({
  personalBy: isolation === 'shared' ? undefined : 'isolation',
  needsUser: false,
  connection: undefined,
  hasSessionStream: false,
  attributes: { 'network.transport': 'pipe' },
});

/** Resolves the server's paths and user. Reports their problems, and members that conflict with the settings. */
export async function completeStdio(
  config: StdioUpstreamConfig,
  members: MemberReader,
  surroundings: FileSurroundings,
): Promise<StdioUpstreamConfig> {
  if (config.isolation === 'session' && isSharedStore(surroundings.config.store))
    members.report(
      '"session" cannot be used with REDIS_URL: another replica could not reach the process of a session. Use "user" or "shared", or run one replica without REDIS_URL.',
      stdioMembers.isolation,
    );
  const runAs = await findUser(members, surroundings);
  // Until setpriv has changed the user, it runs with this environment and the gateway's rights.
  const loading = Object.keys(config.env).filter((name) => LOADS_CODE.test(name));
  if (runAs !== undefined && loading.length > 0)
    members.report(
      `${loading.join(', ')} cannot be set for a program that runs as a different user: setpriv, which changes the user, would load code from it with the gateway's rights. Set it in a script that starts the program.`,
      stdioMembers.env,
    );
  const cwd = config.cwd === undefined ? undefined : surroundings.resolvePath(config.cwd);
  return { ...config, cwd, runAs };
}

async function findUser(
  { read, report }: MemberReader,
  { config, findProgramUser }: FileSurroundings,
): Promise<ProgramUser | undefined> {
  const own = read(stdioMembers.runAs);
  const user = own ?? config.upstreams.runProgramsAs;
  if (user === undefined) return undefined;
  const found = await findProgramUser(user);
  if (found.kind === 'found') return found.user;
  return own === undefined
    ? report(`RUN_PROGRAMS_AS: ${found.message}`)
    : report(found.message, stdioMembers.runAs);
}

/** Variables that make the dynamic linker and the C library load code before the program starts. */
const LOADS_CODE = /^(LD_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|NLSPATH)$/;
