// Reads input of commands: the file .env, secrets, text files and addresses. Separate from the table of settings, which a
// watching process loads only later.

import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { parseEnv } from 'node:util';
import { isOnThisMachine } from '../../platform/address.ts';
import { describeCode, getErrorCode } from '../../platform/error-code.ts';
import { StartError, UsageError } from './errors.ts';
import type { InvokedProcess } from './invocation.ts';

export interface EnvFile {
  readonly path: string;
  /** Variables it sets: those that are unset or empty in the environment. */
  readonly added: Readonly<Record<string, string>>;
}

/** Undefined if there is no such file. @throws StartError if it cannot be read. */
export function readEnvFile(env: NodeJS.ProcessEnv): EnvFile | undefined {
  const path = resolve('.env');
  const text = readTextFile(path, (error) => {
    const code = getErrorCode(error);
    // A folder named .env is a Python virtual environment.
    if (code === 'ENOENT' || code === 'EISDIR') return undefined;
    throw new StartError(`${path} cannot be read (${describeCode(error)}).`);
  });
  if (text === undefined) return undefined;
  // Some editors begin a file with a byte order mark, which would become part of the first name.
  const added = Object.entries(parseEnv(text.replace(/^\ufeff/, ''))).flatMap(([name, value]) =>
    value === undefined || env[name] ? [] : [[name, value] as const],
  );
  return { path, added: Object.fromEntries(added) };
}

/** Reads a variable from the environment or `.env`, before `prepareEnvironment`. */
export const findSetting = (variable: string): string | undefined =>
  process.env[variable] || readEnvFile(process.env)?.added[variable];

// Secrets on the command line. Every user of the machine can read a process's arguments, so a secret may also come from a file or
// from standard input.

/**
 * Returns the value of `flag` or the content of `flag`-file, without the trailing line break; undefined if neither is given. The
 * value `-` means standard input.
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

// Text files that commands read.

/** Reads a file; if that fails, returns the result of `explain` for the error. */
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

/** Empty if the file cannot be read. */
export const readIfPresent = (path: string): string => readTextFile(path, () => '');

// Addresses as users write them: the usual scheme may be missing.

/** Adds http for this machine and https for others; an existing scheme is kept. */
export function addScheme(text: string): string {
  if (text.includes('://')) return text;
  const secure = `https://${text}`;
  return URL.canParse(secure) && isOnThisMachine(new URL(secure).hostname)
    ? `http://${text}`
    : secure;
}
