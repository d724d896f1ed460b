import type { Config } from '../core/config/config.ts';
import { PACKAGE_VERSION } from '../core/version.ts';
import { SOURCES } from './checkout.ts';
import { type EnvFile, settingsIn } from './env-file.ts';

export interface BannerFacts {
  /** How one logs in. */
  readonly logIn: string;
  /** The file of `--catalog`. */
  readonly catalog: string | undefined;
  readonly envFile: EnvFile | undefined;
}

const DEFAULT_BASE_URL = 'http://localhost:3000';

/** What `postern dev` prints once it runs. */
export function banner({ baseUrl, dataDir, redisUrl }: Config, facts: BannerFacts): string {
  const { logIn, catalog, envFile } = facts;
  const url = `${baseUrl}/mcp`;
  const rows = [
    ['MCP URL', url],
    ['Log-in', logIn],
    ['Pages', `${baseUrl}/`],
    ['Catalog', catalog ?? 'built in; --catalog FILE serves your own'],
    ['Data', redisUrl === undefined ? dataDir : 'in Redis'],
    ...(envFile === undefined
      ? []
      : [['Read', `.env (${settingsIn(envFile).join(', ') || 'no settings'})`]]),
  ];
  return `
  Postern ${PACKAGE_VERSION} is running, for development only.

${rows.map(([name = '', value = '']) => `  ${name.padEnd(9)} ${value}\n`).join('')}
  Next, in a second terminal:
    ${firstStep(baseUrl, url, catalog)}

  Or connect a client:
    Claude Code   claude mcp add --transport http postern ${url}
    Cursor        "postern": { "url": "${url}" } under "mcpServers" in .cursor/mcp.json

  LOG_LEVEL=debug shows every request. Ctrl+C stops it.
`;
}

/** The demo comes with the checkout, and calls what is built in. */
const firstStep = (baseUrl: string, url: string, catalog: string | undefined): string =>
  SOURCES === undefined || catalog !== undefined
    ? `npx @modelcontextprotocol/inspector --transport http --server-url ${url}`
    : `npm run demo${baseUrl === DEFAULT_BASE_URL ? '' : ` ${url}`}`;
