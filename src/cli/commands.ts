// All commands of `postern`, in the order of the help.

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

/** `allowed` follows the value in the message. */
const mustMatch = (pattern: RegExp, allowed: string) => (given: string) =>
  pattern.test(given) ? undefined : `${JSON.stringify(given)} ${allowed}`;

/** An option of commands that print the gateway's address. */
const ADDRESS = textOption(
  'URL',
  'https://mcp.example.com',
  'the public address of the gateway, instead of BASE_URL',
  { findProblem: findAddressProblem },
);

export const COMMANDS: readonly Command[] = [
  defineCommand({
    name: 'start',
    summary: 'run the gateway (the default)',
    description: [
      'Settings are environment variables. The .env file in the current folder adds settings that the environment does not have.',
      'Changes to the configuration file or its lock are loaded while the gateway runs.',
    ],
    options: { catalog: CATALOG, config: CONFIG, port: PORT },
    examples: {
      'postern start': 'with the settings of the environment and of .env',
      'postern start --config postern.yaml --port 8080':
        'with the MCP servers of postern.yaml, on port 8080',
      'postern start --catalog catalog.mjs': 'with your own tools',
    },
    run: async (options) => (await import('./serve/start.ts')).start(options),
  }),
  defineCommand({
    name: 'dev',
    summary: 'run the gateway for development: any name can log in',
    description: [
      'Starts the gateway with the embedded store, generous limits and, unless OIDC_ISSUER is set, an identity provider that accepts any name.',
      'It restarts after a change of .env or, with your own catalogue, of code in the folder of that file. Sessions survive, and so do logins until their next refresh at the provider, at most an hour later (OAUTH_RENEWAL_SECONDS), because the identity provider restarts, too. If a change cannot be loaded, it waits for the next one. The configuration file and its lock are reloaded while it runs.',
    ],
    options: {
      catalog: CATALOG,
      config: CONFIG,
      port: PORT,
      watch: toggle('restart after a change (the default)', 'do not restart automatically'),
    },
    examples: {
      'postern dev': 'with the built-in tools, on http://localhost:3000',
      'postern dev --config mcp.json': 'with the MCP servers of mcp.json',
      'postern dev --catalog catalog.mjs': 'with your own tools, restarting after each change',
      'AUTH_REQUIRED=false postern dev': 'without logging in, for a first call with curl',
    },
    async run(options) {
      const { isWatched, watch } = await import('./dev/watch.ts');
      if (options.watch === false || isWatched()) await (await import('./dev/dev.ts')).dev(options);
      else await watch(options);
    },
  }),
  defineCommand({
    name: 'init',
    summary: 'write the files of a new gateway: postern.yaml, .env, a first tool with its test',
    description: [
      'Asks where users log in, what the gateway serves and where it keeps sessions, writes the files into this folder, together with this package, and says what to run next. Options replace the questions. Existing files are only overwritten with --force, or if you confirm.',
    ],
    options: {
      yes: flagOption('ask nothing: use the options, and defaults for the rest'),
      force: flagOption('overwrite existing files'),
      provider: choiceOption(
        'NAME',
        PROVIDER_CHOICES,
        'where users log in; dev is the provider of postern dev, with any name',
      ),
      baseUrl: textOption(
        'URL',
        'https://mcp.example.com',
        'the public address, at which users reach the gateway: BASE_URL',
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
        'import the MCP servers of FILE, such as the mcp.json of a desktop client, or the server.json of a registry; those with a url are contacted to find out whether they require a login',
      ),
      store: choiceOption('KIND', ['embedded', 'redis'], 'where sessions are kept'),
      redisUrl: textOption('URL', 'redis://localhost:6379', 'the address of Redis: REDIS_URL'),
    },
    examples: {
      'postern init': 'asks questions',
      'postern init --yes': 'a first tool, to try with the development provider',
      'postern init --yes --servers mcp.json':
        'the MCP servers of mcp.json, with their secrets in .env',
      'postern init --yes --provider keycloak --issuer https://id.example.com/realms/main --client-id postern --base-url https://mcp.example.com':
        'for Keycloak; fill in the secret afterwards',
    },
    run: async (options, invocation) => (await import('./init/init.ts')).init(options, invocation),
  }),
  defineCommand({
    name: 'doctor',
    summary: 'say why a login fails, and which setting to change',
    description: [
      'With a URL, it checks a running gateway as a client sees it, up to the login page of the provider: name and TLS, metadata, browsers, registration, the redirect URI, the client secret. It registers its own client, which has no rights and expires by itself.',
      'Without one, it checks the local settings (environment, .env, configuration file): the provider, the client and its secret, the store, the servers behind the gateway; and the gateway itself, if it is running.',
    ],
    operands: [{ name: 'URL', summary: 'of a running gateway, such as https://mcp.example.com' }],
    options: {
      ...tokenOptions('an access token of a user: also checks the token, and what the user sees.'),
      config: textOption('FILE', 'mcp.json', 'the configuration file; without a URL only'),
      json: JSON_OUTPUT,
    },
    examples: {
      'postern doctor': 'the settings in the environment and in .env',
      'postern doctor http://localhost:3000': 'a running gateway, for example from `postern dev`',
      'postern doctor https://mcp.example.com --token-file token.txt --json':
        'with a token, for a program',
    },
    exitCode1: 'something does not work (a line with ✗)',
    run: async (options, invocation, [url]) =>
      (await import('./doctor/doctor.ts')).doctor(url, options, invocation),
  }),
  defineCommand({
    name: 'config',
    summary: 'print the effective settings, where each comes from, and what is wrong with them',
    description: [
      'Prints what postern start would use: the settings that are set, the configuration file, and every problem. Nothing is started or connected, except with --lists. For secrets it prints a fingerprint, so that you can compare two machines.',
    ],
    options: {
      lists: flagOption(
        'also query the servers for their lists, and print what each list of tools costs a model; this starts servers that are programs',
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
        'the approximate number of tokens for the tools of each path',
      'postern config --json --config postern.yaml':
        'in a pipeline: fail if the gateway could not start with these',
    },
    exitCode1: 'something is wrong, and postern start would not start',
    run: async (options, invocation) =>
      (await import('./config.ts')).showConfig(options, invocation),
  }),
  defineCommand({
    name: 'connect',
    summary: 'print how to add the gateway to an MCP client',
    description: [
      'Without CLIENT it lists the clients. The address is URL (or --url), or BASE_URL from the environment or .env, or http://localhost:3000. Without a scheme, http is used for this machine (localhost:3000) and https elsewhere.',
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
        'a view of the gateway, or a server, instead of everything',
        {
          findProblem: mustMatch(
            /^[a-z][a-z0-9-]{0,31}$/,
            'must be a lower-case letter, then letters, digits and "-".',
          ),
        },
      ),
      name: textOption(
        'NAME',
        'tools',
        'the name of the gateway in the client, instead of postern',
        {
          findProblem: mustMatch(/^[\w-]+$/, 'must consist of letters, digits, "-" and "_".'),
        },
      ),
      json: JSON_OUTPUT,
    },
    examples: {
      'postern connect cursor': 'the configuration for Cursor, and the file for it',
      'postern connect cursor --view research': 'the same for one view only',
      'postern connect claude-code https://mcp.example.com': 'the commands for a gateway elsewhere',
    },
    async run({ url: given, view, name, json }, invocation, [client, address]) {
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
    summary: 'approve the current tool descriptions of the MCP servers: postern.lock',
    description: [
      'Queries each server in the configuration file for its tools and prompts, and writes them into postern.lock next to that file. From then on, the gateway hides new and changed entries until they are approved.',
    ],
    options: {
      config: textOption(
        'FILE',
        'mcp.json',
        'the file that lists the servers; postern.lock is next to it',
      ),
      check: flagOption('write nothing; show the differences'),
      ...tokenOptions(
        'an access token from the provider (a JWT), for servers that only answer users; adds what this user sees.',
      ),
      json: JSON_OUTPUT,
    },
    examples: {
      'postern lock --config mcp.json': 'approve the current descriptions',
      'postern lock --config mcp.json --check': 'in a pipeline: fail if a description has changed',
      'postern lock --config mcp.json --token-file token.txt':
        'including what the user of this token sees',
    },
    exitCode1: 'with --check, also: something differs, or there is no lock',
    run: async (options, invocation) => (await import('./lock.ts')).lock(options, invocation),
  }),
  defineCommand({
    name: 'notify',
    summary: "send a test notification to the operators' webhook",
    description: [
      'Sends it once, to "notify" in the configuration file, and says whether it was accepted.',
    ],
    options: {
      config: textOption('FILE', 'mcp.json', 'the configuration file that has the webhook'),
      test: flagOption('send a test notification'),
    },
    examples: { 'postern notify --test --config mcp.json': 'is the webhook right?' },
    exitCode1: 'the webhook has not accepted it',
    run: async (options, invocation) => (await import('./notify.ts')).notify(options, invocation),
  }),
  defineCommand({
    name: 'rules test',
    summary: 'show what a user sees under the rules, and which rule applies',
    description: [
      'Lists every tool, prompt and resource as the gateway would list it to the user whose claims are given, and names the rule that allows each. Nothing is called.',
    ],
    options: {
      config: textOption('FILE', 'mcp.json', 'the file that has the rules'),
      claims: textOption('FILE', 'ann.json', 'the claims of the user, as a JSON object'),
      client: textOption('ID', 'cursor', 'the OAuth client, if the claims do not name it'),
      view: textOption('NAME', 'research', 'check only the entries of this view in the file'),
      item: listOption(
        'NAME',
        'github__search',
        'check only NAME: a tool, prompt:NAME or resource:URI; may be repeated',
      ),
      tool: textOption('NAME', 'files__read_file', 'check a call of this tool'),
      args: textOption('JSON', `'{"path": "/docs/a.txt"}'`, 'the arguments of that call'),
      annotations: textOption(
        'JSON',
        `'{"readOnlyHint": true}'`,
        'the annotations of --item or --tool, for example {"readOnlyHint": true}',
      ),
      json: JSON_OUTPUT,
    },
    examples: {
      'postern rules test --config mcp.json --claims ann.json': 'everything that Ann sees',
      'postern rules test --config mcp.json --claims ann.json --tool files__read_file --args \'{"path": "/docs/a.txt"}\'':
        'whether she may make this call',
    },
    exitCode1: 'with --tool, also: the call is not allowed',
    run: async (options, invocation) =>
      (await import('./rules/test-rules.ts')).testRules(options, invocation),
  }),
  defineCommand({
    name: 'rules replay',
    summary: 'show what the rules would have done to the calls in an audit log',
    description: [
      'Checks each call in the audit log against the rules in the configuration file, and prints the allowed calls that they would refuse, and the refused calls that they would allow; then the used entries that each rule allowed. No server is queried, and nothing is called.',
      'The log has no arguments, and groups and claims only with AUDIT_CLAIMS=true. If a rule needs more than that, the call is listed as undecidable.',
    ],
    options: {
      audit: listOption(
        'FILE',
        'audit.log',
        'the file written by AUDIT_LOG, may be gzipped; may be repeated. - reads standard input',
        { takesStandardInput: true },
      ),
      config: textOption('FILE', 'mcp.json', 'the file that has the rules'),
      json: JSON_OUTPUT,
    },
    examples: {
      'postern rules replay --audit audit.log --config changed.json':
        'what a changed file would have done',
      'postern rules replay --audit audit.log.1.gz --audit audit.log --config mcp.json':
        'which of the allowed entries were used',
    },
    run: async (options, invocation) =>
      (await import('./rules/replay.ts')).replay(options, invocation),
  }),
  defineCommand({
    name: 'clients hash',
    summary:
      'generate a secret for a client that logs in as itself, and the hash for the configuration file',
    description: [
      'Generates a random secret and prints it once, with the hash for "secretSha256" of a client. The secret is not stored: give it to the client. With --secret - or --secret-file it prints the hash of an existing secret, which must be random and have at least 32 characters.',
    ],
    options: {
      secret: textOption('-', '- <secret.txt', 'hash the secret from standard input', {
        takesStandardInput: true,
        findProblem: (given) =>
          given === '-'
            ? undefined
            : 'other users of the machine can read arguments. Write - and pipe the secret in, or use --secret-file FILE.',
      }),
      secretFile: textOption('FILE', 'secret.txt', 'hash the secret in FILE', {
        standardInput: '--secret -',
      }),
      json: JSON_OUTPUT,
    },
    examples: {
      'postern clients hash': 'a new secret, and its hash',
      'postern clients hash --secret - <secret.txt': 'the hash of an existing secret',
    },
    run: async (options, invocation) =>
      (await import('./hash-secret.ts')).hashSecret(options, invocation),
  }),
  defineCommand({
    name: 'export',
    summary: 'print the server.json that lists the gateway in a registry of MCP servers',
    description: [
      'Prints to standard output; nothing is published. Name, description, logo and address come from the settings: SERVER_CARD_NAME, SERVER_CARD_DESCRIPTION, SERVICE_DISPLAY_NAME, SERVICE_LOGO_URL and BASE_URL. A registry accepts only names that begin with a domain, in reverse order, that you have proved to be yours.',
    ],
    operands: [
      { name: 'WHAT', summary: 'the document', choices: ['server.json'], isRequired: true },
    ],
    options: {
      url: ADDRESS,
      view: textOption(
        'NAME',
        'research',
        'a view or server in the configuration file, instead of everything',
      ),
      config: textOption(
        'FILE',
        'postern.yaml',
        'for --view: the configuration file, instead of POSTERN_CONFIG',
      ),
      as: textOption(
        'VERSION',
        '1.4.0',
        'the version to publish, instead of that of Postern: a registry accepts each only once',
        {
          findProblem: mustMatch(
            /^(?=.{1,255}$)\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/,
            'is no version. Write three numbers, such as 1.4.0 or 1.4.0-rc.1.',
          ),
        },
      ),
    },
    examples: {
      'postern export server.json >server.json': 'the document to publish',
      'postern export server.json --view research --as 1.4.0': 'one view, with its own version',
    },
    run: async (options, invocation) =>
      (await import('./export-server-json.ts')).exportServerJson(options, invocation),
  }),
  defineCommand({
    name: 'completion',
    summary: 'print a completion script for the shell',
    description: ['The script itself does not run postern. Print it again after an update.'],
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
    async run(_options, { console }, [shell]) {
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
    run({ json }, { console }) {
      const { version: node, platform, arch } = process;
      const facts = { name: PACKAGE_NAME, version: PACKAGE_VERSION, node, platform, arch };
      console.log(json ? JSON.stringify(facts, undefined, 2) : PACKAGE_VERSION);
    },
  }),
];

/** First words of two-word commands. */
export const GROUPS: Readonly<Record<string, string>> = {
  rules: 'try the rules in the configuration file',
  clients: 'secrets of clients that log in as themselves',
};

/** The command that `postern` runs by default. */
export const DEFAULT_COMMAND = 'start';
