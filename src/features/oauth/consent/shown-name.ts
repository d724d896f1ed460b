// A client's own word for itself, made fit to be shown: anybody may register under any name.
import type { KnownClient } from '../clients.ts';
import { scriptsOf } from './scripts.ts';

export interface ShownName {
  readonly text: string;
  /** What is wrong with it, for whoever reads it. */
  readonly warning: string | undefined;
}

/** Characters. */
const MAX_NAME = 40;

/** What leaves no mark, or turns the reading direction: controls, blanks, fillers. */
const UNSEEN = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]+/gu;

/** A name is shown in quotes, and must not end them itself. */
const QUOTES = /["\u201c-\u201f\u00ab\u00bb\u301d-\u301f]/g;

export function shownName({ client_name: name = '', client_id: id }: KnownClient): ShownName {
  const plain = name
    .normalize('NFKC')
    .replace(UNSEEN, ' ')
    .replace(QUOTES, "'")
    // No towers of accents over the next line.
    .replace(/(\p{M}{3})\p{M}+/gu, '$1')
    .trim();
  if (plain === '') {
    const text = id.startsWith('https:') ? new URL(id).host : 'a program without a name';
    return { text, warning: undefined };
  }
  const text = shortened(plain, MAX_NAME);
  return { text, warning: mixture(scriptsOf(text)) };
}

const mixture = (scripts: readonly string[]): string | undefined =>
  scripts.length > 1
    ? `This name mixes letters of different scripts (${scripts.join(', ')}), as look-alikes do.`
    : undefined;

export function shortened(text: string, max: number): string {
  const letters = [...text];
  return letters.length > max ? `${letters.slice(0, max).join('')}…` : text;
}
