// §18.2: which entries of a list come first where a page does not hold all: those of each server in turn.
import type { Entry } from './entry.ts';

export interface ServerTurns {
  /** Positions in the list, in the order in which pages take them. */
  readonly positions: readonly number[];
  /** By position in the list: when it is taken. */
  readonly places: readonly number[];
}

/**
 * The first entry of each server in the order of the list, then the second of each, and so on: however much one lists,
 * the others' are on the first pages. Of one list it is always the same, on every replica.
 */
export function createOrderByTurns(): (entries: readonly Entry[]) => ServerTurns {
  const known = new WeakMap<readonly Entry[], ServerTurns>();

  return function orderByTurns(entries) {
    const turns = known.get(entries) ?? takeTurns(entries);
    known.set(entries, turns);
    return turns;
  };
}

function takeTurns(entries: readonly Entry[]): ServerTurns {
  const rounds: number[][] = [];
  const counts = new Map<string, number>();
  for (const [position, { server }] of entries.entries()) {
    const round = counts.get(server) ?? 0;
    counts.set(server, round + 1);
    const taken = rounds[round];
    if (taken === undefined) rounds.push([position]);
    else taken.push(position);
  }
  const positions = rounds.flat();
  const places: number[] = [];
  for (const [place, position] of positions.entries()) places[position] = place;
  return { positions, places };
}
