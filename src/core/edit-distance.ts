// Damerau–Levenshtein, restricted: letters added, left out, replaced, or two neighbours swapped.

/** Infinity where it is more than `most`: that is found out long before all letters are compared. */
export function computeEditDistance(
  one: string,
  other: string,
  most: number = Number.POSITIVE_INFINITY,
): number {
  const start = countSame(one, other, (text, index) => text.charCodeAt(index));
  const [left, right] = [one.slice(start), other.slice(start)];
  const end = countSame(left, right, (text, index) => text.charCodeAt(text.length - 1 - index));
  return compareRows(left.slice(0, left.length - end), right.slice(0, right.length - end), most);
}

function countSame(
  one: string,
  other: string,
  getUnit: (text: string, index: number) => number,
): number {
  const length = Math.min(one.length, other.length);
  let count = 0;
  while (count < length && getUnit(one, count) === getUnit(other, count)) count += 1;
  return count;
}

function compareRows(one: string, other: string, most: number): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, at) => at);
  let leastOfLast = 0;
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    let least = i;
    for (let j = 1; j <= other.length; j += 1) {
      const isSame = one[i - 1] === other[j - 1];
      const isSwapped =
        i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const distance = Math.min(
        (last[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last[j - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (beforeLast[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
      row.push(distance);
      least = Math.min(least, distance);
    }
    // A row builds on the two before it: once both are beyond, all are.
    if (Math.min(least, leastOfLast) > most) return Number.POSITIVE_INFINITY;
    [beforeLast, last, leastOfLast] = [last, row, least];
  }
  const distance = last[other.length] ?? 0;
  return distance <= most ? distance : Number.POSITIVE_INFINITY;
}
