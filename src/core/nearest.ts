// What somebody may have meant by a name that is not known.

/** Longer names are no typing mistakes, and comparing them costs the product of their lengths. */
const LONGEST = 64;

/**
 * The known name that is most like `name`; undefined when none is. Letter case and separators do not
 * count (`max_results` is `maxResults`), then a third of the characters may be wrong.
 */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > LONGEST) return undefined;
  const given = plain(name);
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    if (candidate.length > LONGEST) continue;
    const other = plain(candidate);
    const distance = editDistance(given, other);
    const allowed = Math.max(given.length, other.length) / 3;
    if (distance <= allowed && (best === undefined || distance < best.distance)) {
      best = { name: candidate, distance };
    }
  }
  return best?.name;
}

const plain = (name: string) => name.toLowerCase().replace(/[_\-. ]/g, '');

/** Damerau–Levenshtein, restricted: letters added, left out, replaced, or two neighbours swapped. */
export function editDistance(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const same = one[i - 1] === other[j - 1];
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      row.push(
        Math.min(
          (last[j] ?? 0) + 1,
          (row[j - 1] ?? 0) + 1,
          (last[j - 1] ?? 0) + (same ? 0 : 1),
          swapped ? (beforeLast[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    beforeLast = last;
    last = row;
  }
  return last[other.length] ?? 0;
}
