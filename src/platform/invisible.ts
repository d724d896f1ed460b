// Characters that people do not see: the one list for what is shown to them, and for what servers say to models.
/** Unicode's own list (tags, selectors, fillers, joiners, soft hyphens, marks of direction), annotations, and what is no character. Part of a character class. */
export const IGNORABLE =
  '\\p{Default_Ignorable_Code_Point}\\p{Noncharacter_Code_Point}\\ufff9-\\ufffb';

/** Blanks that are no spaces to Unicode: the Braille pattern without dots, the null notehead, blanks of hieroglyphs, the filler of Khitan. */
const BLANK = '\\u2800\\u{1d159}\\u{13441}\\u{13442}\\u{16fe4}';

/** With these also controls, formats, what is not assigned, separators of lines, and blanks. */
export const UNSEEN = `\\p{C}\\p{Zl}\\p{Zp}${IGNORABLE}${BLANK}`;

/** Selectors that choose how a picture looks: ⚠️ has one. */
const PICTURE_FORM = '(?<=\\p{Extended_Pictographic})[\\ufe0e\\ufe0f]';

/** Those of `unseen` that are not `allowed`. What is none of them is passed over by its class alone: that is nearly everything. */
export const createUnseenPattern = (unseen: string, allowed = PICTURE_FORM): RegExp =>
  new RegExp(`(?=[${unseen}])(?!${allowed})[${unseen}]`, 'gu');

/** Without what people do not see. */
export function removeUnseen(text: string): string {
  unseenAnywhere ??= createUnseenPattern(UNSEEN);
  return text.replace(unseenAnywhere, '');
}

/** As JSON, with what has no shape of its own, or changes that of others, as `\u` and four digits. */
export const toVisibleJson = (value: unknown): string => escapeInvisible(JSON.stringify(value));

/** The same for JSON that is written already, with its line feeds. */
export function escapeInvisible(json: string): string {
  invisible ??= createUnseenPattern(`${UNSEEN}\\p{Zs}`, `[\\n ]|${PICTURE_FORM}`);
  return json.replace(invisible, escapeUnits);
}

/** The same for what must not be taken for anything else: only ASCII is shown as it is. */
export const toAsciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[^\x20-\x7e]/gu, escapeUnits);

// Each takes milliseconds to make, which a start need not wait for.

let unseenAnywhere: RegExp | undefined;
/** With the spaces that are not the usual one, and without line feeds. */
let invisible: RegExp | undefined;

const escapeUnits = (character: string) =>
  character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
