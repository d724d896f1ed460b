// §18.2: the instructions of several servers as one text.
import { cleanText } from './clean-item.ts';

export interface ServerInstructions {
  /** The server's name. */
  readonly name: string;
  readonly text: string;
}

/** Bytes of all, in UTF-8. */
const MAX_BYTES = 8_192;

/** Of one server, without a heading. */
export const fitInstructions = (text: string): string =>
  cutBytes(cleanText(text.trim(), MAX_BYTES), MAX_BYTES);

/** `own` are those of the built-in catalogue; undefined where there is nothing to say. */
export function joinInstructions(
  own: string | undefined,
  sections: readonly ServerInstructions[],
): string | undefined {
  let joined = own ?? '';
  for (const [index, { name, text }] of sections.entries()) {
    const heading = `${joined === '' ? '' : '\n\n'}## ${name}\n\n`;
    // Each gets its share of what those before it left: none can push the others out.
    const share = Math.floor((MAX_BYTES - Buffer.byteLength(joined)) / (sections.length - index));
    const clean = cleanText(text.trim(), MAX_BYTES);
    const fitted = cutBytes(lowerHeadings(clean), share - Buffer.byteLength(heading));
    if (fitted !== '') joined += heading + fitted;
  }
  return joined === '' ? undefined : joined;
}

/** So that a server cannot speak under the heading of another; a text that is underlined is a heading, too. */
const lowerHeadings = (text: string): string =>
  text
    .replace(/^([ \t]{0,3})(#{1,6})(?=\s|$)/gm, '$1##$2')
    .replace(/(?<=\S[^\n]*\n[ \t]{0,3})(?=(?:=+|-+)[ \t]*$)/gm, '\\');

/** A character is never cut in two. */
function cutBytes(text: string, max: number): string {
  if (Buffer.byteLength(text) <= max) return text;
  if (max <= ELLIPSIS_BYTES) return '';
  let bytes = ELLIPSIS_BYTES;
  let kept = '';
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > max) break;
    kept += character;
  }
  return `${kept}…`;
}

const ELLIPSIS_BYTES = 3;
