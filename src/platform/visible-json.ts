// JSON in which nothing is invisible: for people who read it in a terminal, in a log or in version control.
import { createUnseenPattern, PICTURE_FORM, UNSEEN } from './invisible.ts';

/** As JSON, with what has no shape of its own, or changes that of others, as `\u` and four digits. */
export const toVisibleJson = (value: unknown): string => escapeInvisible(JSON.stringify(value));

/** The same for JSON that is written already, with its line feeds. */
export const escapeInvisible = (json: string): string => json.replace(INVISIBLE, escapeUnits);

/** The same for what must not be taken for anything else: only ASCII is shown as it is. */
export const toAsciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[^\x20-\x7e]/gu, escapeUnits);

/** With the spaces that are not the usual one, and without line feeds. */
const INVISIBLE = createUnseenPattern(`${UNSEEN}\\p{Zs}`, `[\\n ]|${PICTURE_FORM}`);

const escapeUnits = (character: string): string =>
  character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
