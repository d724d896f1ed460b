// Every command of `postern`, in the order of the help.
import type { Command } from '../command-line/command.ts';
import { clientsHashCommand } from './clients-hash.ts';
import { completionCommand } from './completion.ts';
import { configCommand } from './config.ts';
import { connectCommand } from './connect.ts';
import { devCommand } from './dev.ts';
import { doctorCommand } from './doctor.ts';
import { exportCommand } from './export.ts';
import { initCommand } from './init.ts';
import { lockCommand } from './lock.ts';
import { rulesReplayCommand } from './rules-replay.ts';
import { rulesTestCommand } from './rules-test.ts';
import { startCommand } from './start.ts';
import { versionCommand } from './version.ts';

export const COMMANDS: readonly Command[] = [
  startCommand,
  devCommand,
  initCommand,
  doctorCommand,
  configCommand,
  connectCommand,
  lockCommand,
  rulesTestCommand,
  rulesReplayCommand,
  clientsHashCommand,
  exportCommand,
  completionCommand,
  versionCommand,
];

/** First words of commands that have two. */
export const GROUPS: Readonly<Record<string, string>> = {
  rules: 'try the rules of the configuration file',
  clients: 'secrets of clients that log in as themselves',
};

/** What `postern` does without a command. */
export const DEFAULT_COMMAND = 'start';
