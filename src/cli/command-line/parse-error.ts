// What commander refuses, in our words: what was wrong, and what was perhaps meant.
import type { CommanderError } from 'commander';
import { findNearestName } from '../../platform/nearest-name.ts';
import { PACKAGE_NAME } from '../../platform/own-files.ts';
import { UsageError } from '../command/errors.ts';
import { describeCommand, type InvokedProcess } from '../command/invocation.ts';
import { type Command, type OptionRow, toFlag } from './command.ts';

interface ParsedSoFar {
  /** The words of the command, such as `rules test`; empty where none is known yet. */
  readonly path: readonly string[];
  /** What stands there besides options. */
  readonly operands: readonly string[];
  readonly commands: readonly Command[];
  readonly process: InvokedProcess;
}

/** An error that only says that help was printed stays as it is. */
export function explainParseError(error: CommanderError, parsed: ParsedSoFar): Error {
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
  const { operands, commands, process } = parsed;
  const excess = operands.slice(findRow(parsed)?.operands?.length ?? 0);
  const [first = ''] = excess;
  const says = `Too many arguments: ${excess.join(' ')}.`;
  if (commands.some(({ name }) => name === excess.join(' ')))
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
  const options = args.filter((arg) => !words.includes(arg));
  return describeCommand([...words, ...options], process);
}

/** A word that is none, or the first of two without the second. */
function describeUnknownCommand({ path, operands, commands }: ParsedSoFar): string {
  const given = [...path, ...operands].filter((word) => word !== 'help').join(' ');
  const names = commands.map(({ name }) => name);
  const complete = names.filter((name) => name.startsWith(`${given} `));
  if (complete.length > 0)
    return `${PACKAGE_NAME} ${given} is not complete. There is: ${complete.map((name) => `${PACKAGE_NAME} ${name}`).join(', ')}.`;
  return `Unknown command: ${given}.${suggest(findNearestName(given, [...names, 'help']))}`;
}

const findRow = ({ path, commands }: ParsedSoFar): Command | undefined =>
  commands.find(({ name }) => name === path.join(' '));

const findOption = (parsed: ParsedSoFar, flag: string | undefined): OptionRow | undefined =>
  Object.entries(findRow(parsed)?.options ?? {}).find(([name]) => toFlag(name) === flag)?.[1];

const suggest = (nearest: string | undefined): string =>
  nearest === undefined ? '' : ` Did you mean ${nearest}?`;
