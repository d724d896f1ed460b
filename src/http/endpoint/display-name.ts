// The name of a client, made fit to be shown: anybody may register under any name.

import { UNSEEN } from '../../platform/invisible.ts';
import { shorten } from '../../platform/text.ts';
import { escapeHtml } from './html-page.ts';

export interface NamedClient {
  readonly id: string;
  /** Its own word for itself. */
  readonly name?: string | undefined;
  /** The host where it logs in; undefined where it does so as itself. */
  readonly redirectHost?: string | undefined;
}

export interface DisplayName {
  readonly text: string;
  /** A sentence about what is wrong with it, for whoever reads it. */
  readonly warning: string | undefined;
}

/** Characters. */
const MAX_DISPLAY_NAME = 40;

/** Characters that leave no mark, or turn the reading direction: controls, blanks, fillers. */
const INVISIBLE = new RegExp(`[${UNSEEN}\\p{Z}]+`, 'gu');

/** A name is shown in quotes, and must not end them itself: quotation marks, primes and the like. */
const QUOTES =
  /[\p{Quotation_Mark}\u02ba\u02bb-\u02bd\u02dd\u02ee\u02f4-\u02f6\u2032-\u2037\u05f3\u05f4\u3003]/gu;

export function createDisplayName({ name = '', id }: NamedClient): DisplayName {
  const plain = name
    .normalize('NFKC')
    .replace(INVISIBLE, ' ')
    .replace(QUOTES, "'")
    // No towers of accents over the next line.
    .replace(/(\p{M}{3})\p{M}+/gu, '$1')
    .trim();
  if (plain === '') {
    const text = id.startsWith('https:') ? new URL(id).host : 'unnamed app';
    return { text, warning: undefined };
  }
  const text = shorten(plain, MAX_DISPLAY_NAME);
  return { text, warning: describeMixture(findScripts(text)) };
}

function describeMixture(scripts: readonly string[]): string | undefined {
  if (scripts.length > 1)
    return `This name mixes letters from different scripts (${scripts.join(', ')}), a common way to imitate another name.`;
  // Two of those that are hardly in use count as one here.
  return scripts[0] === OTHER_SCRIPT
    ? 'This name uses letters from a rare script, a common way to imitate another name.'
    : undefined;
}

/** HTML. */
export const renderQuoted = ({ text }: DisplayName): string => `“<bdi>${escapeHtml(text)}</bdi>”`;

/** HTML; nothing where there is nothing to say. */
export const renderWarning = ({ warning: text }: DisplayName): string =>
  text === undefined ? '' : `<br><span class="warning">${escapeHtml(text)}</span>`;

// UTS 39 §5.1: which scripts a text is written in. Look-alikes are made by mixing them.

/** Scripts in use (UAX 31 table 5), and two more with many look-alikes of Latin letters. */
const SCRIPTS = `
  Latin Arabic Armenian Bengali Bopomofo Cherokee Coptic Cyrillic Devanagari Ethiopic Georgian
  Greek Gujarati Gurmukhi Han Hangul Hebrew Hiragana Kannada Katakana Khmer Lao Malayalam Myanmar
  Oriya Sinhala Tamil Telugu Thaana Thai Tibetan
`
  .trim()
  .split(/\s+/);

/** Stands for all that are not named. */
const OTHER_SCRIPT = 'another';

const PATTERNS = SCRIPTS.map((name) => ({ name, letters: new RegExp(`\\p{Script=${name}}`, 'u') }));

const COMMON = /[\p{Script=Common}\p{Script=Inherited}]/u;

/** UTS 39 §5.2, "Highly Restrictive": languages that are written in several, Latin among them. */
const USED_TOGETHER: readonly ReadonlySet<string>[] = [
  new Set(['Latin', 'Han', 'Hiragana', 'Katakana']),
  new Set(['Latin', 'Han', 'Bopomofo']),
  new Set(['Latin', 'Han', 'Hangul']),
];

/** One for those that are used together; none for digits and signs alone. */
function findScripts(text: string): readonly string[] {
  const letters = [...text].filter((letter) => !COMMON.test(letter));
  const found = letters.map(
    (letter) => PATTERNS.find((pattern) => pattern.letters.test(letter))?.name ?? OTHER_SCRIPT,
  );
  const scripts = [...new Set(found)].sort();
  const areUsedTogether = USED_TOGETHER.some((set) => scripts.every((script) => set.has(script)));
  return areUsedTogether ? scripts.slice(0, 1) : scripts;
}
