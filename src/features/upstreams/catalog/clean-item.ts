// §18.2: what a server says of its tools is read by people and models: nothing in it is invisible.
import type { RawItem } from '../../mcp/catalog/catalog.ts';

/** Characters of a description, a title. */
const MAX_TEXT: Readonly<Record<string, number>> = { description: 16_384, title: 256 };
/** That of a resource is read by people alone; it is called by its URI. */
const MAX_RESOURCE_TEXT: Readonly<Record<string, number>> = { ...MAX_TEXT, name: 256 };

/** The entry with descriptions and titles, at any depth, that hide nothing. The same object where there is nothing to do. */
export function cleanItem(item: RawItem): RawItem {
  const text = JSON.stringify(item);
  if (text.length <= MIN_BOUND && !MAY_HIDE.test(text)) return item;
  const maxima = 'uri' in item || 'uriTemplate' in item ? MAX_RESOURCE_TEXT : MAX_TEXT;
  return JSON.parse(text, function cleanMember(key, value: unknown) {
    const max = Object.hasOwn(maxima, key) ? maxima[key] : undefined;
    return max !== undefined && typeof value === 'string' ? cleanText(value, max) : value;
  });
}

/** Shorter than this no text in it is too long. */
const MIN_BOUND = 256;

export function cleanText(text: string, max: number): string {
  const clean = text.replace(HIDDEN, '');
  return clean.length <= max ? clean : `${clean.slice(0, max - 1).replace(HALF_AT_END, '')}…`;
}

/**
 * Control characters but for line feed and tab; marks that turn the reading direction; tags, and variation
 * selectors beyond those of emoji, which spell what only models see; characters without width that no script needs.
 */
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\u{e0000}-\u{e01ef}]/gu;

/** The same in JSON text, where the first of them are escaped. */
const MAY_HIDE =
  /\\u00[01]|\\[bfr]|[\u007f-\u009f\u200b\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\u{e0000}-\u{e01ef}]/u;

const HALF_AT_END = /[\ud800-\udbff]$/;
