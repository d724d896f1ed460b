import { lstatSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { getErrorCode } from '../../platform/error-code.ts';
import { CommandError } from '../command/errors.ts';
import { isInCheckout } from '../command/invocation.ts';

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
  const present = force ? [] : files.filter(({ name }) => isPresent(name));
  const kept = new Set<string>();
  if (present.length > 0 && confirm === undefined) {
    throw new CommandError('Nothing was written:', [
      `${present.map(({ name }) => name).join(', ')} exist${present.length === 1 ? 's' : ''} already. ${adviseOnFolder()}`,
    ]);
  }
  for (const { name } of present) if (!(await confirm?.(name))) kept.add(name);
  const wanted = files.filter(({ name }) => !kept.has(name));
  for (const { name, text, isSecret } of wanted) {
    try {
      // A new file in its place: others may read the old one, or it is a link to somewhere else.
      await rm(name, { force: true });
      await writeFile(name, text, { mode: isSecret ? 0o600 : 0o644, flag: 'wx' });
    } catch (error) {
      throw new CommandError('A file could not be written:', [
        `${resolve(name)} (${getErrorCode(error) ?? String(error)}). Run postern init in a folder that this user can write.`,
      ]);
    }
  }
  return wanted.map(({ name }) => name);
}

/** The folder of Postern itself has files of these names, and is no place for a gateway's own. */
function adviseOnFolder(): string {
  if (!isInCheckout()) return 'Add --force to overwrite, or run postern init in an empty folder.';
  const main = `../${basename(process.cwd())}/dist/cli/main.js`;
  return `This is the folder of Postern itself. Run it in an empty one: mkdir ../my-gateway && cd ../my-gateway && node ${main} init`;
}

/** A link that leads nowhere is there, too. */
const isPresent = (name: string): boolean =>
  lstatSync(name, { throwIfNoEntry: false }) !== undefined;
