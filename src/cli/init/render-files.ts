// Renders the files that `postern init` writes, and its final message.

import { isAbsolute, relative, sep } from 'node:path';
import { parseEnv, styleText } from 'node:util';
import { isLoopbackHost } from '../../platform/address.ts';
import { generateSecret } from '../../platform/ids.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { isObject, type JsonObject, parseObject } from '../../platform/json.ts';
import { PACKAGE_NAME } from '../../platform/own-files.ts';
import { CommandError } from '../command-line/errors.ts';
import { readIfPresent } from '../command-line/read-input.ts';
import type { InitAnswers } from './answers.ts';
import { PACKAGE_FILE } from './pack.ts';
import { DEV_PROVIDER, findProvider, type KnownProvider, OTHER_PROVIDER } from './providers.ts';

export const CONFIG_FILE = 'postern.yaml';
/** A first tool, from the package's templates folder. */
export const CATALOG_FILE = 'catalog.mjs';
/** The tool's test. */
export const CATALOG_TEST_FILE = 'catalog.test.mjs';

/** Renders `postern.yaml`. `hasOwnTools`: whether the gateway serves tools itself, built-in or the user's. */
export const renderConfig = (servers: JsonObject, hasOwnTools: boolean): string =>
  `# yaml-language-server: $schema=./node_modules/${PACKAGE_NAME}/postern.schema.json
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
${renderAddress(answers)}${provider === undefined ? NO_PROVIDER : renderLogin(provider, answers)}${
  isShared
    ? `
# Sessions and logins of all processes. Each of them has the same two lines.
${write('REDIS_URL', answers.redisUrl)}
OAUTH_STATE_SECRET=${generateSecret()}
`
    : ''
}${lines.length === 0 ? '' : `\n# Secrets of the servers\n${lines.join('')}`}`;
}

/** A gateway for others is for production; `postern dev`, with its provider, refuses that. */
function renderAddress(answers: InitAnswers) {
  const { baseUrl } = answers;
  if (baseUrl === undefined)
    return `# The address at which users reach it, if that is not http://localhost and PORT:
#BASE_URL=https://mcp.example.com
`;
  const address = `# The address at which users reach it. Clients connect to <BASE_URL>/mcp.
${write('BASE_URL', baseUrl)}
`;
  if (!isProduction(answers)) return address;
  return `${address}NODE_ENV=production
# How many reverse proxies are in front. One of them has to speak TLS (https).
TRUST_PROXY=1
`;
}

const isProduction = ({ baseUrl, provider }: InitAnswers) =>
  baseUrl !== undefined && provider !== DEV_PROVIDER && !isLoopbackHost(new URL(baseUrl).hostname);

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

/** Renders a `package.json` with which npx finds the package beside it, here and wherever the folder is copied to. */
export const renderManifest = (): string =>
  `${JSON.stringify({ private: true, dependencies: { [PACKAGE_NAME]: `file:./${PACKAGE_FILE}` } }, null, 2)}\n`;

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
  /** The command that installs the package; undefined if it is in node_modules of this folder. */
  readonly install: string | undefined;
}

export function describeNextSteps({ answers, written, secretsFile, install }: InitResult): string {
  const { provider: choice, tool, baseUrl = 'http://localhost:3000' } = answers;
  const provider = findProvider(choice);
  const scripts = parseObject(readIfPresent('package.json'))?.scripts;
  const describe = (command: string) =>
    isObject(scripts) && command in scripts ? `npm run ${command}` : `npx postern ${command}`;
  // A .env kept by the user names no files.
  const flags = written.includes('.env')
    ? []
    : [...(tool ? [`--catalog ${CATALOG_FILE}`] : []), `--config ${CONFIG_FILE}`];
  // The settings in `.env` whose value is a placeholder.
  const isEnvIgnored = /^\/?(\.env|\.env\*|\*\.env|\.\*)$/m.test(readIfPresent('.gitignore'));
  const missing = [...readIfPresent('.env').matchAll(/^(\w+)=…$/gm)].map(([, name]) => name);
  const test = isObject(scripts) && scripts.test ? 'npm test' : 'node --test';
  const start = [describe(isProduction(answers) ? 'start' : 'dev'), ...flags].join(' ');
  const steps = [
    install !== undefined && [install, `installs Postern from ${PACKAGE_FILE}`],
    provider && ['', `Register a client at ${provider.title}, with the redirect URI`],
    provider && ['', `${baseUrl.replace(/\/$/, '')}/oauth/callback`],
    missing.length > 0 && ['', `Fill in .env: ${missing.join(', ')}`],
    provider && [describe('doctor'), 'checks the provider and the settings'],
    tool && [test, 'calls your first tool'],
    [
      start,
      isProduction(answers)
        ? 'starts the gateway'
        : 'starts the gateway, and shows how to connect a client',
    ],
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

function describeSecretsFile(file: string) {
  const pattern = toPattern(file);
  const isIgnored =
    pattern !== undefined && readIfPresent('.gitignore').split('\n').includes(pattern);
  const shown = escapeInvisible(file.replaceAll('\n', '\\n'));
  return isIgnored
    ? `${shown} still holds the secrets: delete it. Until then, .gitignore keeps it out of Git.`
    : `${shown} still holds the secrets: delete it, or keep it out of Git.`;
}
