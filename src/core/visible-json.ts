// JSON in which nothing is invisible: for people who read it in a terminal, in a log or in version control.

/** As JSON, with what has no shape of its own, or changes that of others, as `\u` and four digits. */
export const toVisibleJson = (value: unknown): string => escapeInvisible(JSON.stringify(value));

/** The same for JSON that is written already, with its line feeds. */
export const escapeInvisible = (json: string): string => json.replace(INVISIBLE, escapeUnits);

/** The same for what must not be taken for anything else: only ASCII is shown as it is. */
export const toAsciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[^\x20-\x7e]/gu, escapeUnits);

/** Controls, formats (such as the marks that turn text around), separators but the space, and what is not assigned. */
const INVISIBLE = /(?!\n)[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;

const escapeUnits = (character: string): string =>
  character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
