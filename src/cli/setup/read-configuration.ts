// The settings and the configuration file of a command that asks the servers.
import type { Config } from '../../config/config.ts';
import { httpSettings, mcpSettings, outboundSettings } from '../../config/groups/http.ts';
import { serverSettings, upstreamSettings } from '../../config/groups/server.ts';
import { stateSecrets, storeSettings } from '../../config/groups/store.ts';
import { loadConfig } from '../../config/load.ts';
import { formatProblem } from '../../config/problem.ts';
import type { Env } from '../../config/setting.ts';
import type { UpstreamConfig } from '../../mcp/upstream/upstream-config.ts';
import { findServerCredentials } from '../../servers/credentials/server-credentials.ts';
import { CommandError, UsageError } from '../command/errors.ts';
import { readConfigFile } from './config-file/read-setup.ts';

/** @throws UsageError or CommandError */
export async function readConfiguration(command: string, env: Env) {
  const config = loadSettings(env);
  const { configFile: path } = config.server;
  if (path === undefined) {
    throw new UsageError(
      `postern ${command} needs the configuration file, for example --config mcp.json.`,
    );
  }
  const parsed = await readConfigFile(path, config, env);
  if (parsed.kind === 'problems')
    throw new CommandError(
      'The configuration file has problems:',
      parsed.problems.map(formatProblem),
    );
  return { path, file: parsed.file };
}

/**
 * The settings as far as commands need them that ask the servers of a configuration file: no provider where no server needs
 * one, so that a pipeline can check the lock without it, and nothing of the gateway's own pages and logins.
 *
 * @throws ConfigError
 */
export const loadSettings = (env: Env, servers: readonly UpstreamConfig[] = []): Config =>
  loadConfig(
    servers.some(needsSettings)
      ? env
      : { ...selectNeeded(env), AUTH_REQUIRED: 'false', OAUTH_CONSENT: 'off' },
  );

const needsSettings = (server: UpstreamConfig): boolean => {
  const credentials = findServerCredentials(server);
  return credentials?.signsTokens === true || credentials?.asksProvider === true;
};

const NEEDED: ReadonlySet<string> = new Set(
  [
    serverSettings.configFile,
    serverSettings.logLevel,
    stateSecrets,
    ...[httpSettings, mcpSettings, outboundSettings, storeSettings, upstreamSettings].flatMap(
      (group) => Object.values(group),
    ),
  ].flatMap(({ variable, alias }) => (alias === undefined ? [variable] : [variable, alias])),
);

const selectNeeded = (env: Env): Env =>
  Object.fromEntries(Object.entries(env).filter(([name]) => NEEDED.has(name)));
