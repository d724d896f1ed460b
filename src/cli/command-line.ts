// What may stand after `postern`.
import { parseArgs } from 'node:util';
import { findNearestName } from '../core/nearest-name.ts';
import { PACKAGE_NAME } from '../core/version.ts';

/** Options of `start` and `dev`; undefined where they were not given. */
export interface Options {
  /** A file whose default export is the catalogue. */
  readonly catalog: string | undefined;
  /** In place of PORT. */
  readonly port: string | undefined;
  /** Start again after each change. */
  readonly watch: boolean;
}

export interface CommandLine extends Options {
  readonly command: CommandName;
}

export type CommandName = 'start' | 'dev' | 'help' | 'version';

export const USAGE = `Usage: ${PACKAGE_NAME} [command] [options]

Commands:
  start            run the service (the default)
  dev              run it for development: everybody can log in, with any name
  help             print this (also -h, --help)
  version          print the version (also -v, --version)

Options of start and dev:
  --catalog FILE   serve the tools, prompts and resources of FILE, whose default export is a
                   catalogue, in place of the built-in ones
  --port N         listen on this port, whatever PORT says

Options of dev:
  --watch          start again when the code of the catalogue changes

Settings are environment variables. start and dev also read the file .env of the current folder;
a variable of the environment wins.
`;

/** A command line that cannot be understood: a sentence for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const OPTIONS = {
  catalog: { type: 'string' },
  port: { type: 'string' },
  watch: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const;

/** Which commands there are, and what each takes. */
const COMMANDS: Readonly<Record<CommandName, readonly string[]>> = {
  start: ['catalog', 'port'],
  dev: ['catalog', 'port', 'watch'],
  help: [],
  version: [],
};

/** @throws UsageError for an unknown command or option, and for a value that is missing or wrong. */
export function parseCommandLine(args: readonly string[]): CommandLine {
  const { values, positionals, tokens } = parseArgs({
    args: [...args],
    options: OPTIONS,
    allowPositionals: true,
    // Our own messages say what was meant.
    strict: false,
    tokens: true,
  });
  const given = tokens.filter((token) => token.kind === 'option');
  const unknown = given.find(({ name }) => !Object.hasOwn(OPTIONS, name));
  if (unknown !== undefined) throw new UsageError(unknownOption(unknown.rawName, unknown.name));
  if (values.help === true) return { command: 'help', ...NO_OPTIONS };
  if (values.version === true) return { command: 'version', ...NO_OPTIONS };

  const command = commandIn(positionals);
  for (const { name, rawName, value } of given) {
    if (!COMMANDS[command].includes(name)) {
      throw new UsageError(`${rawName} is no option of ${PACKAGE_NAME} ${command}.`);
    }
    const takesValue = name === 'catalog' || name === 'port';
    if (takesValue && (!value || value.startsWith('-'))) {
      throw new UsageError(`${rawName} needs a value, for example ${EXAMPLES[name]}.`);
    }
    if (!takesValue && value !== undefined) throw new UsageError(`${rawName} takes no value.`);
  }
  return {
    command,
    catalog: textOf(values.catalog),
    port: portOf(textOf(values.port)),
    watch: values.watch === true,
  };
}

const NO_OPTIONS: Options = { catalog: undefined, port: undefined, watch: false };

const EXAMPLES = { catalog: '--catalog catalog.js', port: '--port 3010' } as const;

const isCommand = (name: string): name is CommandName => Object.hasOwn(COMMANDS, name);

function commandIn([name = 'start', ...more]: readonly string[]): CommandName {
  if (!isCommand(name)) {
    throw new UsageError(`Unknown command: ${name}.${suggest(name, Object.keys(COMMANDS))}`);
  }
  if (more.length > 0) throw new UsageError(`Too many arguments: ${more.join(' ')}.`);
  return name;
}

const unknownOption = (rawName: string, name: string): string =>
  `Unknown option: ${rawName}.${suggest(name, Object.keys(OPTIONS), '--')}`;

function suggest(name: string, known: readonly string[], prefix = ''): string {
  const nearest = findNearestName(name, known);
  return nearest === undefined ? '' : ` Did you mean ${prefix}${nearest}?`;
}

const textOf = (value: string | boolean | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined;

const HIGHEST_PORT = 65_535;

function portOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const isPort = /^[1-9]\d{0,4}$/.test(text) && Number(text) <= HIGHEST_PORT;
  if (!isPort)
    throw new UsageError(`--port: ${JSON.stringify(text)} is not a number from 1 to 65535.`);
  return text;
}
