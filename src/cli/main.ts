#!/usr/bin/env node
import { ConfigError } from '../core/config/load.ts';
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
    options.watch
      ? (await import('./watch/watch.ts')).watch(process.argv.slice(2), options)
      : (await import('./dev.ts')).dev(options),
  help: async () => console.log(USAGE),
  version: async () => console.log(PACKAGE_VERSION),
};

run().catch((error: unknown) => {
  console.error(explain(error).join('\n'));
  // Of a syntax error Node alone knows the place, and prints it when nobody catches the error.
  if (error instanceof SyntaxError) queueMicrotask(() => raise(error));
  else process.exit(error instanceof UsageError ? 2 : 1);
});

async function run(): Promise<void> {
  const { command, ...options } = parseCommandLine(process.argv.slice(2));
  await commands[command](options);
}

function explain(error: unknown): readonly string[] {
  if (error instanceof UsageError) return [error.message, '', USAGE.trimEnd()];
  if (error instanceof ConfigError)
    return ['The settings are not right:', ...bullets(error.problems)];
  if (error instanceof DefinitionError) return ['Postern cannot start:', `  - ${error.message}`];
  if (error instanceof StartError) return ['Postern cannot start:', ...bullets(error.lines)];
  if (error instanceof SyntaxError) return ['Postern cannot start, because of this:'];
  return ['Postern failed to start; this should not happen:', String(error)];
}

function bullets(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `  - ${line}`);
}

function raise(error: Error): never {
  throw error;
}
