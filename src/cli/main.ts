#!/usr/bin/env node
import { ConfigError } from '../core/config/config-error.ts';
import { DefinitionError } from '../core/errors/definition-error.ts';
import { PACKAGE_VERSION } from '../core/version.ts';
import {
  type CommandName,
  type Options,
  parseCommandLine,
  USAGE,
  UsageError,
} from './command-line.ts';
import { StartError } from './start-error.ts';

/** Each command is loaded when it is asked for: start needs nothing of dev. */
const commands: Readonly<Record<CommandName, (options: Options) => Promise<void>>> = {
  start: async (options) => (await import('./start.ts')).start(options),
  dev: async (options) =>
    options.isWatching
      ? (await import('./watch/watch.ts')).watch(process.argv.slice(2), options)
      : (await import('./dev.ts')).dev(options),
  help: async () => console.log(USAGE),
  version: async () => console.log(PACKAGE_VERSION),
};

run().catch((error: unknown) => {
  console.error(describeError(error).join('\n'));
  // Node alone knows the place of a syntax error, and prints it when nobody catches the error.
  if (error instanceof SyntaxError) queueMicrotask(() => rethrow(error));
  else process.exit(error instanceof UsageError ? 2 : 1);
});

async function run(): Promise<void> {
  const { command, ...options } = parseCommandLine(process.argv.slice(2));
  await commands[command](options);
}

function describeError(error: unknown): readonly string[] {
  if (error instanceof UsageError) return [error.message, '', USAGE.trimEnd()];
  if (error instanceof ConfigError) return ['Invalid settings:', ...formatBullets(error.problems)];
  if (error instanceof DefinitionError) return ['Postern cannot start:', `  - ${error.message}`];
  if (error instanceof StartError) return ['Postern cannot start:', ...formatBullets(error.lines)];
  if (error instanceof SyntaxError) return ['Postern cannot start because of a syntax error:'];
  return ['Postern cannot start because of an unexpected error:', `  - ${String(error)}`];
}

function formatBullets(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `  - ${line}`);
}

function rethrow(error: Error): never {
  throw error;
}
