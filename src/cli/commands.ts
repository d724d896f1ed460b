// Every command of `postern`, in the order of the help.

import { baseUrl } from '../config/rules.ts';
import { ALL_CLIENT_SETUPS } from '../pages/client-setups.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../platform/own-files.ts';
import {
  CATALOG,
  CONFIG,
  type Command,
  choiceOption,
  defineCommand,
  flagOption,
  JSON_OUTPUT,
  listOption,
  PORT,
  textOption,
  toggle,
  tokenOptions,
} from './command-line/command.ts';
import { UsageError } from './command-line/errors.ts';
import { addScheme } from './command-line/read-input.ts';
import { PROVIDER_CHOICES } from './init/providers.ts';

const findAddressProblem = (url: string) =>
  baseUrl.parse(addScheme(url)) === undefined
    ? `${JSON.stringify(url)} is not ${baseUrl.allowed}.`
    : undefined;

/** `allowed` follows the value. */
const mustMatch = (pattern: RegExp, allowed: string) => (given: string) =>
  pattern.test(given) ? undefined : `${JSON.stringify(given)} ${allowed}`;

/** An option of commands that print an address of the gateway. */
const ADDRESS = textOption(
  'URL',
  'https://mcp.example.com',
  'the public address of the gateway, instead of BASE_URL',
  { findProblem: findAddressProblem },
);

/** In the order of the help. */
export const COMMANDS: readonly Command[] = [
  defineCommand({
    name: 'start',
    summary: 'run the gateway (the default)',
    description: [
      'Settings are environment variables. The file .env in the current folder fills in what the environment does not set.',
      'A change of the configuration file or its lock is loaded while the gateway runs.',
    ],
    options: { catalog: CATALOG, config: CONFIG, port: PORT },
    examples: {
      'postern start': 'with the settings of the environment and of .env',
      'postern start --config postern.yaml --port 8080':
        'with the MCP servers of postern.yaml, on port 8080',
      'postern start --catalog catalog.mjs': 'with tools of your own',
    },
    run: async (options) => (await import('./serve/start.ts')).start(options),
  }),
  defineCommand({
    name: 'dev',
    summary: 'run it for development: anybody can sign in, with any name',
    description: [
      'Starts the gateway with the embedded store, limits that nobody reaches by hand and, unless OIDC_ISSUER is set, an identity provider that accepts any name.',
      'It starts again after a change of .env or, with a catalogue of your own, of code in the folder of that file. Sessions survive, and so do logins until they are renewed, at most an hour later (OAUTH_RENEWAL_SECONDS): the identity provider starts anew, too. Where a change cannot be loaded, it waits for the next one. The configuration file and its lock are loaded anew while it runs.',
    ],
    options: {
      catalog: CATALOG,
      config: CONFIG,
      port: PORT,
      watch: toggle('start again after a change (the default)', 'do not start again by itself'),
    },
    examples: {
      'postern dev': 'with the built-in tools, on http://localhost:3000',
      'postern dev --config mcp.json': 'with the MCP servers of mcp.json',
      'postern dev --catalog catalog.mjs': 'with tools of your own, and again after each change',
      'AUTH_REQUIRED=false postern dev': 'without login, for a first call with curl',
    },
    async run(options) {
      const { isWatched, watch } = await import('./dev/watch.ts');
      if (options.watch === false || isWatched()) await (await import('./dev/dev.ts')).dev(options);
      else await watch(options);
    },
  }),
  defineCommand({
    name: 'init',
    summary: 'write what a new gateway needs: postern.yaml, .env, a first tool with its test',
    description: [
      'Asks where users sign in, what the gateway serves and where it keeps sessions, writes the files into this folder, and says what to type next. What an option says is not asked. Files that exist are only overwritten with --force, or when you say so.',
    ],
    options: {
      yes: flagOption('ask nothing: options, and defaults for the rest'),
      force: flagOption('overwrite files that exist'),
      provider: choiceOption(
        'NAME',
        PROVIDER_CHOICES,
        'where users sign in; dev is the provider of postern dev, with any name',
      ),
      issuer: textOption('URL', 'https://id.example.com', "the provider's issuer: OIDC_ISSUER"),
      clientId: textOption(
        'ID',
        'postern',
        'the client that you registered there: OAUTH_CLIENT_ID',
      ),
      clientSecret: textOption(
        'SECRET',
        '- <secret.txt',
        'its secret: OAUTH_CLIENT_SECRET; - reads it from standard input',
        { takesStandardInput: true },
      ),
      clientSecretFile: textOption(
        'FILE',
        'secret.txt',
        'a file with this secret: other users of the machine can read arguments',
        { standardInput: '--client-secret -' },
      ),
      tool: toggle(
        'write a first tool with its test (the default without --servers)',
        'write no tool',
      ),
      servers: textOption(
        'FILE',
        'mcp.json',
        'take over the MCP servers of FILE, such as the mcp.json of a desktop client, or the server.json of a registry; those with a url are asked whether they want a login',
      ),
      store: choiceOption('KIND', ['embedded', 'redis'], 'where sessions are kept'),
      redisUrl: textOption('URL', 'redis://localhost:6379', 'the address of Redis: REDIS_URL'),
    },
    examples: {
      'postern init': 'asks',
      'postern init --yes': 'a first tool, to try with the development provider',
      'postern init --yes --servers mcp.json':
        'the MCP servers of mcp.json, with their secrets in .env',
      'postern init --yes --provider keycloak --issuer https://id.example.com/realms/main --client-id postern':
        'for Keycloak; the secret is to be filled in',
    },
    run: async (options, _operands, invocation) =>
      (await import('./init/init.ts')).init(options, invocation),
  }),
  defineCommand({
    name: 'doctor',
    summary: 'say why a login fails, and which setting to change',
    description: [
      'With a URL, it checks a running gateway as a client sees it, up to the login page of the provider: name and TLS, metadata, browsers, registration, the redirect URI, the client secret. It registers a client of its own, which has no rights and is forgotten by itself.',
      'Without one, it checks the settings at hand (environment, .env, configuration file): the provider, the client and its secret, the store, the servers behind the gateway; and the gateway as well, where it runs.',
    ],
    operands: [{ name: 'URL', summary: 'of a running gateway, such as https://mcp.example.com' }],
    options: {
      ...tokenOptions('an access token of a user: check it, too, and what the user sees.'),
      config: textOption('FILE', 'mcp.json', 'the configuration file; without a URL only'),
      json: JSON_OUTPUT,
    },
    examples: {
      'postern doctor': 'the settings in the environment and in .env',
      'postern doctor http://localhost:3000': 'a gateway that runs, by `postern dev` for example',
      'postern doctor https://mcp.example.com --token-file token.txt --json':
        'with a token, for a program',
    },
    exitCode1: 'something does not work (a line with ✗)',
    run: async (options, [url], invocation) =>
      (await import('./doctor/doctor.ts')).doctor(url, options, invocation),
  }),
  defineCommand({
    name: 'config',
    summary: 'print the effective settings, where each comes from, and what is wrong with them',
    description: [
      'Prints what postern start would run with: the settings that are set, the configuration file, and every problem. Nothing is started or connected, except with --lists. Of secrets it prints a fingerprint, by which two machines can be compared.',
    ],
    options: {
      lists: flagOption(
        'also ask the servers what they list, and say what each list of tools costs a model; this starts those that are programs',
      ),
      all: flagOption('also the settings that have their default'),
      config: textOption(
        'FILE',
        'postern.yaml',
        'the configuration file, instead of POSTERN_CONFIG',
      ),
      json: JSON_OUTPUT,
    },
    examples: {
      'postern config': 'what is set, and where',
      'postern config --all': 'every setting',
      'postern config --lists --config mcp.json':
        'about how many tokens the tools of each path are',
      'postern config --json --config postern.yaml':
        'in a pipeline: fail if the gateway could not start with these',
    },
    exitCode1: 'something is wrong, and postern start would not start',
    run: async (options, _operands, invocation) =>
      (await import('./config.ts')).showConfig(options, invocation),
  }),
  defineCommand({
    name: 'connect',
    summary: 'print how to add the gateway to an MCP client',
    description: [
      'Without CLIENT it lists the clients. The address is URL (or --url), or BASE_URL of the environment or .env, or http://localhost:3000. Without a scheme, http is meant on this machine (localhost:3000) and https elsewhere.',
    ],
    operands: [
      { name: 'CLIENT', summary: 'the client', choices: ALL_CLIENT_SETUPS.map(({ id }) => id) },
      { name: 'URL', summary: 'the public address of the gateway, as --url gives it' },
    ],
    options: {
      url: ADDRESS,
      view: textOption(
        'NAME',
        'research',
        'a view of the gateway, or a server, in place of everything',
        {
          findProblem: mustMatch(
            /^[a-z][a-z0-9-]{0,31}$/,
            'must be a lower-case letter, then letters, digits and "-".',
          ),
        },
      ),
      name: textOption('NAME', 'tools', 'what the client calls the gateway, instead of postern', {
        findProblem: mustMatch(/^[\w-]+$/, 'must consist of letters, digits, "-" and "_".'),
      }),
      json: JSON_OUTPUT,
    },
    examples: {
      'postern connect cursor': 'what to put into which file of Cursor',
      'postern connect cursor --view research': 'the same of one view alone',
      'postern connect claude-code https://mcp.example.com': 'the commands for a gateway elsewhere',
    },
    async run({ url: given, view, name, json }, [client, address], invocation) {
      const problem = address === undefined ? undefined : findAddressProblem(address);
      if (problem !== undefined) throw new UsageError(`URL: ${problem}`);
      if (address !== undefined && given !== undefined)
        throw new UsageError('The address is given twice: as URL, and by --url. Keep one.');
      const { runConnect } = await import('./connect.ts');
      const url = address ?? given;
      runConnect({ client, url: url && addScheme(url), view, name, json }, invocation);
    },
  }),
  defineCommand({
    name: 'lock',
    summary: 'approve what the MCP servers say of their tools now: postern.lock',
    description: [
      'Asks each server of the configuration file for its tools and prompts, and writes what they say into postern.lock beside that file. From then on, the gateway hides what is new or has changed until it is approved.',
    ],
    options: {
      config: textOption(
        'FILE',
        'mcp.json',
        'the file that names the servers; postern.lock lies beside it',
      ),
      check: flagOption('write nothing; say what differs'),
      ...tokenOptions(
        'an access token of the provider (a JWT), for servers that answer users only; adds what this user sees.',
      ),
      json: JSON_OUTPUT,
    },
    examples: {
      'postern lock --config mcp.json': 'approve what the servers say now',
      'postern lock --config mcp.json --check':
        'in a pipeline: fail if a server says something else',
      'postern lock --config mcp.json --token-file token.txt':
        'with what the user of this token sees',
    },
    exitCode1: 'with --check, also: something differs, or there is no lock',
    run: async (options, _operands, invocation) =>
      (await import('./lock.ts')).lock(options, invocation),
  }),
  defineCommand({
    name: 'rules test',
    summary: 'say what a user sees by the rules, and which rule says so',
    description: [
      'Lists every tool, prompt and resource as the gateway would list it to the user whose claims are given, and names the rule that allows each. Nothing is called.',
    ],
    options: {
      config: textOption('FILE', 'mcp.json', 'the file that has the rules'),
      claims: textOption('FILE', 'ann.json', 'the claims of the user, as a JSON object'),
      client: textOption('ID', 'cursor', 'the OAuth client, where the claims do not name it'),
      view: textOption('NAME', 'research', 'ask at this view of the file: only what it has'),
      item: listOption(
        'NAME',
        'github__search',
        'ask about NAME alone: a tool, prompt:NAME or resource:URI; may be repeated',
      ),
      tool: textOption('NAME', 'files__read_file', 'ask about a call of this tool'),
      args: textOption('JSON', `'{"path": "/docs/a.txt"}'`, 'the arguments of that call'),
      annotations: textOption(
        'JSON',
        `'{"readOnlyHint": true}'`,
        'what a server says of --item or --tool, for example {"readOnlyHint": true}',
      ),
      json: JSON_OUTPUT,
    },
    examples: {
      'postern rules test --config mcp.json --claims ann.json': 'all that Ann sees',
      'postern rules test --config mcp.json --claims ann.json --tool files__read_file --args \'{"path": "/docs/a.txt"}\'':
        'whether she may make this call',
    },
    exitCode1: 'with --tool, also: the call is not allowed',
    run: async (options, _operands, invocation) =>
      (await import('./rules/test-rules.ts')).testRules(options, invocation),
  }),
  defineCommand({
    name: 'rules replay',
    summary: 'say what the rules would have done with the calls of an audit log',
    description: [
      'Judges each call of the audit log by the rules of the configuration file, and prints which it would refuse that were allowed, and which it would allow that were refused; then what each rule allowed that somebody used. No server is asked, and nothing is called.',
      'Of arguments the log has nothing, and of groups and claims what AUDIT_CLAIMS=true made the gateway write. Where a rule needs more than that, it is said that nobody can tell.',
    ],
    options: {
      audit: listOption(
        'FILE',
        'audit.log',
        'what AUDIT_LOG wrote, also gzipped; may be repeated. - reads standard input',
        { takesStandardInput: true },
      ),
      config: textOption('FILE', 'mcp.json', 'the file that has the rules'),
      json: JSON_OUTPUT,
    },
    examples: {
      'postern rules replay --audit audit.log --config changed.json':
        'what a changed file would have done',
      'postern rules replay --audit audit.log.1.gz --audit audit.log --config mcp.json':
        'what was used of all that the rules allow',
    },
    run: async (options, _operands, invocation) =>
      (await import('./rules/replay.ts')).replay(options, invocation),
  }),
  defineCommand({
    name: 'clients hash',
    summary:
      'make a secret for a client that signs in as itself, and the hash for the configuration file',
    description: [
      'Makes a random secret and prints it once, with the hash that "secretSha256" of a client takes. The secret is kept nowhere: give it to the client. With --secret - or --secret-file the hash of a secret is printed that you already have; it must be a random one of at least 32 characters.',
    ],
    options: {
      secret: textOption('-', '- <secret.txt', 'hash the secret that standard input has', {
        takesStandardInput: true,
        findProblem: (given) =>
          given === '-'
            ? undefined
            : 'other users of the machine can read what stands here. Write - and pipe the secret in, or use --secret-file FILE.',
      }),
      secretFile: textOption('FILE', 'secret.txt', 'hash the secret in FILE', {
        standardInput: '--secret -',
      }),
      json: JSON_OUTPUT,
    },
    examples: {
      'postern clients hash': 'a new secret, and its hash',
      'postern clients hash --secret - <secret.txt': 'the hash of a secret that you have',
    },
    run: async (options, _operands, invocation) =>
      (await import('./hash-secret.ts')).hashSecret(options, invocation),
  }),
  defineCommand({
    name: 'export',
    summary: 'print the server.json by which a registry of MCP servers lists the gateway',
    description: [
      'Prints to standard output; nothing is published. Name, description, logo and address are those of the settings: SERVER_CARD_NAME, SERVER_CARD_DESCRIPTION, SERVICE_DISPLAY_NAME, SERVICE_LOGO_URL and BASE_URL. A registry takes only names that begin with a domain, in reverse order, which you show to be yours.',
    ],
    operands: [
      { name: 'WHAT', summary: 'the document', choices: ['server.json'], isRequired: true },
    ],
    options: {
      url: ADDRESS,
      view: textOption(
        'NAME',
        'research',
        'a view or server of the configuration file, in place of everything',
      ),
      config: textOption(
        'FILE',
        'postern.yaml',
        'for --view: the configuration file, instead of POSTERN_CONFIG',
      ),
      as: textOption(
        'VERSION',
        '1.4.0',
        'the version to publish, instead of that of Postern: a registry takes each only once',
        {
          findProblem: mustMatch(
            /^(?=.{1,255}$)\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/,
            'is no version. Write three numbers, such as 1.4.0 or 1.4.0-rc.1.',
          ),
        },
      ),
    },
    examples: {
      'postern export server.json >server.json': 'what is to be published',
      'postern export server.json --view research --as 1.4.0':
        'one view, under a version of its own',
    },
    run: async (options, _operands, invocation) =>
      (await import('./export-server-json.ts')).exportServerJson(options, invocation),
  }),
  defineCommand({
    name: 'completion',
    summary: 'print a script by which the shell completes commands and options',
    description: ['The script itself runs nothing of postern. Print it again after an update.'],
    operands: [
      { name: 'SHELL', summary: 'the shell', isRequired: true, choices: ['bash', 'zsh', 'fish'] },
    ],
    options: {},
    examples: {
      'echo \'eval "$(postern completion bash)"\' >> ~/.bashrc': 'for bash, in every new shell',
      'echo \'eval "$(postern completion zsh)"\' >> ~/.zshrc':
        'for zsh; .zshrc must run compinit before',
      'postern completion fish > ~/.config/fish/completions/postern.fish': 'for fish',
    },
    async run(_options, [shell], { console }) {
      const { renderCompletion } = await import('./render-completion.ts');
      console.log(renderCompletion(shell, COMMANDS));
    },
  }),
  defineCommand({
    name: 'version',
    summary: 'print the version',
    description: [],
    options: { json: JSON_OUTPUT },
    examples: { 'postern version --json': 'with the version of Node.js, for a bug report' },
    run({ json }, _operands, { console }) {
      const { version: node, platform, arch } = process;
      const facts = { name: PACKAGE_NAME, version: PACKAGE_VERSION, node, platform, arch };
      console.log(json ? JSON.stringify(facts, undefined, 2) : PACKAGE_VERSION);
    },
  }),
];

/** First words of commands that have two. */
export const GROUPS: Readonly<Record<string, string>> = {
  rules: 'try the rules of the configuration file',
  clients: 'secrets of clients that sign in as themselves',
};

/** The command that `postern` runs without one. */
export const DEFAULT_COMMAND = 'start';
