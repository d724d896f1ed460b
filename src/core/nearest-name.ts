// What somebody may have meant by a name that is not known.
import { computeEditDistance } from './edit-distance.ts';

/** Longer names are no typing mistakes, and comparing them costs the product of their lengths. */
const MAX_LENGTH = 64;
/** Nobody mistypes more; and each costs time with every name of a long list. */
const MAX_MISTAKES = 5;

/**
 * The known name that is most like `name`; undefined when none is. Letter case and separators do not
 * count (`max_results` is `maxResults`), then a third of the characters may be wrong, five at most.
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

/** How many characters have to change; Infinity where the two are not alike, or no nearer than `least`. */
export type JudgeLikeness = (candidate: string, least: number) => number;

/** Undefined for a name that nothing is like. */
export function createJudgeLikeness(name: string): JudgeLikeness | undefined {
  if (name.length > MAX_LENGTH) return undefined;
  const wanted = normalize(name);
  const countShared = createCountShared(wanted);
  return function judgeLikeness(candidate, least) {
    if (candidate.length > MAX_LENGTH) return Number.POSITIVE_INFINITY;
    const normalized = normalize(candidate);
    const allowed = Math.min(Math.max(wanted.length, normalized.length) / 3, MAX_MISTAKES);
    const most = Math.min(allowed, least);
    // What they have in common, in whatever order, says so of nearly all names of a long list.
    const atLeast = Math.max(wanted.length, normalized.length) - countShared(normalized);
    return atLeast > most
      ? Number.POSITIVE_INFINITY
      : computeEditDistance(wanted, normalized, most);
  };
}

const normalize = (name: string) => name.toLowerCase().replace(/[_\-. ]/g, '');

/** Letters that share a place are taken for the same one: then it is no more than a guess that is too high. */
const PLACES = 256;

/** How many letters of a text are in `wanted`, too, or more. */
function createCountShared(wanted: string): (text: string) => number {
  const counts = new Uint8Array(PLACES);
  for (let index = 0; index < wanted.length; index += 1) {
    const place = wanted.charCodeAt(index) % PLACES;
    counts[place] = (counts[place] ?? 0) + 1;
  }
  const left = new Uint8Array(PLACES);

  return function countShared(text) {
    left.set(counts);
    let shared = 0;
    for (let index = 0; index < text.length; index += 1) {
      const place = text.charCodeAt(index) % PLACES;
      const count = left[place] ?? 0;
      if (count === 0) continue;
      left[place] = count - 1;
      shared += 1;
    }
    return shared;
  };
}
