// The file .env in the current folder: variables that the environment does not set. Apart from what knows all settings: the process
// that watches needs them only later.
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { getErrorCode } from '../../platform/error-code.ts';
import { StartError } from './errors.ts';
import { readTextFile } from './texts.ts';

export interface EnvFile {
  readonly path: string;
  /** What it sets: variables that the environment lacks, or that are empty there. */
  readonly added: Readonly<Record<string, string>>;
}

/** Undefined where there is none. @throws StartError when it cannot be read. */
export function readEnvFile(env: NodeJS.ProcessEnv): EnvFile | undefined {
  const path = resolve('.env');
  const text = readTextFile(path, (error) => {
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
