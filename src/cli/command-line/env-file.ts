// Completes the environment of a command from the file .env, and logs the names of the added settings.

import { SETTINGS } from '../../config/config.ts';
import { describeMisspelled, findMisspelledVariables } from '../../config/misspelled.ts';
import type { Log } from '../../platform/log.ts';
import type { Texts } from './invocation.ts';
import { type EnvFile, readEnvFile } from './read-input.ts';

/**
 * Adds unset variables from `.env` to `env`, and options: `--port` sets PORT, `--config` POSTERN_CONFIG, `--catalog`
 * POSTERN_CATALOG.
 *
 * @throws StartError if there is an unreadable `.env`.
 */
export function prepareEnvironment(
  { port, config, catalog }: Partial<Texts<'port' | 'config' | 'catalog'>>,
  env: NodeJS.ProcessEnv,
): EnvFile | undefined {
  if (port !== undefined) env.PORT = port;
  if (config !== undefined) env.POSTERN_CONFIG = config;
  if (catalog !== undefined) env.POSTERN_CATALOG = catalog;
  const envFile = readEnvFile(env);
  Object.assign(env, envFile?.added);
  return envFile;
}

const KNOWN: ReadonlySet<string> = new Set(SETTINGS.map(({ variable }) => variable));

/** The names of settings in it, and no others: in a broken line, the name may be a secret. */
export const listSettings = ({ added }: EnvFile): readonly string[] =>
  Object.keys(added)
    .filter((name) => KNOWN.has(name))
    .sort();

export function logEnvironment(log: Log, envFile: EnvFile | undefined): void {
  if (envFile !== undefined)
    log.info('Read .env. Variables that are set in the environment take precedence.', {
      path: envFile.path,
      variables: listSettings(envFile),
    });
  for (const misspelled of findMisspelledVariables(process.env)) {
    const { variable, nearest } = misspelled;
    log.warn(describeMisspelled(misspelled), { variable, nearest });
  }
}
