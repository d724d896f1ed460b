// The command line: which command, and how it ends.

import { styleText } from 'node:util';
import { Argument, CommanderError, Option, Command as Program } from 'commander';
import { findNearestName } from '../platform/nearest-name.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../platform/own-files.ts';
import {
  type Command,
  type CommandArgument,
  type Example,
  type OptionRow,
  toFlag,
} from './command-line/command.ts';
import { endWithError, UsageError } from './command-line/errors.ts';
import {
  describeCommand,
  type Invocation,
  type InvokedProcess,
} from './command-line/invocation.ts';
import { COMMANDS, DEFAULT_COMMAND, GROUPS } from './commands.ts';

const ABOUT_POSTERN: ReadonlySet<string> = new Set(['-h', '--help', '-v', '--version']);

export const runPostern = (invocation: Invocation): Promise<void> =>
  run(invocation).catch((error: unknown) => endWithError(error, invocation));

async function run(invocation: Invocation): Promise<void> {
  const program = createProgram(invocation);
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

// The parser and the help, made from the rows by commander.

/**
 * Parses arguments and runs their command. Mistakes are thrown as UsageError; what only printed help, as
 * commander's own error with exit code 0.
 */
function createProgram(invocation: Invocation): Program {
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
  throwUsageErrors(program, invocation);
  for (const command of COMMANDS) {
    const [first = '', second] = command.name.split(' ');
    const parent = second === undefined ? program : findOrAddGroup(first);
    addCommand(parent, command, invocation);
  }
  return program;

  function findOrAddGroup(name: string): Program {
    const present = program.commands.find((command) => command.name() === name);
    if (present !== undefined) return present;
    const group = program
      .command(name)
      .description(toSentence(GROUPS[name] ?? ''))
      .usage('COMMAND')
      .helpCommand(false)
      .helpOption('-h, --help', 'print this');
    throwUsageErrors(group, invocation);
    return group;
  }
}

const TAGLINE = 'An MCP gateway: your MCP servers and tools at one address, behind a login.';

function addCommand(parent: Program, row: Command, invocation: Invocation): void {
  const { name, summary, description, operands = [], examples, exitCode1 } = row;
  const program = parent
    .command(name.split(' ').at(-1) ?? name)
    .summary(summary)
    .description([toSentence(summary), ...description].join('\n\n'))
    .helpOption('-h, --help', 'print this');
  for (const operand of operands) program.addArgument(createArgument(operand));
  for (const [key, option] of Object.entries(row.options)) addOption(program, toFlag(key), option);
  program.addHelpText('after', `${renderExamples(examples)}${renderExitCodes(exitCode1)}`);
  throwUsageErrors(program, invocation);
  program.action(async () => {
    try {
      await row.run(program.opts(), program.args, invocation);
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

function throwUsageErrors(program: Program, { process }: Invocation): void {
  program.exitOverride((error) => {
    throw explainParseError(error, {
      path: describePath(program),
      operands: program.args,
      process,
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

// Mistakes that commander refuses, in our words: what was wrong, and what was perhaps meant.

interface ParsedSoFar {
  /** The words of the command, such as `rules test`; empty where none is known yet. */
  readonly path: readonly string[];
  /** Words besides options. */
  readonly operands: readonly string[];
  readonly process: InvokedProcess;
}

/** An error that only says that help was printed stays as it is. */
function explainParseError(error: CommanderError, parsed: ParsedSoFar): Error {
  if (error.exitCode === 0) return error;
  const path = parsed.path.join(' ');
  return new UsageError(describeError(error, parsed), path === '' ? undefined : path);
}

function describeError({ code, message }: CommanderError, parsed: ParsedSoFar): string {
  switch (code) {
    case 'commander.unknownOption':
      return describeUnknownOption(readQuoted(message), parsed);
    case 'commander.optionMissingArgument':
      return describeMissingValue(readQuoted(message), parsed);
    case 'commander.missingArgument':
      return describeMissingArgument(parsed);
    case 'commander.excessArguments':
      return describeExcess(parsed);
    case 'commander.unknownCommand':
    case 'commander.help':
      return describeUnknownCommand(parsed);
    case 'commander.invalidArgument':
      return describeWrongChoice(message, parsed);
    default:
      return message;
  }
}

/** The option or argument that commander names. */
const readQuoted = (message: string): string => /'([^']*)'/.exec(message)?.[1] ?? '';

function describeUnknownOption(written: string, parsed: ParsedSoFar): string {
  const [option = written] = written.split('=');
  const row = findRow(parsed);
  const known = Object.entries(row?.options ?? {}).flatMap(([key, { kind }]) =>
    kind === 'switch' ? [key, `no-${key}`] : [key],
  );
  const flags = known.map(toFlag);
  if (flags.includes(option)) return `${option} does not take a value.`;
  const nearest = findNearestName(option, flags);
  const name = [PACKAGE_NAME, ...parsed.path].join(' ');
  return `${name} has no option ${option}.${suggest(nearest)}`;
}

/** `written` is as `--config <FILE>`. */
function describeMissingValue(written: string, parsed: ParsedSoFar): string {
  const [flag = written] = written.split(' ');
  const row = findOption(parsed, flag);
  const example =
    row !== undefined && 'example' in row ? `, for example ${flag} ${row.example}` : '';
  const choices = row?.kind === 'choice' ? `: ${row.choices.join(', ')}` : '';
  return `${flag} needs a value${example}${choices}.`;
}

/** "… argument 'disk' is invalid …", or "… value 'disk' is invalid for argument 'CLIENT' …". */
function describeWrongChoice(message: string, parsed: ParsedSoFar): string {
  const { operands: [argument] = [] } = findRow(parsed) ?? {};
  const [, given = ''] = /(?:argument|value) '([^']*)' is invalid/.exec(message) ?? [];
  const [, flag] = /^error: option '(\S+)/.exec(message) ?? [];
  const row = findOption(parsed, flag);
  const choices = row?.kind === 'choice' ? row.choices : (argument?.choices ?? []);
  const nearest = findNearestName(given, choices);
  const subject = flag ?? argument?.name;
  const [only] = choices;
  if (choices.length === 1) return `${subject} must be ${only}, not ${JSON.stringify(given)}.`;
  return `${subject}: ${JSON.stringify(given)} is not one of ${choices.join(', ')}.${suggest(nearest)}`;
}

function describeMissingArgument(parsed: ParsedSoFar): string {
  const { operands: [argument] = [] } = findRow(parsed) ?? {};
  const choices = argument?.choices === undefined ? '' : `: ${argument.choices.join(', ')}`;
  return `${[PACKAGE_NAME, ...parsed.path].join(' ')} needs ${argument?.name}${choices}.`;
}

function describeExcess(parsed: ParsedSoFar): string {
  const { operands, process } = parsed;
  const excess = operands.slice(findRow(parsed)?.operands?.length ?? 0);
  const [first = ''] = excess;
  const says = `Too many arguments: ${excess.join(' ')}.`;
  if (COMMANDS.some(({ name }) => name === excess.join(' ')))
    return `${says} The command comes first: ${describeFirst(excess, process)}`;
  // npm keeps the options for itself that stand before `--`, and passes on their values.
  if (/^\d+$/.test(first))
    return `${says} The port is given by --port ${first}; with npm run, after --: npm run dev -- --port ${first}.`;
  // A file that stands alone was meant for an option.
  if (/\.(jsonc?|ya?ml)$/.test(first)) return `${says}${suggest(`--config ${first}`)}`;
  return `${says}${suggest(/\.[cm]?[jt]s$/.test(first) ? `--catalog ${first}` : undefined)}`;
}

/** The command line with these words at its beginning. */
function describeFirst(words: readonly string[], process: InvokedProcess): string {
  const args = process.argv.slice(2);
  const others = args.filter((arg) => !words.includes(arg));
  return describeCommand([...words, ...others], process);
}

/** A word that is none, or the first of two without the second. */
function describeUnknownCommand({ path, operands }: ParsedSoFar): string {
  const given = [...path, ...operands].filter((word) => word !== 'help').join(' ');
  const names = COMMANDS.map(({ name }) => name);
  const complete = names.filter((name) => name.startsWith(`${given} `));
  if (complete.length > 0)
    return `${PACKAGE_NAME} ${given} is not complete. There is: ${complete.map((name) => `${PACKAGE_NAME} ${name}`).join(', ')}.`;
  return `Unknown command: ${given}.${suggest(findNearestName(given, [...names, 'help']))}`;
}

const findRow = ({ path }: ParsedSoFar): Command | undefined =>
  COMMANDS.find(({ name }) => name === path.join(' '));

const findOption = (parsed: ParsedSoFar, flag: string | undefined): OptionRow | undefined =>
  Object.entries(findRow(parsed)?.options ?? {}).find(([name]) => toFlag(name) === flag)?.[1];

const suggest = (nearest: string | undefined): string =>
  nearest === undefined ? '' : ` Did you mean ${nearest}?`;
