// Renders the files that `postern init` writes, and its final message.

import { isAbsolute, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv, styleText } from 'node:util';
import { generateSecret } from '../../platform/ids.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { isObject, type JsonObject, parseObject } from '../../platform/json.ts';
import { PACKAGE_NAME, PACKAGE_ROOT } from '../../platform/own-files.ts';
import { CommandError } from '../command-line/errors.ts';
import {
  describeCommand,
  isRunByNpx,
  SOURCE_FOLDER,
  type TypedAs,
} from '../command-line/invocation.ts';
import { readIfPresent } from '../command-line/read-input.ts';
import type { InitAnswers } from './answers.ts';
import { findProvider, type KnownProvider, OTHER_PROVIDER } from './providers.ts';

export const CONFIG_FILE = 'postern.yaml';
/** A first tool, from the package's templates folder. */
export const CATALOG_FILE = 'catalog.mjs';
/** The tool's test. */
export const CATALOG_TEST_FILE = 'catalog.test.mjs';

/**
 * Renders `postern.yaml`. `schema`: the schema's path for editors, relative to the file. `hasOwnTools`: whether the gateway
 * serves tools itself, built-in or the user's.
 */
export const renderConfig = (schema: string, servers: JsonObject, hasOwnTools: boolean): string =>
  `# yaml-language-server: $schema=${schema}
# The MCP servers behind the gateway, and who may use which tool. A change is loaded at once.
${hasOwnTools ? '' : '\n# The gateway has no built-in tools.\nbuiltIn: false\n'}
${renderServers(servers)}
# Who may use what. Without rules, everybody who logs in may use everything.
#rules:
#  - who: { groups: [staff] }
#    may: ["*"]
`;

const EXAMPLE = `# For example:
#mcpServers:
#  files:
#    command: npx
#    args: ["-y", "@modelcontextprotocol/server-filesystem", "."]
#  wiki:
#    url: https://wiki.example.com/mcp
mcpServers: {}
`;

function renderServers(servers: JsonObject) {
  const entries = Object.entries(servers).map(([name, server]) => {
    const head = `  ${writeKey(name)}:`;
    if (!isObject(server)) return `${head} ${JSON.stringify(server)}\n`;
    // One line per member; values are written as JSON, which is valid YAML.
    const lines = Object.entries(server).map(
      ([key, value]) => `    ${writeKey(key)}: ${writeValue(value)}\n`,
    );
    return `${head}\n${lines.join('')}`;
  });
  return entries.length === 0 ? EXAMPLE : `mcpServers:\n${entries.join('')}`;
}

const writeKey = (key: string) => (/^[a-z][\w-]*$/i.test(key) ? key : JSON.stringify(key));

const writeValue = (value: unknown) =>
  typeof value === 'string' && /^[a-z][\w./@-]*$/i.test(value) && !RESERVED.test(value)
    ? value
    : JSON.stringify(value);

/** Words that YAML does not read as text. */
const RESERVED = /^(true|false|null|yes|no|on|off|y|n)$/i;

/** A value that the gateway rejects, asking for a replacement (config/load.ts). */
const PLACEHOLDER = '…';

/** `secrets` come from the imported file; postern.yaml refers to these variables. */
export function renderEnv(answers: InitAnswers, secrets: Readonly<Record<string, string>>): string {
  const provider = findProvider(answers.provider);
  const isShared = answers.store === 'redis';
  const lines = Object.entries(secrets).map(([name, value]) => `${write(name, value)}\n`);
  return `# Settings of Postern: \`postern config --all\` prints them all. This file contains secrets: keep it out of Git.
POSTERN_CONFIG=${CONFIG_FILE}
${answers.tool ? `POSTERN_CATALOG=${CATALOG_FILE}\n` : ''}
# The address at which users reach it, if that is not http://localhost and PORT:
#BASE_URL=https://mcp.example.com
${provider === undefined ? NO_PROVIDER : renderLogin(provider, answers)}${
  isShared
    ? `
# Sessions and logins of all processes. Each of them has the same two lines.
${write('REDIS_URL', answers.redisUrl)}
OAUTH_STATE_SECRET=${generateSecret()}
`
    : ''
}${lines.length === 0 ? '' : `\n# Secrets of the servers\n${lines.join('')}`}`;
}

const NO_PROVIDER = `
# Until these are set, \`postern dev\` has its own provider, which accepts any name, and \`postern start\`
# does not start. What your provider needs: the page /providers of the
# gateway that it starts, http://localhost:3000/providers (in a checkout: docs/providers.md).
#OAUTH_MODE=broker
#OIDC_ISSUER=https://id.example.com
#OAUTH_CLIENT_ID=
#OAUTH_CLIENT_SECRET=
`;

function renderLogin(provider: KnownProvider, answers: InitAnswers) {
  const { title, issuer, issuerExample, addressSetting = 'OIDC_ISSUER' } = provider;
  const profile = answers.provider === OTHER_PROVIDER ? undefined : answers.provider;
  const page = profile === undefined ? 'providers' : `provider-${profile}`;
  return `
# Users log in with ${title}. What to register there: the page /${page} of any gateway that runs (in a
# checkout: docs/${page}.md).
OAUTH_MODE=broker
${profile === undefined ? '' : `OIDC_PROVIDER=${profile}\n`}# ${issuerExample}
${write(addressSetting, answers.issuer ?? issuer)}
${write('OAUTH_CLIENT_ID', answers.clientId)}
${write('OAUTH_CLIENT_SECRET', answers.clientSecret)}

${SHARED_ADDRESS_LIMITS}`;
}

/** As in README.md and docs/deploy.md. The defaults suit one user per address. */
export const SHARED_ADDRESS_LIMITS = `# Many users behind one address, as in an office: limits calls per user, and raises the limits per address.
MCP_USER_RATE_LIMIT_MAX=300
MCP_RATE_LIMIT_MAX=10000
DCR_RATE_LIMIT_MAX=200
# 300 people with 3 clients each, whose tokens may all expire within the same minute.
OAUTH_REFRESH_RATE_LIMIT_MAX=1000
`;

/** @throws CommandError for a value that does not fit on one line. */
function write(name: string, value = PLACEHOLDER) {
  const line = renderEnvLine(name, value);
  if (line !== undefined) return line;
  throw new CommandError(
    'Nothing was written:',
    `${name}: .env cannot hold this value, which has quotation marks of every kind, a line break together with a double quotation mark, or another control character. Set the variable elsewhere, and leave it out here.`,
  );
}

const PLAIN = /^[\w./:@%+=,~…-]*$/;
const QUOTES = ["'", '"', '`'];
/** Some readers of `.env` start a new line at any of these characters, even in quotes. A line feed is written as `\n`. */
const BREAK = /[^\P{Cc}\t\n]|[\u2028\u2029]/u;

/**
 * Quotes the value if needed, always in one line: to Docker, a second line would be a separate setting, such as
 * AUTH_REQUIRED=false. Undefined for a value that does not fit on one line.
 */
export function renderEnvLine(name: string, value: string): string | undefined {
  if (PLAIN.test(value)) return `${name}=${value}`;
  if (BREAK.test(value)) return undefined;
  const written = value.includes('\n')
    ? [`"${value.replaceAll('\n', '\\n')}"`]
    : QUOTES.filter((quote) => !value.includes(quote)).map((quote) => `${quote}${value}${quote}`);
  return written.map((text) => `${name}=${text}`).find((line) => parseEnv(line)[name] === value);
}

/** Includes the file whose secrets were copied, if it is in this folder. */
export function renderGitIgnore(secretsFile: string | undefined): string {
  const pattern = secretsFile === undefined ? undefined : toPattern(secretsFile);
  return `.env\ndata/\nnode_modules/\n${pattern === undefined ? '' : `${pattern}\n`}`;
}

/** Undefined for a file outside the current folder, or if its name cannot be written on one line of .gitignore. */
function toPattern(file: string) {
  const path = relative('.', file).replaceAll(sep, '/');
  if (path.startsWith('..') || isAbsolute(path) || /[\n\r]| $/.test(path)) return undefined;
  return `/${path.replace(/[\\*?[\]]/g, '\\$&')}`;
}

// The final message of `postern init`: commands that work when typed here.

interface InitResult {
  readonly answers: InitAnswers;
  /** File names. */
  readonly written: readonly string[];
  /** The file that secrets were copied from, as the user named it. */
  readonly secretsFile: string | undefined;
  /** True if the package is in node_modules of this folder. */
  readonly isInstalled: boolean;
}

export function describeNextSteps(
  { answers, written, secretsFile, isInstalled }: InitResult,
  typed: TypedAs,
): string {
  const { provider: choice, tool } = answers;
  const provider = findProvider(choice);
  // The test imports the package, and npx would look for it in the registry.
  const isToInstall = !isInstalled && (tool || isRunByNpx(typed.env));
  const manifest = readManifest('package.json');
  const scripts = manifest?.scripts;
  const describe = (command: string) => {
    if (isObject(scripts) && command in scripts) return `npm run ${command}`;
    return isInstalled || isToInstall
      ? `npx postern ${command}`
      : describeCommand([command], typed);
  };
  // Without a manifest, npm would install into a parent project.
  const prepare = manifest === undefined ? 'npm init -y && ' : '';
  // A .env kept by the user names no files.
  const flags = written.includes('.env')
    ? []
    : [...(tool ? [`--catalog ${CATALOG_FILE}`] : []), `--config ${CONFIG_FILE}`];
  // The settings in `.env` whose value is a placeholder.
  const isEnvIgnored = /^\/?(\.env|\.env\*|\*\.env|\.\*)$/m.test(readIfPresent('.gitignore'));
  const missing = [...readIfPresent('.env').matchAll(/^(\w+)=…$/gm)].map(([, name]) => name);
  const install = `${prepare}npm install ${findPackage()}`;
  const test = isObject(scripts) && scripts.test ? 'npm test' : 'node --test';
  const start = [describe('dev'), ...flags].join(' ');
  const steps = [
    provider && ['', `Register a client at ${provider.title}, with the redirect URI`],
    provider && ['', 'http://localhost:3000/oauth/callback'],
    missing.length > 0 && ['', `Fill in .env: ${missing.join(', ')}`],
    isToInstall && [install, 'Postern itself, for the test and your editor'],
    provider && [describe('doctor'), 'checks the provider and the settings'],
    tool && [test, 'calls your first tool'],
    [start, 'starts the gateway, and shows how to connect a client'],
  ].filter((step) => step !== false && step !== undefined);
  return [
    `Wrote ${written.join(', ') || 'nothing'}.`,
    ...(isEnvIgnored ? [] : ['', 'Add .env to .gitignore: it contains secrets.']),
    ...(secretsFile === undefined ? [] : ['', describeSecretsFile(secretsFile)]),
    '',
    'Next:',
    ...renderSteps(steps),
  ].join('\n');
}

/** From this column on, explanations go below the setting instead of next to it. */
const WIDE = 40;

function renderSteps(steps: readonly (readonly string[])[]) {
  const lengths = steps.map(([typed = '']) => typed.length);
  const width = Math.max(0, ...lengths.filter((length) => length <= WIDE));
  return steps.flatMap(([typed = '', does = '']) => {
    if (typed === '') return [`  ${does}`];
    const command = styleText('bold', typed.padEnd(width));
    return typed.length > WIDE ? [`  ${command}`, `      ${does}`] : [`  ${command}  ${does}`];
  });
}

/** Finds the argument of `npm install`: the checkout or archive that this process came from, or the registry's package. */
function findPackage() {
  const root = fileURLToPath(PACKAGE_ROOT);
  if (SOURCE_FOLDER !== undefined) return relative(process.cwd(), root);
  // The project of npx, or the one where the package was installed.
  const project = resolve(root, '..', '..');
  const dependencies = readManifest(resolve(project, 'package.json'))?.dependencies;
  const spec = isObject(dependencies) ? dependencies[PACKAGE_NAME] : undefined;
  return typeof spec === 'string' && spec.startsWith('file:')
    ? relative(process.cwd(), resolve(project, spec.slice('file:'.length)))
    : PACKAGE_NAME;
}

/** Undefined if there is no manifest. */
const readManifest = (path: string) => parseObject(readIfPresent(path));

function describeSecretsFile(file: string) {
  const pattern = toPattern(file);
  const isIgnored =
    pattern !== undefined && readIfPresent('.gitignore').split('\n').includes(pattern);
  const shown = escapeInvisible(file.replaceAll('\n', '\\n'));
  return isIgnored
    ? `${shown} still holds the secrets: delete it. Until then, .gitignore keeps it out of Git.`
    : `${shown} still holds the secrets: delete it, or keep it out of Git.`;
}
