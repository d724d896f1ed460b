// What a client calls itself, made fit to be shown: anybody may register under any name.
import { escapeHtml } from '../../http/endpoint/html-page.ts';
import { UNSEEN } from '../../platform/invisible.ts';
import { shorten } from '../../platform/text.ts';
import { findScripts, OTHER_SCRIPT } from './unicode-scripts.ts';

interface NamedClient {
  readonly id: string;
  /** What it calls itself. */
  readonly name?: string | undefined;
}

export interface DisplayName {
  readonly text: string;
  /** What is wrong with it, for whoever reads it. */
  readonly warning: string | undefined;
}

/** Characters. */
const MAX_DISPLAY_NAME = 40;

/** What leaves no mark, or turns the reading direction: controls, blanks, fillers. */
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
  if (scripts.length > 1) {
    return `This name mixes letters from different scripts (${scripts.join(', ')}), a common way to imitate another name.`;
  }
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
