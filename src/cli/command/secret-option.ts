// A secret of the command line. Everybody on the machine can read the arguments of a process, so it may come from a file
// or from standard input as well.
import { text as readAll } from 'node:stream/consumers';
import { getErrorCode } from '../../platform/error-code.ts';
import { UsageError } from './errors.ts';
import type { InvokedProcess, Texts } from './invocation.ts';
import { readTextFile } from './texts.ts';

/**
 * What was given of `flag` and `flag`-file, without the line break at its end; undefined where neither was. `-` in place of the
 * secret itself is standard input.
 *
 * @throws UsageError
 */
export async function readSecretOption(
  flag: string,
  { value, file }: Texts<'value' | 'file'>,
  { stdin }: Pick<InvokedProcess, 'stdin'>,
): Promise<string | undefined> {
  if (value !== undefined && file !== undefined)
    throw new UsageError(`Both ${flag} and ${flag}-file are given. Keep one.`);
  if (file !== undefined) return requireContent(readSecretFile(flag, file), `${flag}-file`);
  if (value !== '-') return value;
  if (stdin.isTTY)
    throw new UsageError(
      `${flag} - reads standard input, which is a terminal here. Pipe the secret into the command, or use ${flag}-file FILE.`,
    );
  return requireContent(await readAll(stdin), `${flag} -`);
}

const readSecretFile = (flag: string, path: string): string =>
  readTextFile(path, (error) => {
    const code = getErrorCode(error) ?? 'it failed';
    throw new UsageError(`${flag}-file: ${path} cannot be read (${code}).`);
  });

function requireContent(content: string, flag: string): string {
  const secret = content.trim();
  if (secret === '') throw new UsageError(`${flag}: there is nothing in it.`);
  return secret;
}
