import { existsSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { CommandError } from '../command-error.ts';

export interface NewFile {
  readonly name: string;
  readonly text: string;
  /** Only its owner may read it. */
  readonly isSecret?: boolean;
}

export interface WriteOptions {
  /** Overwrites what is there. */
  readonly force: boolean;
  /** Whether to overwrite this one; without it, files that exist are refused. */
  readonly confirm?: (name: string) => Promise<boolean>;
}

/**
 * Writes all, or without `force` and `confirm` nothing where one of them exists. Resolves to the names of those that were
 * written.
 *
 * @throws CommandError
 */
export async function writeFiles(
  files: readonly NewFile[],
  { force, confirm }: WriteOptions,
): Promise<readonly string[]> {
  const present = force ? [] : files.filter(({ name }) => existsSync(name));
  const kept = new Set<string>();
  if (present.length > 0 && confirm === undefined) {
    throw new CommandError('Nothing was written:', [
      `${present.map(({ name }) => name).join(', ')} exist${present.length === 1 ? 's' : ''} already. Add --force to overwrite, or run postern init in an empty folder.`,
    ]);
  }
  for (const { name } of present) if (!(await confirm?.(name))) kept.add(name);
  const wanted = files.filter(({ name }) => !kept.has(name));
  for (const { name, text, isSecret } of wanted) {
    const mode = isSecret ? 0o600 : 0o644;
    await writeFile(name, text, { mode });
    // Of a file that was there already it is not changed by writing.
    if (isSecret) await chmod(name, mode);
  }
  return wanted.map(({ name }) => name);
}
