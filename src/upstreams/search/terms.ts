// §25.3: texts as the terms by which they are found: words without their endings.

/** Characters that are read of one text: what is longer costs no more. */
const MAX_TEXT = 2_048;
/** Of one word. */
const MAX_WORD = 40;

/**
 * In their order, with repetitions. Scripts that are written without spaces, as Chinese and Japanese, have each character for
 * a term.
 */
export function listTerms(text: string): readonly string[] {
  const words = listWords(text.slice(0, MAX_TEXT));
  return words.flatMap((word) => (STOP_WORDS.has(word) ? [] : [stem(word.slice(0, MAX_WORD))]));
}

/** The same of a name such as `listPullRequests` or `list_pull_requests`: its parts, and the whole where that is one word. */
export function listNameTerms(name: string): readonly string[] {
  const parts = name.slice(0, MAX_TEXT).replace(HUMP, '$1 $2');
  return parts === name ? listTerms(name) : [...listTerms(parts), ...listTerms(name)];
}

/** Nearly all text is ASCII, which is read ten times as fast. */
const listWords = (text: string): readonly string[] =>
  (NOT_ASCII.test(text)
    ? text.normalize('NFKC').toLowerCase().match(WORDS)
    : text.toLowerCase().match(ASCII_WORDS)) ?? [];

const NOT_ASCII = /[^\p{ASCII}]/u;
const ASCII_WORDS = /[a-z0-9]+/g;
const SPACELESS =
  '\\p{sc=Han}\\p{sc=Hira}\\p{sc=Kana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmr}\\p{sc=Mymr}';
const WORDS = new RegExp(`[${SPACELESS}]|(?:(?![${SPACELESS}])[\\p{L}\\p{M}\\p{N}])+`, 'gu');
const HUMP = /(\p{Ll}|\p{N})(\p{Lu})/gu;

/** English words that say nothing of what a tool does. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about again already also an and another any are as at be been before both but by can could did do does each else for from had
   has have he her here his how i if in into is it its just let like may me more most must my no not now of off on once one only
   or other our out own per please s same she should so some still such t than that the their them then there these they this
   those through to too up us use used uses using very via want wants was we were what when where which while who whose why will
   with within without would you your`.split(/\s+/),
);

/**
 * Without the endings by which forms of one English word differ, so that `creates`, `creating` and `creation` are one term.
 * What comes out need not be a word.
 */
export function stem(word: string): string {
  if (word.length <= 3 || !ENGLISH.test(word)) return word;
  return dropFinalE(dropEnding(dropPlural(word)));
}

const ENGLISH = /^[a-z]+$/;
/** `-er` is left at short words, as `user` and `order`. */
const ENDING = /^(.{3,})(?:ing|ed)$|^(.{5,})er$/;
const VOWEL = /[aeiouy]/;
const DOUBLED = /([bdfgmnprt])\1$/;

function dropPlural(word: string): string {
  if (word.endsWith('ies') && word.length > 4) return `${word.slice(0, -3)}y`;
  if (/(?:ss|x|ch|sh|zz)es$/.test(word)) return word.slice(0, -2);
  return /[^sui]s$/.test(word) ? word.slice(0, -1) : word;
}

function dropEnding(word: string): string {
  if (/[ts]ion$/.test(word) && word.length > 6) return word.slice(0, -3);
  const [, plain, agent] = ENDING.exec(word) ?? [];
  const rest = plain ?? agent ?? '';
  if (!VOWEL.test(rest)) return word;
  return DOUBLED.test(rest) ? rest.slice(0, -1) : rest;
}

const dropFinalE = (word: string): string =>
  word.length > 3 && word.endsWith('e') ? word.slice(0, -1) : word;
