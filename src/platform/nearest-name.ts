// Suggests the known name closest to a mistyped one.

/** A longer name is unlikely to be a typo, and comparing names costs the product of their lengths. */
const MAX_LENGTH = 64;
/** Maximum edits of a typo: each further edit costs time with every name of a long list. */
const MAX_MISTAKES = 5;

/**
 * The known name closest to `name`, or undefined. Ignores letter case and separators (`max_results` equals `maxResults`); up to a
 * third of the characters may differ, at most five.
 */
export function findNearestName(name: string, knownNames: readonly string[]): string | undefined {
  const judge = createJudgeLikeness(name);
  let nearest: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of judge === undefined ? [] : knownNames) {
    const distance = judge?.(candidate, least) ?? least;
    if (distance >= least) continue;
    nearest = candidate;
    least = distance;
  }
  return nearest;
}

/** A sentence to append to a message; empty if no known name is close. */
export function suggestName(
  name: string,
  known: readonly string[],
  show: (nearest: string) => string = String,
): string {
  const nearest = findNearestName(name, known);
  return nearest === undefined ? '' : ` Did you mean ${show(nearest)}?`;
}

/**
 * The number of edits between the two names; Infinity if the names are not similar, or need more than `least` edits, the fewest so
 * far.
 */
type JudgeLikeness = (candidate: string, least: number) => number;

/** Undefined for a name that cannot be a typo. */
export function createJudgeLikeness(name: string): JudgeLikeness | undefined {
  if (name.length > MAX_LENGTH) return undefined;
  const wanted = normalize(name);
  const countEdits = createCountEdits(wanted);
  return function judgeLikeness(candidate, least) {
    if (candidate.length > MAX_LENGTH) return Number.POSITIVE_INFINITY;
    const normalized = normalize(candidate);
    const allowed = Math.min(Math.max(wanted.length, normalized.length) / 3, MAX_MISTAKES);
    return countEdits(normalized, Math.min(allowed, least));
  };
}

/**
 * Number of slots for counting letters. Letters that share a slot count as the same letter, which can only overestimate how much
 * two names have in common.
 */
const PLACES = 256;

/** `computeEditDistance` for many strings, few of which are close. */
export function createCountEdits(wanted: string): (text: string, most: number) => number {
  const counts = new Uint8Array(PLACES);
  for (let index = 0; index < wanted.length; index += 1) {
    const place = wanted.charCodeAt(index) % PLACES;
    counts[place] = (counts[place] ?? 0) + 1;
  }
  const left = new Uint8Array(PLACES);

  return function countEdits(text, most) {
    if (Math.abs(wanted.length - text.length) > most) return Number.POSITIVE_INFINITY;
    // Counting common letters, in any order, rules out nearly all of a long list: each letter that is not in common takes an edit.
    left.set(counts);
    let shared = 0;
    for (let index = 0; index < text.length; index += 1) {
      const place = text.charCodeAt(index) % PLACES;
      const count = left[place] ?? 0;
      if (count === 0) continue;
      left[place] = count - 1;
      shared += 1;
    }
    const isFar = Math.max(wanted.length, text.length) - shared > most;
    return isFar ? Number.POSITIVE_INFINITY : computeEditDistance(wanted, text, most);
  };
}

const normalize = (name: string) => name.toLowerCase().replace(/[_\-. ]/g, '');

// Restricted Damerau–Levenshtein distance: insertion, deletion, substitution, transposition of adjacent letters.

/**
 * Infinity for more than `most` edits, which often shows long before all letters are compared. Only cells within `most` of the
 * diagonal are computed in each row: all others exceed it.
 */
export function computeEditDistance(one: string, other: string, most: number): number {
  const band = Math.min(most, Math.max(one.length, other.length));
  if (Math.abs(one.length - other.length) > band) return Number.POSITIVE_INFINITY;
  const createRow = () => new Array<number>(other.length + 1).fill(Number.POSITIVE_INFINITY);
  let beforeLast = createRow();
  let last = createRow().map((_, at) => (at <= band ? at : Number.POSITIVE_INFINITY));
  let row = createRow();
  let leastOfLast = 0;
  for (let i = 1; i <= one.length; i += 1) {
    const first = Math.max(1, Math.ceil(i - band));
    const end = Math.min(other.length, Math.floor(i + band));
    row[first - 1] = first === 1 && i <= band ? i : Number.POSITIVE_INFINITY;
    let least = row[first - 1] ?? 0;
    for (let j = first; j <= end; j += 1) {
      const isSame = one[i - 1] === other[j - 1];
      const isSwapped =
        i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const distance = Math.min(
        (last[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last[j - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (beforeLast[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
      row[j] = distance;
      least = Math.min(least, distance);
    }
    if (end < other.length) row[end + 1] = Number.POSITIVE_INFINITY;
    // A row depends on the two before it: once both exceed `most`, all later ones do.
    if (Math.min(least, leastOfLast) > most) return Number.POSITIVE_INFINITY;
    [beforeLast, last, row, leastOfLast] = [last, row, beforeLast, least];
  }
  const distance = last[other.length] ?? 0;
  return distance <= most ? distance : Number.POSITIVE_INFINITY;
}
