// What the banner of postern dev tells: what is served, and how clients connect.

import type { Config } from '../../config/config.ts';
import type { UpstreamConfig } from '../../mcp/upstream/upstream-config.ts';
import { CLIENT_SETUPS, DEFAULT_ENTRY_NAME } from '../../pages/client-setups.ts';
import { findTransport } from '../../servers/transport/transports.ts';
import { listSettings } from '../command/env-file.ts';
import { describeCommand, isInCheckout } from '../command/invocation.ts';
import type { EnvFile } from '../command/read-env-file.ts';
import type { ConfigFile } from '../setup/config-file/open-config-file.ts';
import type { Banner, Fact } from './announcement.ts';

interface BannerFacts {
  readonly login: string;
  /** Answers with an access token, where the development provider gives them out. */
  readonly tokenUrl: string | undefined;
  readonly configFile: Pick<ConfigFile, 'path' | 'setup'> | undefined;
  readonly envFile: EnvFile | undefined;
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
const describeServer = (server: UpstreamConfig): string => {
  const { verb, describe } = findTransport(server);
  return `${verb} ${describe(server).target}`;
};

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
