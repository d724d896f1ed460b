// §18.3: a program of another user than the gateway's, started by setpriv of util-linux. The uid and gid of Node's spawn
// do not do: from a gateway that is not root, its ambient capabilities would go to the program, which could then become
// any user. https://man7.org/linux/man-pages/man1/setpriv.1.html
import { existsSync } from 'node:fs';
import type { ProgramUser, StdioUpstreamConfig } from '../config/upstream-config.ts';

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

export interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

export const findSetpriv = (): string =>
  SETPRIV_PATHS.find((path) => existsSync(path)) ?? SETPRIV_PATHS[0];

/** What is started in place of the command of a server. */
export const toCommand = ({ command, args, runAs }: StdioUpstreamConfig): Command =>
  runAs === undefined ? { command, args } : runCommandAs(runAs, { command, args });

export const runCommandAs = ({ uid, gid }: ProgramUser, { command, args }: Command): Command => ({
  command: findSetpriv(),
  args: [
    // With the sign it is a number alone: setpriv would first look for a user who is called so.
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
