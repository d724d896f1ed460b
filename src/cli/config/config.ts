// `postern config`: what `postern start` would run with.

import type { Config } from '../../config/config.ts';
import { ConfigError } from '../../config/config-error.ts';
import { loadConfig } from '../../config/load.ts';
import { describeMisspelled, findMisspelledVariables } from '../../config/misspelled.ts';
import type { Env } from '../../config/read-env.ts';
import { escapeInvisible } from '../../platform/visible-json.ts';
import { prepareEnvironment } from '../command/env-file.ts';
import type { Invocation } from '../command/invocation.ts';
import { describeFile, describeSettings } from './describe-config.ts';
import { type ConfigReport, renderReport } from './render-report.ts';

interface ShowConfigOptions {
  /** Also settings that have their default. */
  readonly all: boolean;
  /** In place of POSTERN_CONFIG. */
  readonly config: string | undefined;
  /** Print JSON. */
  readonly json: boolean;
}

/** Exit code 1 where anything is wrong. */
export async function showConfig(
  { all, config: file, json }: ShowConfigOptions,
  { process, console }: Invocation,
): Promise<void> {
  const envFile = prepareEnvironment({ config: file }, process.env);
  const { config, problems } = loadAsFarAsPossible(process.env);
  const settings = describeSettings(process.env, {
    fromFile: envFile?.added ?? {},
    fromOptions: file === undefined ? {} : { POSTERN_CONFIG: '--config' },
    problems,
  });
  const report: ConfigReport = {
    settings:
      all || json
        ? settings
        : settings.filter(({ source, hasProblem }) => source !== 'default' || hasProblem),
    envFile: envFile?.path,
    file: config && (await describeFile(config, process.env)),
    problems,
    warnings:
      // Those of settings with problems name what was misspelled as well (load.ts).
      problems.length > 0 ? [] : findMisspelledVariables(process.env).map(describeMisspelled),
  };
  console.log(
    json ? escapeInvisible(JSON.stringify(report, undefined, 2)) : renderReport(report, { all }),
  );
  if (problems.length > 0 || (report.file?.problems.length ?? 0) > 0) process.exitCode = 1;
}

interface LoadedConfig {
  /** Undefined where nothing can be said of the configuration file. */
  readonly config: Config | undefined;
  readonly problems: readonly string[];
}

/** Where a provider is missing, the configuration file can be read all the same. */
function loadAsFarAsPossible(env: Env): LoadedConfig {
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
