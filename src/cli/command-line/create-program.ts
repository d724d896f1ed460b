// The parser and the help, made from the rows by commander.
import { styleText } from 'node:util';
import { Argument, Option, Command as Program } from 'commander';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../../platform/own-files.ts';
import { UsageError } from '../command/errors.ts';
import type { Invocation } from '../command/invocation.ts';
import {
  type Command,
  type CommandArgument,
  type Example,
  type OptionRow,
  toFlag,
} from './command.ts';
import { explainParseError } from './parse-error.ts';

interface ProgramOptions {
  readonly commands: readonly Command[];
  /** What first words of commands that have two are about. */
  readonly groups: Readonly<Record<string, string>>;
  readonly invocation: Invocation;
}

/**
 * Parses arguments and runs their command. Mistakes are thrown as UsageError; what only printed help, as
 * commander's own error with exit code 0.
 */
export function createProgram(options: ProgramOptions): Program {
  const { commands, groups, invocation } = options;
  const program = new Program(PACKAGE_NAME)
    .description(TAGLINE)
    .usage('[COMMAND] [options]')
    .version(PACKAGE_VERSION, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this; postern COMMAND --help prints the help of a command')
    .helpCommand('help [COMMAND]', 'print this, or the help of a command')
    .configureHelp({
      styleTitle: toTitle,
      // A group is no command: its commands are listed with both words.
      visibleCommands: (parent) => parent.commands.flatMap(listRunnable),
      subcommandTerm: renderTerm,
      // As the rest writes it: --config FILE.
      optionTerm: ({ flags }) => flags.replace(/[<>]/g, ''),
      // Without commander's "(default: false)".
      optionDescription: ({ description, argChoices }) =>
        argChoices === undefined ? description : `${description}: ${argChoices.join(', ')}`,
    })
    // Mistakes are printed by endWithError.
    .configureOutput({
      writeOut: (text) => void invocation.process.stdout.write(text),
      outputError: () => {},
      writeErr: () => {},
    })
    .addHelpText('after', renderRootNotes());
  throwUsageErrors(program, options);
  for (const command of commands) {
    const [first = '', second] = command.name.split(' ');
    const parent = second === undefined ? program : findOrAddGroup(first);
    addCommand(parent, command, options);
  }
  return program;

  function findOrAddGroup(name: string): Program {
    const present = program.commands.find((command) => command.name() === name);
    if (present !== undefined) return present;
    const group = program
      .command(name)
      .description(toSentence(groups[name] ?? ''))
      .usage('COMMAND')
      .helpCommand(false)
      .helpOption('-h, --help', 'print this');
    throwUsageErrors(group, options);
    return group;
  }
}

const TAGLINE = 'An MCP gateway: your MCP servers and tools at one address, behind a login.';

function addCommand(parent: Program, row: Command, options: ProgramOptions): void {
  const { name, summary, description, operands = [], examples, exitCode1 } = row;
  const { commands, invocation } = options;
  const program = parent
    .command(name.split(' ').at(-1) ?? name)
    .summary(summary)
    .description([toSentence(summary), ...description].join('\n\n'))
    .helpOption('-h, --help', 'print this');
  for (const operand of operands) program.addArgument(createArgument(operand));
  for (const [key, option] of Object.entries(row.options)) addOption(program, toFlag(key), option);
  program.addHelpText('after', `${renderExamples(examples)}${renderExitCodes(exitCode1)}`);
  throwUsageErrors(program, options);
  program.action(async () => {
    try {
      await row.run(program.opts(), program.args, { commands, ...invocation });
    } catch (error) {
      throw error instanceof UsageError ? new UsageError(error.message, name) : error;
    }
  });
}

function createArgument({ name, summary, isRequired, choices }: CommandArgument): Argument {
  const argument = new Argument(isRequired ? `<${name}>` : `[${name}]`, summary);
  return choices === undefined ? argument : argument.choices(choices);
}

function addOption(program: Program, flag: string, row: OptionRow): void {
  switch (row.kind) {
    case 'flag':
      program.addOption(new Option(flag, row.summary).default(false));
      break;
    case 'switch':
      program.addOption(new Option(flag, row.summary));
      program.addOption(new Option(flag.replace('--', '--no-'), row.negatedSummary));
      break;
    case 'choice':
      program.addOption(new Option(`${flag} <${row.value}>`, row.summary).choices(row.choices));
      break;
    default:
      program.addOption(createValueOption(program, flag, row));
  }
}

type ValueOption = Extract<OptionRow, { readonly example: string }>;

function createValueOption(program: Program, flag: string, row: ValueOption): Option {
  const option = new Option(`${flag} <${row.value}>`, row.summary);
  const refuse = (message: string) => new UsageError(message, describePath(program).join(' '));
  function read(value: string): string {
    if (value === '-' && row.takesStandardInput) return value;
    if (value === '-' && row.kind === 'text' && row.standardInput !== undefined)
      throw refuse(
        `${flag} takes the name of a file. To read standard input, write ${row.standardInput}.`,
      );
    // commander takes what follows for the value, be it the next option.
    if (value === '' || value.startsWith('-'))
      throw refuse(`${flag} needs a value, for example ${flag} ${row.example}.`);
    const problem = row.kind === 'text' ? row.findProblem?.(value) : undefined;
    if (problem !== undefined) throw refuse(`${flag}: ${problem}`);
    return value;
  }
  if (row.kind === 'text') return option.argParser(read);
  return option
    .default([])
    .argParser((value, former: readonly string[]) => [...former, read(value)]);
}

function throwUsageErrors(program: Program, { commands, invocation }: ProgramOptions): void {
  program.exitOverride((error) => {
    throw explainParseError(error, {
      path: describePath(program),
      operands: program.args,
      commands,
      process: invocation.process,
    });
  });
}

/** The words after `postern`. */
function describePath(program: Program): readonly string[] {
  return program.parent === null ? [] : [...describePath(program.parent), program.name()];
}

function listRunnable(program: Program): readonly Program[] {
  return program.commands.length === 0 ? [program] : program.commands.flatMap(listRunnable);
}

/** `rules test`, `doctor [URL]`: what is typed after `postern`. */
function renderTerm(program: Program): string {
  const args = program.registeredArguments.map((argument) =>
    argument.required ? argument.name() : `[${argument.name()}]`,
  );
  return [...describePath(program), ...args].join(' ');
}

const toSentence = (summary: string): string =>
  `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;

function renderExamples(examples: readonly Example[]): string {
  const lines = examples.map(({ command, does }) => `  ${command}\n      ${does}\n`);
  return lines.length === 0 ? '' : `\n${toTitle('Examples:')}\n${lines.join('')}`;
}

const renderExitCodes = (exitCode1: string | undefined): string =>
  exitCode1 === undefined ? '' : `\n${toTitle('Exit code 1:')} ${exitCode1}.\n`;

const renderRootNotes = (): string => `
Without a command, postern starts the gateway. Settings are environment variables; the file .env in the
current folder fills in what the environment does not set.

${toTitle('Exit codes:')}
  0  it worked
  1  it failed, or a check found something
  2  the command line is wrong
`;

/** commander takes the colour away where the output is no terminal. */
const toTitle = (text: string): string => styleText('bold', text);
