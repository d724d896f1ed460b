import type { Config } from '../../config/config.ts';
import type { UpstreamConfig } from '../../config/file/gateway-file.ts';
import { httpSettings } from '../../config/groups/http.ts';
import { mcpSettings } from '../../config/groups/mcp.ts';
import { outboundSettings } from '../../config/groups/outbound.ts';
import { serverSettings } from '../../config/groups/server.ts';
import { stateSecrets } from '../../config/groups/state-secret.ts';
import { storeSettings } from '../../config/groups/store.ts';
import { upstreamSettings } from '../../config/groups/upstreams.ts';
import { loadConfig } from '../../config/load.ts';
import type { Env } from '../../config/read-env.ts';

/**
 * The settings as far as commands need them that ask the servers of a configuration file: no provider where no server needs
 * one, so that a pipeline can check the lock without it, and nothing of the gateway's own pages and logins.
 *
 * @throws ConfigError
 */
export const loadSettings = (env: Env, servers: readonly UpstreamConfig[] = []): Config =>
  loadConfig(
    servers.some((server) => server.kind === 'http' && NEED_SETTINGS.has(server.auth.type))
      ? env
      : { ...selectNeeded(env), AUTH_REQUIRED: 'false', OAUTH_CONSENT: 'off' },
  );

const NEED_SETTINGS: ReadonlySet<string> = new Set(['identity', 'token-exchange']);

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
