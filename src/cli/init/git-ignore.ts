// `.gitignore`, as `postern init` writes it.
import { isAbsolute, relative, sep } from 'node:path';

/** With the file whose secrets were copied, where it lies in this folder. */
export function renderGitIgnore(secretsFile: string | undefined): string {
  const pattern = secretsFile === undefined ? undefined : toPattern(secretsFile);
  return `.env\ndata/\nnode_modules/\n${pattern === undefined ? '' : `${pattern}\n`}`;
}

/** Undefined for a file that is elsewhere, or whose name no line can have. */
export function toPattern(file: string): string | undefined {
  const path = relative('.', file).replaceAll(sep, '/');
  if (path.startsWith('..') || isAbsolute(path) || /[\n\r]| $/.test(path)) return undefined;
  return `/${path.replace(/[\\*?[\]]/g, '\\$&')}`;
}
