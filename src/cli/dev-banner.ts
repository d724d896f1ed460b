import { CLIENT_SETUPS } from '../core/client-setups.ts';
import type { Config } from '../core/config/config.ts';
import type { UpstreamConfig } from '../core/gateway-file/gateway-file.ts';
import { PACKAGE_VERSION } from '../core/version.ts';
import { SOURCE_FOLDER } from './checkout.ts';
import type { ConfigFile } from './config-file/open-config-file.ts';
import { type EnvFile, listSettings } from './env-file.ts';

export interface BannerFacts {
  /** How one logs in. */
  readonly login: string;
  /** The file of `--config`. */
  readonly configFile: Pick<ConfigFile, 'path' | 'setup'> | undefined;
  readonly envFile: EnvFile | undefined;
}

/** All that `postern connect` knows, but those that are told at once. */
const OTHER_CLIENTS = CLIENT_SETUPS.map(({ id }) => id)
  .filter((id) => !['claude-code', 'cursor'].includes(id))
  .join(', ');

const DEFAULT_BASE_URL = 'http://localhost:3000';

/** What `postern dev` prints once it runs. `node` is the version that runs it. */
export function renderBanner(
  { server, store }: Config,
  facts: BannerFacts,
  node: string = process.versions.node,
): string {
  const { login, configFile, envFile } = facts;
  const { baseUrl, catalogFile } = server;
  const url = `${baseUrl}/mcp`;
  const rows = [
    ['MCP URL', url],
    ['Login', login],
    ['Pages', `${baseUrl}/`],
    ['Catalog', describeCatalog(catalogFile, configFile)],
    ...describeServers(configFile),
    ['Data', store.kind === 'embedded' ? store.dataDir : 'in Redis'],
    ...(envFile === undefined
      ? []
      : [['Settings', `from .env (${listSettings(envFile).join(', ') || 'none'})`]]),
  ];
  return `
  Postern ${PACKAGE_VERSION} is running for development. Do not use it in production.

${rows.map(([name = '', value = '']) => `  ${name.padEnd(9)} ${value}\n`).join('')}
  Next, in a second terminal:
    ${suggestFirstStep(baseUrl, hasDemoTools(catalogFile, facts), node)}

  Or connect a client${configFile === undefined ? '' : `. This one entry replaces the servers of ${configFile.path}`}:
    Claude Code   claude mcp add --transport http postern ${url}
    Cursor        "postern": { "url": "${url}" } under "mcpServers" in .cursor/mcp.json
    Others        postern connect CLIENT${baseUrl === DEFAULT_BASE_URL ? '' : ` --url ${baseUrl}`}, for
                  ${OTHER_CLIENTS}
${describeOneServer(url, configFile)}
  Set LOG_LEVEL=debug to log every request. Press Ctrl+C to stop.
`;
}

function describeCatalog(
  catalog: string | undefined,
  configFile: BannerFacts['configFile'],
): string {
  if (configFile?.setup.file.builtIn === false) return `none ("builtIn": false)`;
  return catalog ?? 'built in (--catalog FILE serves your own)';
}

/** A row for each, in the order of the file. */
function describeServers(configFile: BannerFacts['configFile']): readonly (readonly string[])[] {
  if (configFile === undefined)
    return [['Servers', 'none (--config FILE puts your MCP servers behind the gateway)']];
  const {
    path,
    setup: { file },
  } = configFile;
  const [first = `none in ${path}`, ...others] = file.servers.map(
    (server) => `${server.name} (${describeServer(server)})`,
  );
  return [['Servers', first], ...others.map((other) => ['', other])];
}

/** A line where there is a server, else an empty text. */
function describeOneServer(url: string, configFile: BannerFacts['configFile']): string {
  const name = configFile?.setup.file.servers[0]?.name;
  return name === undefined
    ? ''
    : `    One server    ${url}/${name} has what ${name} has, under its own names\n`;
}

/** Without what may be secret: arguments, and what follows the host. */
const describeServer = (server: UpstreamConfig): string =>
  server.kind === 'stdio' ? `runs ${server.command}` : `at ${new URL(server.url).host}`;

/** The demo comes with the checkout, and calls what is built in. */
const hasDemoTools = (catalog: string | undefined, { configFile }: BannerFacts): boolean =>
  SOURCE_FOLDER !== undefined &&
  catalog === undefined &&
  configFile?.setup.file.builtIn !== false &&
  !configFile?.setup.file.rules.length;

function suggestFirstStep(baseUrl: string, hasDemo: boolean, node: string): string {
  const url = `${baseUrl}/mcp`;
  if (hasDemo) return `npm run demo${baseUrl === DEFAULT_BASE_URL ? '' : ` ${url}`}`;
  return canRunInspector(node)
    ? `npx @modelcontextprotocol/inspector --transport http --server-url ${url}`
    : `curl ${baseUrl}/health/ready\n    (The MCP Inspector, a web page to try the tools, needs Node.js 22.19 or newer.)`;
}

function canRunInspector(node: string): boolean {
  const [major = 0, minor = 0] = node.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 19);
}
