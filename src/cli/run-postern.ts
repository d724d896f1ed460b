// Parses the command line, runs the command and handles its errors.

import { styleText } from 'node:util';
import { Argument, CommanderError, Option, Command as Program } from 'commander';
import { suggestName } from '../platform/nearest-name.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../platform/own-files.ts';
import {
  type Command,
  type CommandArgument,
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

const ABOUT_POSTERN = new Set(['-h', '--help', '-v', '--version']);

export async function runPostern(invocation: Invocation): Promise<void> {
  try {
    const args = invocation.process.argv.slice(2);
    const [first = '-'] = args;
    // `postern --port 3010` starts the gateway.
    const isNamed = !first.startsWith('-') || ABOUT_POSTERN.has(first);
    await createProgram(invocation).parseAsync(isNamed ? args : [DEFAULT_COMMAND, ...args], {
      from: 'user',
    });
  } catch (error) {
    // Only help or the version was printed.
    if (!(error instanceof CommanderError && error.exitCode === 0)) endWithError(error, invocation);
  }
}

// Builds the parser and the help with commander from the rows.

/**
 * Parses arguments and runs their command. Throws mistakes as UsageError, and commander's own error with exit code 0 if only help
 * was printed.
 */
function createProgram(invocation: Invocation) {
  const program = new Program(PACKAGE_NAME)
    .description(TAGLINE)
    .usage('[COMMAND] [options]')
    .version(PACKAGE_VERSION, '-v, --version', 'print the version')
    .helpOption('-h, --help', 'print this; postern COMMAND --help prints the help of a command')
    .helpCommand('help [COMMAND]', 'print this, or the help of a command')
    .configureHelp({
      styleTitle: toTitle,
      // A group is not a command: its commands are listed with both words.
      visibleCommands: (parent) => parent.commands.flatMap(listRunnable),
      // The words after `postern`: `rules test`, `doctor [URL]`.
      subcommandTerm: (command) => {
        const args = command.registeredArguments.map((argument) =>
          argument.required ? argument.name() : `[${argument.name()}]`,
        );
        return [...describePath(command), ...args].join(' ');
      },
      // Uses the notation of the documentation: --config FILE.
      optionTerm: ({ flags }) => flags.replace(/[<>]/g, ''),
      // Omits commander's "(default: false)".
      optionDescription: ({ description, argChoices }) =>
        argChoices === undefined ? description : `${description}: ${argChoices.join(', ')}`,
    })
    // endWithError prints mistakes.
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

  function findOrAddGroup(name: string) {
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

const TAGLINE = 'An MCP gateway: your MCP servers and tools at one address, behind one login.';

function addCommand(parent: Program, row: Command, invocation: Invocation) {
  const { name, summary, description, operands = [], examples, exitCode1 } = row;
  const program = parent
    .command(name.split(' ').at(-1) ?? name)
    .summary(summary)
    .description([toSentence(summary), ...description].join('\n\n'))
    .helpOption('-h, --help', 'print this');
  for (const operand of operands) {
    const written = operand.isRequired ? `<${operand.name}>` : `[${operand.name}]`;
    const argument = new Argument(written, operand.summary);
    program.addArgument(operand.choices ? argument.choices(operand.choices) : argument);
  }
  for (const [key, option] of Object.entries(row.options)) addOption(program, toFlag(key), option);
  const lines = Object.entries(examples).map(([typed, does]) => `  ${typed}\n      ${does}\n`);
  const usage = lines.length === 0 ? '' : `\n${toTitle('Examples:')}\n${lines.join('')}`;
  const exits = exitCode1 === undefined ? '' : `\n${toTitle('Exit code 1:')} ${exitCode1}.\n`;
  program.addHelpText('after', `${usage}${exits}`);
  throwUsageErrors(program, invocation);
  program.action(async () => {
    try {
      await row.run(program.opts(), invocation, program.args);
    } catch (error) {
      throw error instanceof UsageError ? new UsageError(error.message, name) : error;
    }
  });
}

function addOption(program: Program, flag: string, row: OptionRow) {
  const written = 'value' in row ? `${flag} <${row.value}>` : flag;
  const option = new Option(written, row.summary);
  if (row.kind === 'flag') option.default(false);
  else if (row.kind === 'choice') option.choices(row.choices);
  else if (row.kind !== 'switch') option.argParser(createParser(program, flag, row));
  if (row.kind === 'list') option.default([]);
  program.addOption(option);
  if (row.kind === 'switch')
    program.addOption(new Option(flag.replace('--', '--no-'), row.negatedSummary));
}

function createParser(
  program: Program,
  flag: string,
  row: Extract<OptionRow, { readonly example: string }>,
) {
  const refuse = (message: string) => new UsageError(message, describePath(program).join(' '));
  function read(value: string) {
    if (value === '-' && row.takesStandardInput) return value;
    if (value === '-' && row.kind === 'text' && row.standardInput !== undefined)
      throw refuse(
        `${flag} takes the name of a file. To read standard input, write ${row.standardInput}.`,
      );
    // commander takes the next argument as the value, even if it is an option.
    if (value === '' || value.startsWith('-'))
      throw refuse(`${flag} needs a value, for example ${flag} ${row.example}.`);
    const problem = row.kind === 'text' ? row.findProblem?.(value) : undefined;
    if (problem !== undefined) throw refuse(`${flag}: ${problem}`);
    return value;
  }
  return (value: string, former: unknown): unknown =>
    row.kind === 'text' ? read(value) : [former, read(value)].flat();
}

function throwUsageErrors(program: Program, { process }: Invocation) {
  program.exitOverride((error) => {
    // An error that only reports printed help is passed on.
    if (error.exitCode === 0) throw error;
    throw new UsageError(
      describeError(error, program, process),
      describePath(program).join(' ') || undefined,
    );
  });
}

/** The words after `postern`. */
function describePath(program: Program): readonly string[] {
  return program.parent === null ? [] : [...describePath(program.parent), program.name()];
}

function listRunnable(program: Program): readonly Program[] {
  return program.commands.length === 0 ? [program] : program.commands.flatMap(listRunnable);
}

const toSentence = (summary: string) => `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;

const renderRootNotes = () => `
Without a command, postern starts the gateway. Settings are environment variables; the file .env in the
current folder fills in what the environment does not set.

${toTitle('Exit codes:')}
  0  it worked
  1  it failed, or a check found something
  2  the command line is wrong
`;

/** commander removes the colour if the output is not a terminal. */
const toTitle = (text: string) => styleText('bold', text);

// Rewrites commander's error messages: the mistake, and a suggestion.

/** `program`: the command, as far as it was recognized. */
function describeError(
  { code, message }: CommanderError,
  program: Program,
  process: InvokedProcess,
) {
  // The option or argument that commander quotes.
  const [, quoted = ''] = /'([^']*)'/.exec(message) ?? [];
  switch (code) {
    case 'commander.unknownOption':
      return describeUnknownOption(quoted, program);
    case 'commander.optionMissingArgument':
      return describeMissingValue(quoted, program);
    case 'commander.missingArgument': {
      const argument = findOperand(program);
      return `${nameCommand(program)} needs ${argument?.name}${listChoices(argument)}.`;
    }
    case 'commander.excessArguments':
      return describeExcess(program, process);
    case 'commander.unknownCommand':
    case 'commander.help':
      return describeUnknownCommand(program);
    case 'commander.invalidArgument':
      return describeWrongChoice(message, program);
    default:
      return message;
  }
}

const nameCommand = (program: Program) => [PACKAGE_NAME, ...describePath(program)].join(' ');

function describeUnknownOption(written: string, program: Program) {
  const [option = written] = written.split('=');
  const row = findRow(program);
  const known = Object.entries(row?.options ?? {}).flatMap(([key, { kind }]) =>
    kind === 'switch' ? [key, `no-${key}`] : [key],
  );
  const flags = known.map(toFlag);
  if (flags.includes(option)) return `${option} does not take a value.`;
  return `${nameCommand(program)} has no option ${option}.${suggestName(option, flags)}`;
}

/** `written` has the form `--config <FILE>`. */
function describeMissingValue(written: string, program: Program) {
  const [flag = written] = written.split(' ');
  const row = findOption(program, flag);
  const example = row && 'example' in row ? `, for example ${flag} ${row.example}` : '';
  const choices = row?.kind === 'choice' ? listChoices(row) : '';
  return `${flag} needs a value${example}${choices}.`;
}

const listChoices = ({ choices }: Pick<CommandArgument, 'choices'> = {}) =>
  choices === undefined ? '' : `: ${choices.join(', ')}`;

/** "… argument 'disk' is invalid …", or "… value 'disk' is invalid for argument 'CLIENT' …". */
function describeWrongChoice(message: string, program: Program) {
  const argument = findOperand(program);
  const [, given = ''] = /(?:argument|value) '([^']*)' is invalid/.exec(message) ?? [];
  const [, flag] = /^error: option '(\S+)/.exec(message) ?? [];
  const row = findOption(program, flag);
  const choices = row?.kind === 'choice' ? row.choices : (argument?.choices ?? []);
  const subject = flag ?? argument?.name;
  const [only] = choices;
  if (choices.length === 1) return `${subject} must be ${only}, not ${JSON.stringify(given)}.`;
  return `${subject}: ${JSON.stringify(given)} is not one of ${choices.join(', ')}.${suggestName(given, choices)}`;
}

function describeExcess(program: Program, process: InvokedProcess) {
  const excess = program.args.slice(findRow(program)?.operands?.length ?? 0);
  const [first = ''] = excess;
  const says = `Too many arguments: ${excess.join(' ')}.`;
  if (COMMANDS.some(({ name }) => name === excess.join(' '))) {
    const others = process.argv.slice(2).filter((arg) => !excess.includes(arg));
    return `${says} The command comes first: ${describeCommand([...excess, ...others], process)}`;
  }
  // npm consumes options before `--`, and passes on their values.
  if (/^\d+$/.test(first))
    return `${says} Pass the port with --port ${first}; with npm run, after --: npm run dev -- --port ${first}.`;
  // A bare file name was meant as the value of an option.
  if (/\.(jsonc?|ya?ml)$/.test(first)) return `${says} Did you mean --config ${first}?`;
  return /\.[cm]?[jt]s$/.test(first) ? `${says} Did you mean --catalog ${first}?` : says;
}

/** An unknown word, or a group without its second word. */
function describeUnknownCommand(program: Program) {
  const given = [...describePath(program), ...program.args]
    .filter((word) => word !== 'help')
    .join(' ');
  const names = COMMANDS.map(({ name }) => name);
  const complete = names.filter((name) => name.startsWith(`${given} `));
  if (complete.length > 0)
    return `${PACKAGE_NAME} ${given} is not complete. There is: ${complete.map((name) => `${PACKAGE_NAME} ${name}`).join(', ')}.`;
  return `Unknown command: ${given}.${suggestName(given, [...names, 'help'])}`;
}

function findRow(program: Program) {
  const path = describePath(program).join(' ');
  return COMMANDS.find(({ name }) => name === path);
}

const findOperand = (program: Program) => findRow(program)?.operands?.[0];

const findOption = (program: Program, flag: string | undefined) =>
  Object.entries(findRow(program)?.options ?? {}).find(([name]) => toFlag(name) === flag)?.[1];
