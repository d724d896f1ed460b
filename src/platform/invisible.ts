// Finds and escapes invisible characters, in text shown to people and in text from servers that models read.
/**
 * Unicode's own list (tags, selectors, fillers, joiners, soft hyphens, marks of direction), annotations, and noncharacters. Part of
 * a character class.
 */
export const IGNORABLE =
  '\\p{Default_Ignorable_Code_Point}\\p{Noncharacter_Code_Point}\\ufff9-\\ufffb';

/**
 * Blank characters that Unicode does not class as spaces: the empty Braille pattern, null notehead, hieroglyph blanks, Khitan
 * filler.
 */
const BLANK = '\\u2800\\u{1d159}\\u{13441}\\u{13442}\\u{16fe4}';

/** Also includes controls, format characters, unassigned code points, line separators, and blanks. */
export const UNSEEN = `\\p{C}\\p{Zl}\\p{Zp}${IGNORABLE}${BLANK}`;

/** Variation selectors, which determine how an emoji looks: ⚠️ has one. */
const PICTURE_FORM = '(?<=\\p{Extended_Pictographic})[\\ufe0e\\ufe0f]';

/** Matches characters of `unseen` that are not `allowed`. Nearly every other character is skipped by its class alone. */
export const createUnseenPattern = (unseen: string, allowed = PICTURE_FORM): RegExp =>
  new RegExp(`(?=[${unseen}])(?!${allowed})[${unseen}]`, 'gu');

/** Removes invisible characters. */
export function removeUnseen(text: string): string {
  unseenAnywhere ??= createUnseenPattern(UNSEEN);
  return text.replace(unseenAnywhere, '');
}

/** Writes a value as JSON, with characters that are invisible or change the look of others as `\u` escapes. */
export const toVisibleJson = (value: unknown): string => escapeInvisible(JSON.stringify(value));

/** Like `toVisibleJson`, for JSON text that contains line feeds. */
export function escapeInvisible(json: string): string {
  invisible ??= createUnseenPattern(`${UNSEEN}\\p{Zs}`, `[\\n ]|${PICTURE_FORM}`);
  return json.replace(invisible, escapeUnits);
}

/** Like `toVisibleJson`, for text that must not be mistaken for any other: escapes everything but ASCII. */
export const toAsciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[^\x20-\x7e]/gu, escapeUnits);

// Compiled on first use: each takes milliseconds, which would delay startup.

let unseenAnywhere: RegExp | undefined;
/** Also matches unusual spaces, but not line feeds. */
let invisible: RegExp | undefined;

const escapeUnits = (character: string) =>
  character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
