// What may stand after `postern`.
import { parseArgs } from 'node:util';
import { isStringArray } from '../core/json.ts';
import { findNearestName } from '../core/nearest-name.ts';
import { PACKAGE_NAME } from '../core/version.ts';

/** Options of all commands; undefined where they were not given. */
export interface Options {
  /** A file whose default export is the catalogue. */
  readonly catalog: string | undefined;
  /** In place of POSTERN_CONFIG. */
  readonly config: string | undefined;
  /** In place of PORT. */
  readonly port: string | undefined;
  /** Start again after each change. */
  readonly isWatching: boolean;
  /** An access token of a user, as whom the servers are asked. A secret. */
  readonly token: string | undefined;
  /** Say what differs, and write nothing. */
  readonly isChecking: boolean;
  /** Print JSON. */
  readonly isJson: boolean;
}

/** Options of `rules test`. */
export interface RulesTestOptions extends Pick<Options, 'config' | 'port' | 'isJson'> {
  /** A file with the claims of a token, as JSON. */
  readonly claims: string | undefined;
  /** OAuth client ID. */
  readonly client: string | undefined;
  /** Names to ask about, as patterns of rules name them, in place of all that there is. */
  readonly items: readonly string[];
  /** A call to ask about, in place of all that there is. */
  readonly tool: string | undefined;
  /** Its arguments, as JSON. */
  readonly args: string | undefined;
  /** What servers say of the names or the tool that are asked about, as JSON. */
  readonly annotations: string | undefined;
}

export interface CommandLine extends Options, RulesTestOptions {
  readonly command: CommandName;
}

export type CommandName = 'start' | 'dev' | 'lock' | 'rules test' | 'help' | 'version';

export const USAGE = `Usage: ${PACKAGE_NAME} [command] [options]

Commands:
  start            run the service (the default)
  dev              run it for development: anybody can log in, with any name
  lock             approve what the MCP servers of --config say of their tools now: postern.lock
  rules test       say what a user sees by the rules of --config, and which rule says so
  help             print this text (also -h, --help)
  version          print the version (also -v, --version)

Options of start and dev:
  --catalog FILE   serve the tools, prompts and resources of FILE, whose default export is a
                   catalogue, instead of the built-in ones
  --config FILE    put the MCP servers of FILE (JSON or YAML, with mcpServers) behind the gateway
  --port N         listen on this port instead of PORT

Options of dev:
  --watch          restart when the code of the catalogue changes

Options of lock:
  --config FILE    the file that names the servers; postern.lock lies beside it
  --check          write nothing; say what differs, with exit code 1 if anything does
  --token TOKEN    an access token, for servers that answer users only; adds what this user sees
  --json           print JSON

Options of rules test:
  --config FILE    the file that has the rules
  --claims FILE    the claims of the user's access token, as a JSON object
  --client ID      the OAuth client, where the claims do not name it
  --item NAME      ask about NAME alone: a tool, prompt:NAME or resource:URI; may be repeated
  --tool NAME      ask about a call of this tool; exit code 1 if it is not allowed
  --args JSON      the arguments of that call
  --annotations JSON
                   what a server says of --item or --tool, for example {"readOnlyHint": true}
  --json           print JSON

Settings are environment variables. All but help and version also read the file .env in the current
folder; variables of the environment take precedence over it.
`;

/** A command line that cannot be understood: a sentence for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const OPTIONS = {
  catalog: { type: 'string' },
  config: { type: 'string' },
  port: { type: 'string' },
  watch: { type: 'boolean' },
  token: { type: 'string' },
  check: { type: 'boolean' },
  claims: { type: 'string' },
  client: { type: 'string' },
  item: { type: 'string', multiple: true },
  tool: { type: 'string' },
  args: { type: 'string' },
  annotations: { type: 'string' },
  json: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const;

/** Which commands there are, and what each takes. */
const COMMANDS: Readonly<Record<CommandName, readonly string[]>> = {
  start: ['catalog', 'config', 'port'],
  dev: ['catalog', 'config', 'port', 'watch'],
  lock: ['config', 'token', 'check', 'json'],
  'rules test': ['config', 'claims', 'client', 'item', 'tool', 'args', 'annotations', 'json'],
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
  const written = tokens.filter((token) => token.kind === 'option');
  const unknown = written.find(({ name }) => !Object.hasOwn(OPTIONS, name));
  if (unknown !== undefined)
    throw new UsageError(describeUnknownOption(unknown.rawName, unknown.name));
  if (values.help === true) return { command: 'help', ...NO_OPTIONS };
  if (values.version === true) return { command: 'version', ...NO_OPTIONS };

  const command = parseCommand(positionals);
  for (const { name, rawName, value } of written) {
    if (!COMMANDS[command].includes(name)) {
      throw new UsageError(`${PACKAGE_NAME} ${command} has no option ${rawName}.`);
    }
    const example = EXAMPLES.get(name);
    if (example !== undefined && (!value || value.startsWith('-'))) {
      throw new UsageError(`${rawName} needs a value, for example ${example}.`);
    }
    if (example === undefined && value !== undefined)
      throw new UsageError(`${rawName} does not take a value.`);
  }
  return {
    command,
    catalog: asText(values.catalog),
    config: asText(values.config),
    port: parsePort(asText(values.port)),
    isWatching: values.watch === true,
    token: asText(values.token),
    isChecking: values.check === true,
    claims: asText(values.claims),
    client: asText(values.client),
    items: asTexts(values.item),
    tool: asText(values.tool),
    args: asText(values.args),
    annotations: asText(values.annotations),
    isJson: values.json === true,
  };
}

const NO_OPTIONS: Options & RulesTestOptions = {
  catalog: undefined,
  config: undefined,
  port: undefined,
  isWatching: false,
  token: undefined,
  isChecking: false,
  claims: undefined,
  client: undefined,
  items: [],
  tool: undefined,
  args: undefined,
  annotations: undefined,
  isJson: false,
};

/** Of the options that take a value. */
const EXAMPLES: ReadonlyMap<string, string> = new Map([
  ['catalog', '--catalog catalog.js'],
  ['config', '--config mcp.json'],
  ['port', '--port 3010'],
  ['token', '--token "$TOKEN"'],
  ['claims', '--claims ann.json'],
  ['client', '--client cursor'],
  ['item', '--item github__search'],
  ['tool', '--tool files__read_file'],
  ['args', `--args '{"path": "/docs/a.txt"}'`],
  ['annotations', `--annotations '{"readOnlyHint": true}'`],
]);

const isCommand = (name: string): name is CommandName => Object.hasOwn(COMMANDS, name);

function parseCommand([first = 'start', ...others]: readonly string[]): CommandName {
  const pair = Object.keys(COMMANDS).find((command) => command.startsWith(`${first} `));
  if (pair !== undefined && others.length === 0)
    throw new UsageError(`postern ${first} is not complete. There is: postern ${pair}.`);
  const [name, more] =
    pair !== undefined
      ? [[first, ...others.slice(0, 1)].join(' '), others.slice(1)]
      : [first, others];
  if (!isCommand(name)) {
    throw new UsageError(`Unknown command: ${name}.${suggestName(name, Object.keys(COMMANDS))}`);
  }
  if (more.length > 0)
    throw new UsageError(`Too many arguments: ${more.join(' ')}.${suggestOption(more)}`);
  return name;
}

const describeUnknownOption = (rawName: string, name: string): string =>
  `Unknown option: ${rawName}.${suggestName(name, Object.keys(OPTIONS), '--')}`;

function suggestName(name: string, known: readonly string[], prefix = ''): string {
  const nearest = findNearestName(name, known);
  return nearest === undefined ? '' : ` Did you mean ${prefix}${nearest}?`;
}

const asText = (value: string | boolean | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined;

const asTexts = (value: unknown): readonly string[] => (isStringArray(value) ? value : []);

const MAX_PORT = 65_535;

function parsePort(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const isPort = /^[1-9]\d{0,4}$/.test(text) && Number(text) <= MAX_PORT;
  if (!isPort)
    throw new UsageError(`--port: ${JSON.stringify(text)} is not a number from 1 to 65535.`);
  return text;
}

/** A file that stands alone was meant for an option. */
function suggestOption([given = '']: readonly string[]): string {
  if (/\.(jsonc?|ya?ml)$/.test(given)) return ` Did you mean --config ${given}?`;
  return /\.[cm]?[jt]s$/.test(given) ? ` Did you mean --catalog ${given}?` : '';
}
