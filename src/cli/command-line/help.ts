// What stands below the options in a command's help.
import { styleText } from 'node:util';
import type { Example } from './command.ts';

export function renderExamples(examples: readonly Example[]): string {
  const lines = examples.map(({ command, does }) => `  ${command}\n      ${does}\n`);
  return lines.length === 0 ? '' : `\n${title('Examples:')}\n${lines.join('')}`;
}

export const renderExitCodes = (exitCode1: string | undefined): string =>
  exitCode1 === undefined ? '' : `\n${title('Exit code 1:')} ${exitCode1}.\n`;

export const renderRootNotes = (): string => `
Without a command, postern starts the gateway. Settings are environment variables; the file .env in the
current folder fills in what the environment does not set.

${title('Exit codes:')}
  0  it worked
  1  it failed, or a check found something
  2  the command line is wrong
`;

/** commander takes the colour away where the output is no terminal. */
const title = (text: string): string => styleText('bold', text);
