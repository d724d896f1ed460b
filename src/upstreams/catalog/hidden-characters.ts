// §18.2: characters that people do not see, and models read.
import { createUnseenPattern, IGNORABLE } from '../../platform/invisible.ts';

/** Scripts whose words are written with joiners. */
const JOINING = [
  ...['Arab', 'Syrc', 'Mong', 'Nkoo', 'Deva', 'Beng', 'Guru', 'Gujr', 'Orya', 'Taml', 'Telu'],
  ...['Knda', 'Mlym', 'Sinh', 'Khmr', 'Mymr', 'Tibt'],
].map((script) => `\\p{scx=${script}}`);

const PICTURE = '\\p{Extended_Pictographic}';
const BEFORE_JOINER = `[${JOINING.join('')}${PICTURE}\\p{Emoji_Modifier}\\ufe0f]`;
const AFTER_JOINER = `[${JOINING.join('')}${PICTURE}]`;

/** What emoji, and languages such as Persian and Hindi, need: only where it does something. */
const NEEDED = [
  `(?<=${BEFORE_JOINER})[\\u200c\\u200d](?=${AFTER_JOINER})`,
  `(?<=${PICTURE})[\\ufe0e\\ufe0f]`,
  '(?<=[0-9#*])\\ufe0f(?=\\u20e3)',
].join('|');

/** Control characters but for line feed and tab, and what else hides. */
export const HIDDEN_IN_TEXT = createUnseenPattern(`\\p{Cc}${IGNORABLE}`, `[\\t\\n]|${NEEDED}`);

/** The same for values, which may be line ends of any kind. */
export const HIDDEN_IN_VALUE = createUnseenPattern(`\\p{Cc}${IGNORABLE}`, `[\\t\\n\\r]|${NEEDED}`);

/** The same for regular expressions, which may name controls. */
export const HIDDEN_IN_PATTERN = createUnseenPattern(IGNORABLE, NEEDED);

/** Whether JSON text may have any of them: there the first controls are escaped. */
export const MAY_HIDE = new RegExp(`\\\\u00[01]|\\\\[bfr]|[\\u007f-\\u009f${IGNORABLE}]`, 'u');

export const hasHidden = (text: string, hidden: RegExp = HIDDEN_IN_VALUE): boolean =>
  text.search(hidden) !== -1;

/** UTS 39: a word in several of the scripts whose letters look alike, or letters that are others of ASCII. */
export const LOOKS_LIKE_ANOTHER = new RegExp(
  [
    '\\p{sc=Latn}[\\p{sc=Cyrl}\\p{sc=Grek}\\p{sc=Armn}\\p{sc=Cher}]',
    '[\\p{sc=Cyrl}\\p{sc=Grek}\\p{sc=Armn}\\p{sc=Cher}]\\p{sc=Latn}',
    '\\p{sc=Cyrl}\\p{sc=Grek}|\\p{sc=Grek}\\p{sc=Cyrl}',
    '[\\uff10-\\uff19\\uff21-\\uff3a\\uff41-\\uff5a\\u{1d400}-\\u{1d7ff}]',
  ].join('|'),
  'u',
);
