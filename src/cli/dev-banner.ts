import type { Config } from '../core/config/config.ts';
import { PACKAGE_VERSION } from '../core/version.ts';
import { SOURCE_FOLDER } from './checkout.ts';
import { type EnvFile, settingsIn } from './env-file.ts';

export interface BannerFacts {
  /** How one logs in. */
  readonly logIn: string;
  /** The file of `--catalog`. */
  readonly catalog: string | undefined;
  readonly envFile: EnvFile | undefined;
}

const DEFAULT_BASE_URL = 'http://localhost:3000';

/** What `postern dev` prints once it runs. `node` is the version that runs it. */
export function banner(
  { server, store }: Config,
  facts: BannerFacts,
  node: string = process.versions.node,
): string {
  const { logIn, catalog, envFile } = facts;
  const { baseUrl } = server;
  const url = `${baseUrl}/mcp`;
  const rows = [
    ['MCP URL', url],
    ['Log-in', logIn],
    ['Pages', `${baseUrl}/`],
    ['Catalog', catalog ?? 'built in; --catalog FILE serves your own'],
    ['Data', store.kind === 'embedded' ? store.dataDir : 'in Redis'],
    ...(envFile === undefined
      ? []
      : [['Read', `.env (${settingsIn(envFile).join(', ') || 'no settings'})`]]),
  ];
  return `
  Postern ${PACKAGE_VERSION} is running, for development only.

${rows.map(([name = '', value = '']) => `  ${name.padEnd(9)} ${value}\n`).join('')}
  Next, in a second terminal:
    ${firstStep(baseUrl, catalog, node)}

  Or connect a client:
    Claude Code   claude mcp add --transport http postern ${url}
    Cursor        "postern": { "url": "${url}" } under "mcpServers" in .cursor/mcp.json

  LOG_LEVEL=debug shows every request. Ctrl+C stops it.
`;
}

/** The demo comes with the checkout, and calls what is built in. */
function firstStep(baseUrl: string, catalog: string | undefined, node: string): string {
  const url = `${baseUrl}/mcp`;
  if (SOURCE_FOLDER !== undefined && catalog === undefined)
    return `npm run demo${baseUrl === DEFAULT_BASE_URL ? '' : ` ${url}`}`;
  return runsInspector(node)
    ? `npx @modelcontextprotocol/inspector --transport http --server-url ${url}`
    : `curl ${baseUrl}/health/ready\n    (The MCP Inspector, a page to try the tools in, needs Node.js 22.19 or newer.)`;
}

function runsInspector(node: string): boolean {
  const [major = 0, minor = 0] = node.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 19);
}
