// The command line: which command, and how it ends.
import { CommanderError } from 'commander';
import { endWithError } from './command/errors.ts';
import type { Invocation } from './command/invocation.ts';
import { createProgram } from './command-line/create-program.ts';
import { COMMANDS, DEFAULT_COMMAND, GROUPS } from './commands/all.ts';

const ABOUT_POSTERN: ReadonlySet<string> = new Set(['-h', '--help', '-v', '--version']);

export const runPostern = (invocation: Invocation): Promise<void> =>
  run(invocation).catch((error: unknown) => endWithError(error, invocation));

async function run(invocation: Invocation): Promise<void> {
  const program = createProgram({ commands: COMMANDS, groups: GROUPS, invocation });
  const args = invocation.process.argv.slice(2);
  try {
    await program.parseAsync(addDefaultCommand(args), { from: 'user' });
  } catch (error) {
    // Help or the version was printed.
    if (!(error instanceof CommanderError && error.exitCode === 0)) throw error;
  }
}

/** `postern --port 3010` starts the gateway. */
function addDefaultCommand(args: readonly string[]): readonly string[] {
  const [first = '-'] = args;
  return first.startsWith('-') && !ABOUT_POSTERN.has(first) ? [DEFAULT_COMMAND, ...args] : args;
}
