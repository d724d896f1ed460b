// §18.2, §18.5: matches globs. `*` stands for any text, including none, and `?` for one character; everything else is literal and
// case-sensitive. Globs are not translated to regular expressions, whose backtracking could take minutes.

/** Maximum length of a pattern, in characters. */
export const MAX_GLOB_LENGTH = 512;

/** Maximum length of a matching text, in characters. Longer text never matches. */
export const MAX_TEXT_LENGTH = 8192;

export function compileGlob(pattern: string): (text: string) => boolean {
  if (pattern.length > MAX_GLOB_LENGTH) return () => false;
  const [first = '', ...others] = pattern.split('*');
  const last = others.pop();
  if (last === undefined)
    return (text) => text.length <= MAX_TEXT_LENGTH && endAfter(text, 0, first) === text.length;
  // Adjacent stars are equivalent to one.
  const middle = others.filter((part) => part !== '').map(createFinder);
  const endsWith = createEndCheck(last);

  return function matchGlob(text) {
    if (text.length > MAX_TEXT_LENGTH) return false;
    let at = endAfter(text, 0, first);
    for (const find of middle) {
      if (at === -1) return false;
      at = find(text, at);
    }
    return at !== -1 && endsWith(text, at);
  };
}

/** The part of the pattern before the first star or question mark. */
export const readGlobHead = (pattern: string): string => pattern.split(/[*?]/, 1)[0] ?? '';

/** True if the pattern could match some text that begins with `start`. */
export function canBegin(pattern: string, start: string): boolean {
  if (pattern.length > MAX_GLOB_LENGTH) return false;
  // A star can match the entire rest of `start`.
  const [first = ''] = pattern.split('*', 1);
  const head = [...first];
  const isWhole = head.length === [...pattern].length;
  const begun = [...start];
  if (isWhole && begun.length > head.length) return false;
  return head.every(
    (character, at) => at >= begun.length || character === '?' || character === begun[at],
  );
}

/** Finds the end of the part's first match at or after `from`; -1 if there is none. The first match is as good as any later one. */
function createFinder(part: string): (text: string, from: number) => number {
  if (!part.includes('?'))
    return function findText(text, from) {
      const at = text.indexOf(part, from);
      return at === -1 ? -1 : at + part.length;
    };
  return function findPart(text, from) {
    for (let at = from; at < text.length; at += 1) {
      const end = isInsidePair(text, at) ? -1 : endAfter(text, at, part);
      if (end !== -1) return end;
    }
    return -1;
  };
}

/** True if the rest of the text ends with the part. */
function createEndCheck(part: string): (text: string, from: number) => boolean {
  const characters = [...part];
  const isPlain = !part.includes('?');
  return function endsWith(text, from) {
    if (isPlain) return text.length - from >= part.length && text.endsWith(part);
    let at = text.length;
    for (const _ of characters) at -= isInsidePair(text, at - 1) ? 2 : 1;
    return at >= from && endAfter(text, at, part) === text.length;
  };
}

/** The end of `part` if the text contains it at `start`; otherwise -1. */
function endAfter(text: string, start: number, part: string) {
  let at = start;
  for (const character of part) {
    if (at >= text.length) return -1;
    if (character === '?') at += isInsidePair(text, at + 1) ? 2 : 1;
    else if (text.startsWith(character, at)) at += character.length;
    else return -1;
  }
  return at;
}

/** True for the second half of a surrogate pair. `?` matches both halves. */
function isInsidePair(text: string, at: number) {
  return isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1));
}

const isHigh = (unit: number) => unit >= 0xd800 && unit <= 0xdbff;
const isLow = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff;
