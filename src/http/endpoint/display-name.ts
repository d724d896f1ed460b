// Makes a client's name safe to display: any client may register under any name.

import { UNSEEN } from '../../platform/invisible.ts';
import { shorten } from '../../platform/text.ts';
import { escapeHtml } from './html-page.ts';

export interface NamedClient {
  readonly id: string;
  /** The name that the client claims. */
  readonly name?: string | undefined;
  /** The host of its redirect URI; undefined for a client that authenticates as itself. */
  readonly redirectHost?: string | undefined;
}

export interface DisplayName {
  readonly text: string;
  /** A sentence that warns the reader about the name. */
  readonly warning: string | undefined;
}

/** In characters. */
const MAX_DISPLAY_NAME = 40;

/** Invisible characters, and characters that change the reading direction: controls, blanks, fillers. */
const INVISIBLE = new RegExp(`[${UNSEEN}\\p{Z}]+`, 'gu');

/** A name is shown in quotes, and must not close them: quotation marks, primes and similar characters. */
const QUOTES =
  /[\p{Quotation_Mark}\u02ba\u02bb-\u02bd\u02dd\u02ee\u02f4-\u02f6\u2032-\u2037\u05f3\u05f4\u3003]/gu;

export function createDisplayName({ name = '', id }: NamedClient): DisplayName {
  const plain = name
    .normalize('NFKC')
    .replace(INVISIBLE, ' ')
    .replace(QUOTES, "'")
    // Limits stacked accents, which could cover the next line.
    .replace(/(\p{M}{3})\p{M}+/gu, '$1')
    .trim();
  if (plain === '') {
    const text = id.startsWith('https:') ? new URL(id).host : 'unnamed app';
    return { text, warning: undefined };
  }
  const text = shorten(plain, MAX_DISPLAY_NAME);
  return { text, warning: describeMixture(findScripts(text)) };
}

function describeMixture(scripts: readonly string[]) {
  if (scripts.length > 1)
    return `This name mixes letters from different scripts (${scripts.join(', ')}), a common way to imitate another name.`;
  // Two rarely used scripts count as one here.
  return scripts[0] === OTHER_SCRIPT
    ? 'This name uses letters from a rare script, a common way to imitate another name.'
    : undefined;
}

/** HTML. */
export const renderQuoted = ({ text }: DisplayName): string => `“<bdi>${escapeHtml(text)}</bdi>”`;

/** HTML; empty without a warning. */
export const renderWarning = ({ warning: text }: DisplayName): string =>
  text === undefined ? '' : `<br><span class="warning">${escapeHtml(text)}</span>`;

// UTS 39 §5.1: determines the scripts of a string. Look-alike names mix scripts.

/** Scripts in common use (UAX 31 table 5), and two more with many characters that resemble Latin letters. */
const SCRIPTS = `
  Latin Arabic Armenian Bengali Bopomofo Cherokee Coptic Cyrillic Devanagari Ethiopic Georgian
  Greek Gujarati Gurmukhi Han Hangul Hebrew Hiragana Kannada Katakana Khmer Lao Malayalam Myanmar
  Oriya Sinhala Tamil Telugu Thaana Thai Tibetan
`
  .trim()
  .split(/\s+/);

/** Stands for all other scripts. */
const OTHER_SCRIPT = 'another';

const PATTERNS = SCRIPTS.map((name) => ({ name, letters: new RegExp(`\\p{Script=${name}}`, 'u') }));

const COMMON = /[\p{Script=Common}\p{Script=Inherited}]/u;

/** UTS 39 §5.2, "Highly Restrictive": languages that combine several scripts, including Latin. */
const USED_TOGETHER: readonly ReadonlySet<string>[] = [
  new Set(['Latin', 'Han', 'Hiragana', 'Katakana']),
  new Set(['Latin', 'Han', 'Bopomofo']),
  new Set(['Latin', 'Han', 'Hangul']),
];

/** Counts scripts used together as one; empty for text of digits and signs only. */
function findScripts(text: string): readonly string[] {
  const letters = [...text].filter((letter) => !COMMON.test(letter));
  const found = letters.map(
    (letter) => PATTERNS.find((pattern) => pattern.letters.test(letter))?.name ?? OTHER_SCRIPT,
  );
  const scripts = [...new Set(found)].sort();
  const areUsedTogether = USED_TOGETHER.some((set) => scripts.every((script) => set.has(script)));
  return areUsedTogether ? scripts.slice(0, 1) : scripts;
}
