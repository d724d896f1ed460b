// Chance that is the same for the same seed.

/** From 0 to below 1. */
export type Random = () => number;

export const below = (random: Random, limit: number): number => Math.floor(random() * limit);

export function pick<Item>(random: Random, items: readonly Item[]): Item {
  const item = items[below(random, items.length)];
  if (item === undefined) throw new Error('There is nothing to choose from.');
  return item;
}

/** mulberry32, begun anew for each index. */
export function randomOf(seed: number, index: number): Random {
  let state = (Math.imul(seed, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b)) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
