// A secret of the command line. Everybody on the machine can read the arguments of a process, so it may come from a file
// or from standard input as well.
import { readFileSync } from 'node:fs';
import { text as readAll } from 'node:stream/consumers';
import { getErrorCode } from '../../platform/error-code.ts';
import { UsageError } from './errors.ts';
import type { InvokedProcess } from './invocation.ts';

/** What was given of `--token` and `--token-file`. */
interface SecretOption {
  readonly value: string | undefined;
  readonly file: string | undefined;
}

/** `-` in place of the secret itself. */
const STANDARD_INPUT = '-';

/**
 * Without the line break at its end; undefined where neither option is given. `flag` is that of the value.
 *
 * @throws UsageError
 */
export async function readSecretOption(
  flag: string,
  { value, file }: SecretOption,
  { stdin }: Pick<InvokedProcess, 'stdin'>,
): Promise<string | undefined> {
  if (value !== undefined && file !== undefined)
    throw new UsageError(`Both ${flag} and ${flag}-file are given. Keep one.`);
  if (file !== undefined) return requireContent(readFile(`${flag}-file`, file), `${flag}-file`);
  if (value !== STANDARD_INPUT) return value;
  if (stdin.isTTY)
    throw new UsageError(
      `${flag} - reads standard input, which is a terminal here. Pipe the secret into the command, or use ${flag}-file FILE.`,
    );
  return requireContent(await readAll(stdin), `${flag} -`);
}

function readFile(flag: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(
      `${flag}: ${path} cannot be read (${getErrorCode(error) ?? 'it failed'}).`,
    );
  }
}

function requireContent(content: string, flag: string): string {
  const secret = content.trim();
  if (secret === '') throw new UsageError(`${flag}: there is nothing in it.`);
  return secret;
}
