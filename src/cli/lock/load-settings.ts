import type { Config } from '../../core/config/config.ts';
import { loadConfig } from '../../core/config/load.ts';
import type { UpstreamConfig } from '../../core/gateway-file/gateway-file.ts';

/**
 * The settings as far as `postern lock` needs them: no provider where no server needs one, so that a
 * pipeline can check the lock without them.
 *
 * @throws ConfigError
 */
export const loadSettings = (servers: readonly UpstreamConfig[] = []): Config =>
  loadConfig(
    servers.some((server) => server.kind === 'http' && NEED_SETTINGS.has(server.auth.type))
      ? process.env
      : { ...process.env, AUTH_REQUIRED: 'false', OAUTH_MODE: 'proxy', OAUTH_CONSENT: 'off' },
  );

const NEED_SETTINGS: ReadonlySet<string> = new Set(['identity', 'token-exchange']);
