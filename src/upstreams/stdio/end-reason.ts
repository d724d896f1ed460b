// §18.4: why a process of a server is not there, for callers and for the operator.
import { existsSync } from 'node:fs';
import { getErrorCode } from '../../platform/error-code.ts';
import { hideSecretArguments } from '../../platform/secret-texts.ts';
import type { ProgramUser, StdioUpstreamConfig } from '../config/upstream-config.ts';
import type { UpstreamFailure } from '../upstream.ts';

export interface EndReason {
  /** Goes on a sentence about the server: `its process ended with exit code 1`. Clients may see it. */
  readonly what: string;
  /** How requests under way fail; `unavailable` unless given. */
  readonly failure?: UpstreamFailure;
  /** What the operator can do, as a sentence; it may name paths. */
  readonly advice?: string;
  /** The last lines of its error output, for the operator alone. */
  readonly lastWords?: readonly string[];
}

export interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export const explainExit = (
  { command, runAs }: StdioUpstreamConfig,
  { code, signal }: ChildExit,
): EndReason => ({
  what:
    signal === null
      ? `its process ended with exit code ${code}`
      : `its process was ended by ${signal}`,
  ...(runAs !== undefined &&
    (code === NOT_EXECUTABLE || code === NOT_STARTED) && {
      advice: `If a line of errorOutput begins with setpriv, it says why ${hideSecretArguments(command)} could not be started as the user ${runAs.name ?? runAs.uid}.`,
    }),
});

/** How setpriv ends where it cannot execute a command, or cannot find it or change the user. */
const [NOT_EXECUTABLE, NOT_STARTED] = [126, 127];

export function explainStart(config: StdioUpstreamConfig, error: unknown): EndReason {
  const { cwd } = config;
  const command = hideSecretArguments(toCommand(config).command);
  const what = 'its command could not be started';
  const code = getErrorCode(error);
  if (cwd !== undefined && !existsSync(cwd)) {
    return { what, advice: `The folder of "cwd", ${cwd}, does not exist.` };
  }
  const explain = ADVICE[code ?? ''];
  return { what, advice: explain?.(command) ?? `${command}: ${code ?? String(error)}` };
}

const ADVICE: Readonly<Record<string, (command: string) => string>> = {
  ENOENT: (command) => `The command ${command} was not found. ${adviseOnMissing(command)}`,
  EACCES: (command) =>
    `The command ${command} may not be executed. Make the file executable for the user of the gateway.`,
  EAGAIN: () =>
    'There are too many processes. Raise the limit of processes, or lower maxProcesses.',
  EMFILE: () => 'Too many files are open. Raise the limit of open files (ulimit -n).',
};

/** No shell reads the command. */
function adviseOnMissing(command: string): string {
  if (/^~/.test(command)) return `Write \${HOME} in place of ~: no shell expands it.`;
  if (/\s/.test(command)) {
    return '"command" is the program alone, and no shell reads it: its arguments belong in "args", a folder in "cwd".';
  }
  if (command.includes('/')) {
    return 'Write its whole path: another one begins at "cwd", or where the gateway was started.';
  }
  return 'Install it, add its folder to the PATH of the gateway, or write its whole path in "command".';
}

// §18.3: a program of another user than the gateway's, started by setpriv of util-linux. The uid and gid of Node's spawn
// do not do: from a gateway that is not root, its ambient capabilities would go to the program, which could then become
// any user. https://man7.org/linux/man-pages/man1/setpriv.1.html

/**
 * Where systems have it. Not by the PATH: that of a program may name a folder that the program writes to, and until it
 * has changed the user, setpriv has the rights of the gateway.
 */
const SETPRIV_PATHS = [
  '/usr/bin/setpriv',
  '/bin/setpriv',
  '/usr/sbin/setpriv',
  '/sbin/setpriv',
  '/run/current-system/sw/bin/setpriv',
] as const;

interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

const findSetpriv = (): string =>
  SETPRIV_PATHS.find((path) => existsSync(path)) ?? SETPRIV_PATHS[0];

/** What is started in place of the command of a server. */
export const toCommand = ({ command, args, runAs }: StdioUpstreamConfig): Command =>
  runAs === undefined ? { command, args } : runCommandAs(runAs, { command, args });

export const runCommandAs = ({ uid, gid }: ProgramUser, { command, args }: Command): Command => ({
  command: findSetpriv(),
  args: [
    // `+1000` is always the number. Without the sign, setpriv would first look for a user named `1000`.
    `--reuid=+${uid}`,
    `--regid=+${gid}`,
    '--clear-groups',
    '--inh-caps=-all',
    '--ambient-caps=-all',
    // So neither sudo nor a file with capabilities gives it rights, and what is in the bounding set does not matter.
    // To empty that set takes a capability that the gateway has no other use for.
    '--no-new-privs',
    '--',
    command,
    ...args,
  ],
});
