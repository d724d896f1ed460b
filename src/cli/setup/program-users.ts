// §18.3: looks up the system users that programs run as, at each load of the configuration file, and tests whether the gateway
// can start programs as these users.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Config } from '../../config/config.ts';
import type { Problem } from '../../config/problem.ts';
import type { UpstreamConfig } from '../../mcp/upstream/upstream-config.ts';
import { getErrorCode, getMessage } from '../../platform/error-code.ts';
import { quote } from '../../platform/text.ts';
import type { FoundProgramUser, ProgramUser } from '../../servers/config/common-members.ts';
import { runCommandAs } from '../../servers/stdio/child.ts';
import { describeServer } from '../../servers/transport/transports.ts';

/** Not the PATH of the environment: these programs decide which rights others run with. */
const SYSTEM_PATH = '/usr/bin:/bin:/usr/sbin:/sbin:/run/current-system/sw/bin';
/** Timeout in case the directory service is down. */
const LOOKUP_MS = 10_000;
/** (uid_t) -1 means "leave unchanged" to the system. */
const MAX_ID = 4_294_967_294;

/** Never rejects. */
export async function findProgramUser(text: string): Promise<FoundProgramUser> {
  if (process.platform !== 'linux')
    return refuse('Programs can run as another user only on Linux. Remove it here.');
  const [, uid, gid] = /^(\d+):(\d+)$/.exec(text) ?? [];
  const entry = await lookUp(uid ?? text);
  if ('problem' in entry) return refuse(entry.problem);
  const user =
    uid === undefined
      ? entry.user
      : { uid: Number(uid), gid: Number(gid), name: entry.user?.name, home: entry.user?.home };
  // For a numeric user without a passwd entry, the group must be given, too.
  if (user === undefined)
    return refuse(
      /^\d+$/.test(text)
        ? `This system has no user ${quote(text)}, and ${quote(text)} is a number without a group. Write uid:gid, such as ${text}:${text}.`
        : `This system has no user ${quote(text)}. Create it, for example with useradd --system ${/^\d/.test(text) ? 'postern-programs' : text}, or write uid:gid, such as 1001:1001.`,
    );
  const problem = findIdProblem(user.uid, user.gid);
  return problem === undefined ? { kind: 'found', user } : refuse(`${quote(text)} ${problem}`);
}

const refuse = (message: string): FoundProgramUser => ({ kind: 'problem', message });

function findIdProblem(uid: number, gid: number) {
  if (uid > MAX_ID || gid > MAX_ID) return `is out of range: the largest number is ${MAX_ID}.`;
  if (uid === 0 || gid === 0)
    return 'is root, or has its group: such a program could read everything. Name a user without rights.';
  if (uid === process.geteuid?.())
    return 'is the user of the gateway itself, so the program could read its secrets. Name another user.';
  if (gid === process.getegid?.() || process.getgroups?.().includes(gid))
    return `has a group of the gateway (${gid}), so the program could read that group's files. Name a user in another group.`;
  return undefined;
}

type Entry =
  | { readonly user: { uid: number; gid: number; name: string; home: string } | undefined }
  | { readonly problem: string };

/** Uses all sources of the system, as configured in /etc/nsswitch.conf. */
async function lookUp(key: string): Promise<Entry> {
  try {
    const options = { env: { PATH: SYSTEM_PATH }, timeout: LOOKUP_MS };
    const { stdout } = await run('getent', ['passwd', key], options);
    const [name = '', , uid, gid, , home = ''] = stdout.trim().split(':');
    return { user: { uid: Number(uid), gid: Number(gid), name, home } };
  } catch (error) {
    // Exit code of getent for a missing entry.
    if (error instanceof Error && 'code' in error && error.code === 2) return { user: undefined };
    return { problem: `The user could not be looked up by getent (${getMessage(error)}).` };
  }
}

// Checks that this process can start programs as these users.

/** Bit numbers in /proc/self/status. KILL is needed to end a program of another user. */
const NEEDED = [
  ['CAP_KILL', 5n],
  ['CAP_SETGID', 6n],
  ['CAP_SETUID', 7n],
] as const;
const TRY_MS = 10_000;

const run = promisify(execFile);

/** One sentence per problem; empty if there is none, or if all programs run as the gateway's own user. */
export async function findProgramUserProblems(
  servers: readonly UpstreamConfig[],
): Promise<readonly Problem[]> {
  const others = servers.flatMap((server) => {
    const { runAs } = describeServer(server).program ?? {};
    return runAs ? [{ name: server.name, runAs }] : [];
  });
  if (others.length === 0) return [];
  const missing = findMissingCapabilities();
  if (missing.length > 0)
    return [
      {
        message: `The gateway may not run programs as another user (${others.map(({ name }) => name).join(', ')}): it lacks ${missing.join(', ')}. Start it as root or with these capabilities, or remove RUN_PROGRAMS_AS and "runAs".`,
      },
    ];
  // Without duplicates.
  const users = new Map(others.map(({ runAs }) => [`${runAs.uid}:${runAs.gid}`, runAs]));
  const problems = await Promise.all(Array.from(users.values(), tryUser));
  return problems.filter((message) => message !== undefined).map((message) => ({ message }));
}

function findMissingCapabilities() {
  const [, effective = '0'] =
    /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  const held = BigInt(`0x${effective}`);
  return NEEDED.flatMap(([name, bit]) => ((held >> bit) & 1n ? [] : [name]));
}

/** Finds other obstacles, such as BusyBox's setpriv, or a user number that the container does not map. */
async function tryUser(user: ProgramUser) {
  const { command, args } = runCommandAs(user, { command: 'true', args: [] });
  try {
    await run(command, args, { env: { PATH: SYSTEM_PATH }, timeout: TRY_MS, cwd: '/' });
    return undefined;
  } catch (error) {
    if (getErrorCode(error) === 'ENOENT')
      return 'Programs are run as another user by setpriv, which this system does not have. Install the package util-linux (on Alpine: setpriv), or remove RUN_PROGRAMS_AS and "runAs".';
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    return `No program can run as ${describeProgramUser(user)}: ${said.split('\n')[0] || String(error)}. setpriv has to be that of the package util-linux (on Alpine: setpriv).`;
  }
}

/** `postern-files (1001:1001)` */
export const describeProgramUser = ({ name, uid, gid }: ProgramUser): string =>
  name === undefined ? `${uid}:${gid}` : `${name} (${uid}:${gid})`;

/**
 * Warns in production that programs running as the gateway's user can read the same files. Outside of production, developers test
 * their own programs, so there is no warning.
 */
export function warnOfOwnUser(
  servers: readonly UpstreamConfig[],
  { server }: Config,
): readonly string[] {
  const names = servers.flatMap((one) => {
    const { program } = describeServer(one);
    return program !== undefined && program.runAs === undefined ? [one.name] : [];
  });
  return names.length === 0 || server.environment !== 'production'
    ? []
    : [
        `Programs that run as the user of the gateway can read its secrets and end it: ${names.join(', ')}. Set RUN_PROGRAMS_AS to another user of the system (Linux), or "runAs" of each server.`,
      ];
}
