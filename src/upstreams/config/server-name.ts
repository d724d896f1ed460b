// §18.1: what a server is called here. Other programs take any name; here it stands in URLs and before names of tools.

const NAME = /^[a-z][a-z0-9-]{0,31}$/;
const MAX_LENGTH = 32;

export const ALLOWED_SERVER_NAME =
  'It must have a letter or digit: names here are a letter, then up to 31 letters, digits and hyphens.';

/** The same name always becomes the same. Undefined where nothing of it can stand in one. */
export function deriveServerName(name: string): string | undefined {
  const lowerName = name.toLowerCase();
  if (NAME.test(lowerName)) return lowerName;
  const fitting = name
    .normalize('NFD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .replace(/^(?=\d)/, 'mcp-')
    .slice(0, MAX_LENGTH)
    .replace(/-+$/, '');
  return NAME.test(fitting) ? fitting : undefined;
}

/** Case alone is no other name. */
export const isOtherName = (given: string, name: string): boolean => given.toLowerCase() !== name;

/** A sentence: which two names of the file become the same. `where` is of the earlier one. */
export const describeSameName = (
  name: string,
  given: { readonly earlier: string; readonly later: string; readonly where?: string },
): string =>
  `${JSON.stringify(given.later)} and ${JSON.stringify(given.earlier)}${given.where ?? ''} would both be called ${name} here. Rename one of them.`;
