// `postern init`: creates a folder that `postern dev` can start from.
import { existsSync, lstatSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { basename, extname, resolve } from 'node:path';
import { hasVariable } from '../../config/file/expand.ts';
import { readSyntax, toValue } from '../../config/file/syntax/read-syntax.ts';
import { deriveServerName } from '../../mcp/upstream/upstream-config.ts';
import { describeCode } from '../../platform/error-code.ts';
import { type Fetch, fetchWithLimits } from '../../platform/fetch-with-limits.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { openOutboundNetwork } from '../../platform/outbound/outbound-network.ts';
import type { OutboundConfig } from '../../platform/outbound/proxy-choice.ts';
import { PACKAGE_NAME, PACKAGE_ROOT } from '../../platform/own-files.ts';
import {
  ALLOWED_SERVER_NAME,
  describeSameName,
  isOtherName,
} from '../../servers/config/servers.ts';
import { addressMembers } from '../../servers/http/http-config.ts';
import { CommandError, UsageError } from '../command-line/errors.ts';
import {
  type Flags,
  type Invocation,
  isInCheckout,
  type Texts,
} from '../command-line/invocation.ts';
import { readSecretOption, readTextFile } from '../command-line/read-input.ts';
import { alignColumns } from '../command-line/terminal.ts';
import { createCall } from '../doctor/log-in.ts';
import { loadOutbound } from '../setup/read-setup.ts';
import {
  checkGivenAnswers,
  completeAnswers,
  type GivenAnswers,
  type InitAnswers,
} from './answers.ts';
import {
  convertServerJson,
  isServerJson,
  readServerJsonName,
  ServerJsonError,
} from './import-server-json.ts';
import { type MovedSecret, moveSecrets } from './move-secrets.ts';
import { PACKAGE_FILE, packOwnPackage } from './pack.ts';
import {
  CATALOG_FILE,
  CATALOG_TEST_FILE,
  CONFIG_FILE,
  describeNextSteps,
  renderConfig,
  renderEnv,
  renderGitIgnore,
  renderManifest,
} from './render-files.ts';

const MANIFEST = 'package.json';

/** @throws UsageError, CommandError */
export async function init(
  {
    yes,
    force,
    clientSecretFile,
    ...answered
  }: GivenAnswers & Flags<'yes' | 'force'> & Texts<'clientSecretFile'>,
  { process, console }: Invocation,
): Promise<void> {
  const isAsking = !yes && process.stdin.isTTY === true && process.stdout.isTTY === true;
  if (!yes && !isAsking)
    throw new UsageError(
      'postern init asks questions, but there is no terminal. Add --yes for the defaults, and options for other values.',
    );
  refuseCheckout();
  const clientSecret = await readSecretOption(
    '--client-secret',
    answered.clientSecret,
    clientSecretFile,
    process,
  );
  const given: GivenAnswers = { ...answered, clientSecret };
  checkGivenAnswers(given);
  const { askForAnswers, askToOverwrite } = await import('./ask.ts');
  const answers = isAsking ? await askForAnswers(given) : completeAnswers(given);
  const imported =
    answers.servers === undefined
      ? NO_SERVERS
      : await addLogins(loadOutbound(process.env), importServers(answers.servers));
  const secretsFile = Object.keys(imported.secrets).length === 0 ? undefined : answers.servers;
  const planned = await planFiles(answers, imported, secretsFile);
  const { files: packaged, install } = await planPackage();
  const files = [...planned, ...packaged];
  const written = await writeFiles(files, force, isAsking ? askToOverwrite : undefined);
  if (imported.changes.length > 0) {
    // A table of moved, renamed and unchanged members, followed by an empty line.
    const rows = imported.changes.map(({ server, member, what }) =>
      // Names may come from someone else's file.
      [server, member, what].map((text) => escapeInvisible(text.replaceAll('\n', '\\n'))),
    );
    const lines = alignColumns(rows).map((line) => `  ${line}\n`);
    console.log(`From ${answers.servers}:\n${lines.join('')}`);
  }
  console.log(describeNextSteps({ answers, written, secretsFile, install }));
}

/** Postern's own checkout is not a place for a gateway. @throws CommandError */
function refuseCheckout() {
  if (!isInCheckout()) return;
  const main = `../${basename(process.cwd())}/dist/cli/main.js`;
  throw refuse(
    `This is the folder of Postern itself. Run it in an empty one: mkdir ../my-gateway && cd ../my-gateway && node ${main} init`,
  );
}

/** The package, so that npx never looks for it in a registry, and the command that installs it; neither if it is installed. */
async function planPackage(): Promise<{ files: readonly NewFile[]; install?: string }> {
  if (existsSync(`node_modules/${PACKAGE_NAME}/${MANIFEST}`)) return { files: [] };
  const packed = { name: PACKAGE_FILE, content: await packOwnPackage() };
  // An existing manifest is changed by npm.
  if (existsSync(MANIFEST)) return { files: [packed], install: `npm install ./${PACKAGE_FILE}` };
  const manifest = { name: MANIFEST, content: renderManifest() };
  return { files: [packed, manifest], install: 'npm install' };
}

async function planFiles(
  answers: InitAnswers,
  { servers, secrets }: ImportedServers,
  secretsFile: string | undefined,
) {
  const hasOwnTools = answers.tool || Object.keys(servers).length === 0;
  return [
    { name: CONFIG_FILE, content: renderConfig(servers, hasOwnTools) },
    { name: '.env', content: renderEnv(answers, secrets), isSecret: true },
    ...(answers.tool
      ? [await copyTemplate(CATALOG_FILE), await copyTemplate(CATALOG_TEST_FILE)]
      : []),
    // An existing file is not changed: the next steps say what to add.
    ...(existsSync('.gitignore')
      ? []
      : [{ name: '.gitignore', content: renderGitIgnore(secretsFile) }]),
  ];
}

const copyTemplate = async (name: string) => ({
  name,
  content: await readFile(new URL(`templates/${name}`, PACKAGE_ROOT)),
});

interface NewFile {
  readonly name: string;
  readonly content: string | Buffer;
  /** Readable only by its owner. */
  readonly isSecret?: boolean;
}

/**
 * Writes all files. If one of them exists, `force` or `confirm` (which asks whether to overwrite it) is needed, otherwise nothing
 * is written. Resolves to the names of the written files.
 *
 * @throws CommandError
 */
async function writeFiles(
  files: readonly NewFile[],
  force: boolean,
  confirm?: (name: string) => Promise<boolean>,
) {
  // A dangling symbolic link counts as present.
  const present = force
    ? []
    : files.filter(({ name }) => lstatSync(name, { throwIfNoEntry: false }) !== undefined);
  const kept = new Set<string>();
  if (present.length > 0 && confirm === undefined)
    throw new CommandError(
      'Nothing was written:',
      `${present.map(({ name }) => name).join(', ')} exist${present.length === 1 ? 's' : ''} already. Add --force to overwrite, or run postern init in an empty folder.`,
    );
  for (const { name } of present) if (!(await confirm?.(name))) kept.add(name);
  const wanted = files.filter(({ name }) => !kept.has(name));
  for (const { name, content, isSecret } of wanted) {
    try {
      // Creates a new file: the old one may be readable by others, or a link to another place.
      await rm(name, { force: true });
      await writeFile(name, content, { mode: isSecret ? 0o600 : 0o644, flag: 'wx' });
    } catch (error) {
      throw new CommandError(
        'A file could not be written:',
        `${resolve(name)} (${describeCode(error)}). Run postern init in a folder that this user can write.`,
      );
    }
  }
  return wanted.map(({ name }) => name);
}

// Detects which imported servers require a login per user: they respond to a request without a token.

/** Limits per server; all are contacted at the same time, since the user is waiting. */
const LIMITS = { timeoutMs: 5000, maxBytes: 65_536, acceptsRedirects: true };

/**
 * Adds `"auth": {"type": "oauth"}` to those servers. A server that does not respond stays as it is: the gateway reports missing
 * logins at its start.
 */
async function addLogins(outbound: OutboundConfig, imported: ImportedServers) {
  const { servers, secrets, changes } = imported;
  const network = openOutboundNetwork({ outbound });
  const asked = Object.entries(servers).map(async ([name, server]) =>
    isObject(server) && (await wantsLogin(server, network.fetch))
      ? ([name, { ...server, auth: { type: 'oauth' } }] as const)
      : ([name, server] as const),
  );
  const entries = await Promise.all(asked).finally(network.close);
  const wanting = entries.flatMap(([name, server]) => (server === servers[name] ? [] : [name]));
  const added = wanting.sort().map((server) => ({ server, member: 'auth', what: ADDED }));
  return { servers: Object.fromEntries(entries), secrets, changes: [...changes, ...added] };
}

const ADDED =
  'added, with the type oauth: it requires each user to log in. Users connect when they first call it';

async function wantsLogin(server: JsonObject, fetch: Fetch) {
  const url = addressMembers
    .map(({ name }) => server[name])
    .find((text) => typeof text === 'string');
  if (url === undefined || hasVariable(url) || !URL.canParse(url)) return false;
  const { protocol, username, password } = new URL(url);
  // Secrets from the environment and passwords are never sent.
  if (!/^https?:$/.test(protocol) || username + password !== '') return false;
  const { type, disabled, auth, headers: given } = server;
  // Any header may be an API key: such a server needs no login.
  const hasKey = isObject(given) && Object.keys(given).length > 0;
  if (disabled === true || auth !== undefined || hasKey) return false;
  try {
    const request = type === 'sse' ? STREAM : INITIALIZE;
    const { status, headers } = await fetchWithLimits(fetch, url, request, LIMITS);
    return status === 401 && /\bresource_metadata=/i.test(headers.get('www-authenticate') ?? '');
  } catch {
    return false;
  }
}

const STREAM = { headers: { Accept: 'text/event-stream' } };

const INITIALIZE = createCall('initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'postern init', version: '1' },
});

// Imports the servers of a desktop client's file into postern.yaml, and their secrets into `.env`.

interface ImportedServers {
  /** Servers by their new names, without secrets. */
  readonly servers: JsonObject;
  /** Secrets by the variables that replace them. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Moved, renamed and unchanged members, in the order of the file. */
  readonly changes: readonly MovedSecret[];
}

const NO_SERVERS: ImportedServers = { servers: {}, secrets: {}, changes: [] };

const RENAMED_BECAUSE = 'A name is a letter, then up to 31 letters, digits and hyphens.';

/** VS Code uses a different name. */
const MEMBERS = ['mcpServers', 'servers'];

/** @throws CommandError for a file without servers, or with names that the gateway does not accept. */
function importServers(path: string) {
  const content = read(path);
  if (isServerJson(content)) {
    const [name = ''] = nameServers(path, [readServerJsonName(content)]).keys();
    try {
      const { server, changes } = convertServerJson(name, content);
      return { servers: { [name]: server }, secrets: {}, changes };
    } catch (error) {
      if (error instanceof ServerJsonError) throw refuse(`${path}: ${error.message}`);
      throw error;
    }
  }
  const given = MEMBERS.map((name) => content[name]).find(isObject);
  if (given === undefined)
    throw refuse(
      `${path} has no "mcpServers": an object with MCP servers by their names. It is not a server.json either, with "name" and "remotes" or "packages".`,
    );
  const names = nameServers(path, Object.keys(given));
  const secrets: Record<string, string> = {};
  const changes: MovedSecret[] = [];
  const servers: Record<string, unknown> = {};
  for (const [name, givenName] of names) {
    const note = (member: string, what: string) => changes.push({ server: name, member, what });
    if (isOtherName(givenName, name))
      note('name', `renamed: it was ${givenName}. ${RENAMED_BECAUSE}`);
    const server = given[givenName];
    if (isObject(server) && server.disabled === true)
      note(
        'disabled',
        'left: its tools are not offered until you remove "disabled" from postern.yaml',
      );
    servers[name] = isObject(server) ? moveSecrets(name, server, secrets, changes) : server;
  }
  return { servers, secrets, changes };
}

/** Maps the new names to the original ones. */
function nameServers(path: string, givenNames: readonly string[]) {
  const names = new Map<string, string>();
  const problems = givenNames.flatMap((given) => {
    const name = deriveServerName(given);
    if (name === undefined)
      return [
        `${path}: ${JSON.stringify(given)} is not a valid name for a server. ${ALLOWED_SERVER_NAME}`,
      ];
    const earlier = names.get(name);
    if (earlier !== undefined)
      return [`${path}: ${describeSameName(name, { earlier, later: given })}`];
    names.set(name, given);
    return [];
  });
  if (problems.length > 0) throw refuse(...problems);
  return names;
}

function read(path: string) {
  const format = /^\.ya?ml$/i.test(extname(path)) ? 'yaml' : 'json';
  if (/^https?:\/\//i.test(path))
    throw refuse(
      `--servers takes a file, not an address. Fetch it first: curl -o server.json ${path}`,
    );
  const content = readTextFile(path, (error) => {
    throw refuse(`--servers: ${path} cannot be read (${String(error)}).`);
  });
  const result = readSyntax(content, format);
  if (result.kind === 'broken') throw refuse(`${path}:${result.line}: ${result.message}`);
  const value = toValue(result.root);
  return isObject(value) ? value : {};
}

const refuse = (...lines: readonly string[]) => new CommandError('Nothing was written:', ...lines);
