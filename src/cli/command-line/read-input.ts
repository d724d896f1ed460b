// The file .env in the current folder: variables that the environment does not set. Apart from what knows all settings: the process
// that watches needs them only later.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { parseEnv } from 'node:util';
import { isOnThisMachine } from '../../platform/address.ts';
import { getErrorCode } from '../../platform/error-code.ts';
import { StartError, UsageError } from './errors.ts';
import type { InvokedProcess } from './invocation.ts';

export interface EnvFile {
  readonly path: string;
  /** Variables that it sets: those that the environment lacks, or that are empty there. */
  readonly added: Readonly<Record<string, string>>;
}

/** Undefined where there is none. @throws StartError when it cannot be read. */
export function readEnvFile(env: NodeJS.ProcessEnv): EnvFile | undefined {
  const path = resolve('.env');
  const text = readTextFile(path, (error) => {
    const code = getErrorCode(error);
    // A folder of that name is a virtual environment of Python.
    if (code === 'ENOENT' || code === 'EISDIR') return undefined;
    throw new StartError(`${path} cannot be read (${code ?? String(error)}).`);
  });
  if (text === undefined) return undefined;
  const added: Record<string, string> = {};
  // Some editors begin a file with a byte order mark, which would belong to the first name.
  for (const [name, value] of Object.entries(parseEnv(text.replace(/^\ufeff/, '')))) {
    if (value !== undefined && !env[name]) added[name] = value;
  }
  return { path, added };
}

/** Finds what the environment or `.env` says, before `prepareEnvironment`. */
export const findSetting = (variable: string): string | undefined =>
  process.env[variable] || readEnvFile(process.env)?.added[variable];

// A secret of the command line. Everybody on the machine can read the arguments of a process, so it may come from a file
// or from standard input as well.

/**
 * The value of `flag` and `flag`-file, without the line break at its end; undefined where neither was. `-` in place of the
 * secret itself is standard input.
 *
 * @throws UsageError
 */
export async function readSecretOption(
  flag: string,
  value: string | undefined,
  file: string | undefined,
  { stdin }: InvokedProcess,
): Promise<string | undefined> {
  if (value !== undefined && file !== undefined)
    throw new UsageError(`Both ${flag} and ${flag}-file are given. Keep one.`);
  if (file !== undefined) {
    const content = readTextFile(file, (error) => {
      const code = getErrorCode(error) ?? 'it failed';
      throw new UsageError(`${flag}-file: ${file} cannot be read (${code}).`);
    });
    return requireContent(content, `${flag}-file`);
  }
  if (value !== '-') return value;
  if (stdin.isTTY)
    throw new UsageError(
      `${flag} - reads standard input, which is a terminal here. Pipe the secret into the command, or use ${flag}-file FILE.`,
    );
  return requireContent(await readAll(stdin), `${flag} -`);
}

function requireContent(content: string, flag: string) {
  const secret = content.trim();
  if (secret === '') throw new UsageError(`${flag}: it is empty.`);
  return secret;
}

// Text that commands read from files, and that they print in columns.

/** Reads a file; where it cannot be read, the result is what `explain` makes of the error. */
export function readTextFile<Other>(
  path: string,
  explain: (error: unknown) => Other,
): string | Other {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    return explain(error);
  }
}

/** Empty where it cannot be read. */
export const readIfPresent = (path: string): string => readTextFile(path, () => '');

// Addresses as people write them: without a scheme where they mean the usual one.

/** http on this machine, https elsewhere; what has a scheme stays as it is. */
export function addScheme(text: string): string {
  if (text.includes('://')) return text;
  const secure = `https://${text}`;
  return URL.canParse(secure) && isOnThisMachine(new URL(secure).hostname)
    ? `http://${text}`
    : secure;
}
