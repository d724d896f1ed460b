// Characters that people do not see: the one list for what is shown to them, and for what servers say to models.

/** Unicode's own list (tags, selectors, fillers, joiners, soft hyphens, marks of direction), annotations, and what is no character. Part of a character class. */
export const IGNORABLE =
  '\\p{Default_Ignorable_Code_Point}\\p{Noncharacter_Code_Point}\\ufff9-\\ufffb';

/** Blanks that are no spaces to Unicode: the Braille pattern without dots, the null notehead, blanks of hieroglyphs, the filler of Khitan. */
const BLANK = '\\u2800\\u{1d159}\\u{13441}\\u{13442}\\u{16fe4}';

/** With these also controls, formats, what is not assigned, separators of lines, and blanks. */
export const UNSEEN = `\\p{C}\\p{Zl}\\p{Zp}${IGNORABLE}${BLANK}`;

/** Selectors that choose how a picture looks: ⚠️ has one. */
export const PICTURE_FORM = '(?<=\\p{Extended_Pictographic})[\\ufe0e\\ufe0f]';

/** Those of `unseen` that are not `allowed`. What is none of them is passed over by its class alone: that is nearly everything. */
export const createUnseenPattern = (unseen: string, allowed = PICTURE_FORM): RegExp =>
  new RegExp(`(?=[${unseen}])(?!${allowed})[${unseen}]`, 'gu');
