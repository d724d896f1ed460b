// UTS 39 §5.1: which scripts a text is written in. Look-alikes are made by mixing them.

/** Scripts in use (UAX 31 table 5), and two more with many look-alikes of Latin letters. */
const SCRIPTS = [
  'Latin',
  'Arabic',
  'Armenian',
  'Bengali',
  'Bopomofo',
  'Cherokee',
  'Coptic',
  'Cyrillic',
  'Devanagari',
  'Ethiopic',
  'Georgian',
  'Greek',
  'Gujarati',
  'Gurmukhi',
  'Han',
  'Hangul',
  'Hebrew',
  'Hiragana',
  'Kannada',
  'Katakana',
  'Khmer',
  'Lao',
  'Malayalam',
  'Myanmar',
  'Oriya',
  'Sinhala',
  'Tamil',
  'Telugu',
  'Thaana',
  'Thai',
  'Tibetan',
] as const;

/** Stands for all that are not named. */
export const OTHER_SCRIPT = 'another';

const PATTERNS = SCRIPTS.map((name) => ({ name, letters: new RegExp(`\\p{Script=${name}}`, 'u') }));

const COMMON = /[\p{Script=Common}\p{Script=Inherited}]/u;

/** UTS 39 §5.2, "Highly Restrictive": languages that are written in several, Latin among them. */
const USED_TOGETHER: readonly ReadonlySet<string>[] = [
  new Set(['Latin', 'Han', 'Hiragana', 'Katakana']),
  new Set(['Latin', 'Han', 'Bopomofo']),
  new Set(['Latin', 'Han', 'Hangul']),
];

/** One for those that are used together; none for digits and signs alone. */
export function findScripts(text: string): readonly string[] {
  const letters = [...text].filter((letter) => !COMMON.test(letter));
  const scripts = [...new Set(letters.map(findScript))].sort();
  const areUsedTogether = USED_TOGETHER.some((set) => scripts.every((script) => set.has(script)));
  return areUsedTogether ? scripts.slice(0, 1) : scripts;
}

const findScript = (letter: string): string =>
  PATTERNS.find(({ letters }) => letters.test(letter))?.name ?? OTHER_SCRIPT;
