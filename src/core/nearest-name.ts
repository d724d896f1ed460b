// What somebody may have meant by a name that is not known.

/** Longer names are no typing mistakes, and comparing them costs the product of their lengths. */
const MAX_LENGTH = 64;

/**
 * The known name that is most like `name`; undefined when none is. Letter case and separators do not
 * count (`max_results` is `maxResults`), then a third of the characters may be wrong.
 */
export function findNearestName(name: string, knownNames: readonly string[]): string | undefined {
  if (name.length > MAX_LENGTH) return undefined;
  const wanted = normalize(name);
  let nearest: { readonly name: string; readonly distance: number } | undefined;
  for (const candidate of knownNames) {
    if (candidate.length > MAX_LENGTH) continue;
    const normalized = normalize(candidate);
    const distance = computeEditDistance(wanted, normalized);
    const allowed = Math.max(wanted.length, normalized.length) / 3;
    if (distance <= allowed && (nearest === undefined || distance < nearest.distance)) {
      nearest = { name: candidate, distance };
    }
  }
  return nearest?.name;
}

const normalize = (name: string) => name.toLowerCase().replace(/[_\-. ]/g, '');

/** Damerau–Levenshtein, restricted: letters added, left out, replaced, or two neighbours swapped. */
export function computeEditDistance(one: string, other: string): number {
  let rowBeforeLast: number[] = [];
  let lastRow = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const isSame = one[i - 1] === other[j - 1];
      const isSwapped =
        i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      row.push(
        Math.min(
          (lastRow[j] ?? 0) + 1,
          (row[j - 1] ?? 0) + 1,
          (lastRow[j - 1] ?? 0) + (isSame ? 0 : 1),
          isSwapped ? (rowBeforeLast[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    rowBeforeLast = lastRow;
    lastRow = row;
  }
  return lastRow[other.length] ?? 0;
}
