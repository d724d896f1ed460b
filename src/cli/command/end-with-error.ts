// What is printed when a command fails.
import { ConfigError } from '../../config/problem.ts';
import { DefinitionError } from '../../errors/definition-error.ts';
import { escapeInvisible } from '../../platform/visible-json.ts';
import { LockFileError } from '../../upstreams/lock/lock-file.ts';
import { CommandError, StartError, UsageError } from './errors.ts';
import type { Invocation } from './invocation.ts';

/** The whole help would push the message off the screen. */
const describeHelp = (command: string | undefined): string =>
  command === undefined
    ? 'postern --help lists all commands.'
    : `postern ${command} --help lists its options, with examples.`;

/** Prints why, and ends the process: exit code 2 for a wrong command line, else 1. */
export function endWithError(error: unknown, { process, console }: Invocation): void {
  // Messages quote files, which may be another's: nothing of them moves the cursor of a terminal.
  console.error(escapeInvisible(describeError(error).join('\n')));
  // Node alone knows the place of a syntax error, and prints it when nobody catches the error.
  if (error instanceof SyntaxError) queueMicrotask(() => rethrow(error));
  else process.exit(error instanceof UsageError ? 2 : 1);
}

function describeError(error: unknown): readonly string[] {
  if (error instanceof UsageError) return [error.message, describeHelp(error.command)];
  if (error instanceof ConfigError) return ['Invalid settings:', ...formatBullets(error.problems)];
  if (error instanceof CommandError) return [error.heading, ...formatBullets(error.lines)];
  if (error instanceof LockFileError) return ['The lock cannot be used:', `  - ${error.message}`];
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
