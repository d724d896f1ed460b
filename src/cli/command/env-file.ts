// The file .env in the current folder: variables that the environment does not set.
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { describeMisspelled, findMisspelledVariables } from '../../config/misspelled.ts';
import { SETTINGS } from '../../config/settings.ts';
import { getErrorCode } from '../../platform/error-code.ts';
import type { Log } from '../../platform/log.ts';
import { StartError } from './errors.ts';
import type { Texts } from './invocation.ts';
import { readText } from './texts.ts';

export interface EnvFile {
  readonly path: string;
  /** What it sets: variables that the environment lacks, or that are empty there. */
  readonly added: Readonly<Record<string, string>>;
}

/**
 * Completes `env`: `.env` fills in what is not set; `--port` is PORT, `--config`
 * POSTERN_CONFIG, `--catalog` POSTERN_CATALOG.
 *
 * @throws StartError when there is a `.env` that cannot be read.
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

/** Undefined where there is none. @throws StartError when it cannot be read. */
export function readEnvFile(env: NodeJS.ProcessEnv): EnvFile | undefined {
  const path = resolve('.env');
  const text = readText(path, (error) => {
    const code = getErrorCode(error);
    // A folder of that name is a virtual environment of Python.
    if (code === 'ENOENT' || code === 'EISDIR') return undefined;
    throw new StartError([`${path} cannot be read (${code ?? String(error)}).`]);
  });
  if (text === undefined) return undefined;
  const added: Record<string, string> = {};
  // Some editors begin a file with a byte order mark, which would belong to the first name.
  for (const [name, value] of Object.entries(parseEnv(text.replace(/^\ufeff/, '')))) {
    if (value !== undefined && !env[name]) added[name] = value;
  }
  return { path, added };
}

/** What the environment or `.env` says, before `prepareEnvironment`. */
export const findSetting = (variable: string): string | undefined =>
  process.env[variable] || readEnvFile(process.env)?.added[variable];

const KNOWN: ReadonlySet<string> = new Set(SETTINGS.map(({ variable }) => variable));

/** The names of the settings in it, and no others: a broken line may have a secret for a name. */
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
