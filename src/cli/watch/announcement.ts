// What postern dev says once it serves: all of it at first, then what has changed.

import type { Config } from '../../config/config.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { isObject } from '../../platform/json.ts';
import { PACKAGE_VERSION } from '../../platform/own-files.ts';
import { hideSecretArguments } from '../../platform/secret-texts.ts';
import { CLIENT_SETUPS, DEFAULT_ENTRY_NAME } from '../../site/client-setups.ts';
import type { UpstreamConfig } from '../../upstreams/config/upstream-config.ts';
import { type EnvFile, listSettings } from '../command/env-file.ts';
import { describeCommand, isInCheckout } from '../command/invocation.ts';
import type { ConfigFile } from '../setup/config-file/open-config-file.ts';

/** From postern dev to the process that watches its files, or straight to its terminal. */
export interface Announcement extends Banner {
  readonly kind: 'announcement';
  /** How much is served, and what was kept. */
  readonly summary: string;
  /** The changed files that were loaded while it ran, none where somebody asked for that; undefined after a start. */
  readonly loaded: readonly string[] | undefined;
}

export interface Note {
  readonly kind: 'note';
  readonly text: string;
}

/** It comes from our own code in another process. */
export const isTold = (message: unknown): message is Announcement | Note =>
  isObject(message) && (message.kind === 'announcement' || message.kind === 'note');

/** `hasKeys` says that the user can ask for the rest by keys. */
export function createAnnouncer(write: (text: string) => void, hasKeys = false) {
  // Names of files and what these say may be another's: nothing of them moves the cursor of a terminal.
  const print = (text: string) => write(escapeInvisible(text));
  let told: Announcement | undefined;

  return {
    /** `changedFiles`: why it was started again, where it was. */
    announce(announcement: Announcement, changedFiles: readonly string[]): void {
      const { facts, summary, loaded } = announcement;
      if (told === undefined) {
        print(hasKeys ? renderShortBanner(announcement) : renderBanner(announcement));
      } else {
        const files = loaded ?? changedFiles;
        const why = files.length === 0 ? '' : `: ${files.join(', ')} changed`;
        const known = told.facts.map((fact) => renderFacts([fact]));
        const changed = facts.filter((fact) => !known.includes(renderFacts([fact])));
        print(`Reloaded${why}. ${summary}.\n${renderFacts(changed)}`.trimEnd());
      }
      told = announcement;
    },
    note: ({ text }: Note) => print(text),
    /** What clients are given, where the banner left it out. */
    printHints() {
      if (told !== undefined) print(`\n${told.hints}`);
    },
  };
}

interface BannerFacts {
  readonly login: string;
  /** Answers with an access token, where the development provider gives them out. */
  readonly tokenUrl: string | undefined;
  readonly configFile: Pick<ConfigFile, 'path' | 'setup'> | undefined;
  readonly envFile: EnvFile | undefined;
}

interface Fact {
  readonly name: string;
  readonly lines: readonly string[];
  /** Left out of the short banner. */
  readonly isDetail?: true;
}

interface Banner {
  readonly facts: readonly Fact[];
  /** What to type next, and what clients are given: the same after most changes. */
  readonly hints: string;
}

const DEFAULT_BASE_URL = 'http://localhost:3000';

/** `node` is the version that runs it. */
export function createBanner(
  config: Config,
  facts: BannerFacts,
  node: string = process.versions.node,
): Banner {
  const { server, store } = config;
  const { login, configFile, envFile } = facts;
  const { baseUrl, catalogFile } = server;
  const url = `${baseUrl}/mcp`;
  const catalog =
    configFile?.setup.file.builtIn === false
      ? 'none ("builtIn": false)'
      : (catalogFile ?? 'built in (--catalog FILE serves your own)');
  const data = store.kind === 'embedded' ? store.dataDir : 'in Redis';
  return {
    facts: [
      { name: 'MCP URL', lines: [url] },
      { name: 'Login', lines: [login] },
      { name: 'Pages', lines: [`${baseUrl}/`] },
      { name: 'Catalog', lines: [catalog] },
      {
        name: 'Servers',
        lines: describeServers(url, configFile),
        // Each is told of by itself once it answers.
        ...(configFile?.setup.file.servers.length && { isDetail: true }),
      },
      ...describeViews(url, configFile),
      { name: 'Data', lines: [data], isDetail: true },
      ...(envFile === undefined ? [] : [{ name: 'Settings', lines: [describeEnvFile(envFile)] }]),
    ],
    hints: renderHints(config, facts, node),
  };
}

const describeEnvFile = (envFile: EnvFile): string =>
  `from .env (${listSettings(envFile).join(', ') || 'none'})`;

export const renderBanner = ({ facts, hints }: Banner): string => `
  Postern ${PACKAGE_VERSION} is running for development. Do not use it in production.

${renderFacts(facts)}
${hints}
  LOG_LEVEL=debug logs every request. Press Ctrl+C to stop.`;

/** Where keys can be pressed for the rest. */
const renderShortBanner = ({ facts }: Banner): string => `
  Postern ${PACKAGE_VERSION} is running for development. Do not use it in production.

${renderFacts(facts.filter(({ isDetail }) => !isDetail))}
  Press c to see how clients connect, Ctrl+C to stop.
`;

const renderFacts = (facts: readonly Fact[]): string =>
  facts
    .flatMap(({ name, lines }) =>
      lines.map((line, index) => `  ${(index === 0 ? name : '').padEnd(9)} ${line}\n`),
    )
    .join('');

/** A line for each, in the order of the file. */
function describeServers(url: string, configFile: BannerFacts['configFile']): readonly string[] {
  if (configFile === undefined)
    return ['none (--config FILE puts your MCP servers behind the gateway)'];
  const { servers } = configFile.setup.file;
  const [first] = servers;
  if (first === undefined) return [`none in ${configFile.path}`];
  return [
    ...servers.map((server) => `${server.name} (${describeServer(server)})`),
    `One of them alone: ${url}/${first.name} has what ${first.name} has, under its own names`,
  ];
}

/** A line for each, where there are any. */
function describeViews(url: string, configFile: BannerFacts['configFile']): readonly Fact[] {
  const { views = [] } = configFile?.setup.file ?? {};
  if (views.length === 0) return [];
  return [{ name: 'Views', lines: views.map(({ name, title }) => describeView(url, name, title)) }];
}

const describeView = (url: string, name: string, title: string): string =>
  `${url}/${name}${title === name ? '' : ` (${title})`}`;

/** Without what may be secret: arguments, and what follows the host. */
const describeServer = (server: UpstreamConfig): string =>
  server.kind === 'stdio'
    ? `runs ${hideSecretArguments(server.command)}`
    : `at ${new URL(server.url).host}`;

/** Fits in a terminal of 40 lines together with the facts. */
function renderHints({ server, auth }: Config, facts: BannerFacts, node: string): string {
  const { baseUrl, catalogFile } = server;
  const entry = {
    name: DEFAULT_ENTRY_NAME,
    url: `${baseUrl}/mcp`,
    ...(!auth.required && { isOpen: true as const }),
  };
  // Clients that connect from their vendor's servers do not reach this machine.
  const local = CLIENT_SETUPS.filter(({ isRemote }) => !isRemote);
  const curl = local.filter(({ id }) => id === 'curl');
  const commands = local.filter(
    ({ id, language }) =>
      language === 'sh' && id !== 'curl' && (id !== 'inspector' || canRunInspector(node)),
  );
  const files = local.filter(({ language }) => language === 'json');
  const getToken = facts.tokenUrl === undefined ? [] : [`TOKEN=$(curl -s ${facts.tokenUrl})`];
  const hasServers = (facts.configFile?.setup.file.servers.length ?? 0) > 0;
  const sections = [
    ...(hasDemoTools(catalogFile, facts)
      ? [['Try it in a second terminal:', `${renderDemo(baseUrl)}\n`]]
      : []),
    [
      `Connect a client by a command${hasServers ? ', in place of its entries for these servers' : ''}:`,
      ...commands.map((setup) => setup.render(entry)),
    ],
    [
      `or by a file (${describeCommand(['connect'], process)} CLIENT says more):`,
      ...files.flatMap((setup) => [
        `${setup.title}: ${setup.place}`,
        `  ${JSON.stringify(JSON.parse(setup.render(entry)))}`,
      ]),
    ],
    [
      'or call it with curl:',
      ...getToken,
      ...curl.flatMap((setup) => setup.render(entry).split('\n')),
    ],
  ];
  return sections
    .map(([title, ...lines]) => `  ${title}\n${lines.map((line) => `    ${line}\n`).join('')}`)
    .join('');
}

/** The demo comes with the checkout, and calls what is built in. */
const hasDemoTools = (catalog: string | undefined, { configFile }: BannerFacts): boolean =>
  isInCheckout() &&
  catalog === undefined &&
  configFile?.setup.file.builtIn !== false &&
  !configFile?.setup.file.rules.length;

const renderDemo = (baseUrl: string): string =>
  `npm run demo${baseUrl === DEFAULT_BASE_URL ? '' : ` ${baseUrl}/mcp`}`;

function canRunInspector(node: string): boolean {
  const [major = 0, minor = 0] = node.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 19);
}
