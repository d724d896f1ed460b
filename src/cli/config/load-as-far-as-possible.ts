import type { Config } from '../../config/config.ts';
import { loadConfig } from '../../config/load.ts';
import { ConfigError } from '../../config/problem.ts';
import type { Env } from '../../config/setting.ts';

export interface LoadedConfig {
  /** Undefined where nothing can be said of the configuration file. */
  readonly config: Config | undefined;
  readonly problems: readonly string[];
}

/** Where a provider is missing, the configuration file can be read all the same. */
export function loadAsFarAsPossible(env: Env): LoadedConfig {
  const { config, problems } = load(env);
  if (config !== undefined) return { config, problems };
  const relaxed = { ...env, AUTH_REQUIRED: 'false', OAUTH_MODE: 'proxy', OAUTH_CONSENT: 'off' };
  return { config: load(relaxed).config, problems };
}

function load(env: Env): LoadedConfig {
  try {
    return { config: loadConfig(env), problems: [] };
  } catch (error) {
    if (error instanceof ConfigError) return { config: undefined, problems: error.problems };
    throw error;
  }
}
