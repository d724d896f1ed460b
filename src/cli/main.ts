#!/usr/bin/env node
import { PACKAGE_VERSION } from '../core/version.ts';
import { type CommandLine, type CommandName, parseCommandLine, USAGE } from './command-line.ts';
import { endWithError } from './end-with-error.ts';

/** Each command is loaded when it is asked for: start needs nothing of dev. */
const commands: Readonly<Record<CommandName, (options: CommandLine) => Promise<void>>> = {
  start: async (options) => (await import('./start.ts')).start(options),
  dev: async (options) =>
    options.isWatching
      ? (await import('./watch/watch.ts')).watch(process.argv.slice(2), options)
      : (await import('./dev.ts')).dev(options),
  lock: async (options) => (await import('./lock/lock.ts')).lock(options),
  'rules test': async (options) => (await import('./rules/test-rules.ts')).testRules(options),
  help: async () => console.log(USAGE),
  version: async () => console.log(PACKAGE_VERSION),
};

run().catch(endWithError);

async function run(): Promise<void> {
  const commandLine = parseCommandLine(process.argv.slice(2));
  await commands[commandLine.command](commandLine);
}
