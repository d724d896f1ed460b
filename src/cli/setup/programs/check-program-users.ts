// §18.3: whether this process may start programs as the users that the configuration file names: tried before it serves.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type {
  ProgramUser,
  StdioUpstreamConfig,
  UpstreamConfig,
} from '../../../config/file/gateway-file.ts';
import { getErrorCode } from '../../../platform/error-code.ts';
import { runCommandAs } from '../../../upstreams/stdio/end-reason.ts';
import { SYSTEM_PATH } from './find-program-user.ts';

/** Their numbers in /proc/self/status. KILL is what ends a program of another user. */
const NEEDED = [
  ['CAP_KILL', 5n],
  ['CAP_SETGID', 6n],
  ['CAP_SETUID', 7n],
] as const;
const TRY_MS = 10_000;

const run = promisify(execFile);

export const isProgram = (server: UpstreamConfig): server is StdioUpstreamConfig =>
  server.kind === 'stdio';

/** One sentence for each problem; none where all is well, or all programs run as the gateway's own user. */
export async function findProgramUserProblems(
  servers: readonly UpstreamConfig[],
): Promise<readonly string[]> {
  const users = listUsers(servers);
  if (users.length === 0) return [];
  const missing = findMissingCapabilities();
  if (missing.length > 0)
    return [
      `The gateway may not run programs as another user (${listNames(servers)}): it lacks ${missing.join(', ')}. Start it as root or with these capabilities, or remove RUN_PROGRAMS_AS and "runAs".`,
    ];
  const problems = await Promise.all(users.map(tryUser));
  return problems.flatMap((problem) => problem ?? []);
}

/** Each once. */
const listUsers = (servers: readonly UpstreamConfig[]): readonly ProgramUser[] => [
  ...new Map(
    servers
      .filter(isProgram)
      .flatMap(({ runAs }) => (runAs ? [[`${runAs.uid}:${runAs.gid}`, runAs] as const] : [])),
  ).values(),
];

const listNames = (servers: readonly UpstreamConfig[]): string =>
  servers
    .filter((server) => isProgram(server) && server.runAs !== undefined)
    .map(({ name }) => name)
    .join(', ');

function findMissingCapabilities(): readonly string[] {
  const [, effective = '0'] =
    /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  const held = BigInt(`0x${effective}`);
  return NEEDED.flatMap(([name, bit]) => ((held >> bit) & 1n ? [] : [name]));
}

/** Says what else is in the way: a setpriv of BusyBox, say, or a number that a container does not map. */
async function tryUser(user: ProgramUser): Promise<string | undefined> {
  const { command, args } = runCommandAs(user, { command: 'true', args: [] });
  try {
    await run(command, args, { env: { PATH: SYSTEM_PATH }, timeout: TRY_MS, cwd: '/' });
    return undefined;
  } catch (error) {
    if (getErrorCode(error) === 'ENOENT')
      return 'Programs are run as another user by setpriv, which this system does not have. Install the package util-linux (on Alpine: setpriv), or remove RUN_PROGRAMS_AS and "runAs".';
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    return `No program can run as ${describeUser(user)}: ${said.split('\n')[0] || String(error)}. setpriv has to be that of the package util-linux (on Alpine: setpriv).`;
  }
}

/** `postern-files (1001:1001)` */
export const describeUser = ({ name, uid, gid }: ProgramUser): string =>
  name === undefined ? `${uid}:${gid}` : `${name} (${uid}:${gid})`;
