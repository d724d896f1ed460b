// Writes of lmdb that are under way in this process. Each has a thread that waits for this one to run its change: a process
// that exits before has Node.js wait for that thread, which waits for it, and never ends.
import { StoreUnavailable } from '../store.ts';

let underWay = 0;
let isEnding = false;

/** @throws StoreUnavailable once the process ends. */
export async function trackWrite<Result>(begin: () => Promise<Result>): Promise<Result> {
  if (isEnding) throw new StoreUnavailable('This process ends');
  underWay += 1;
  try {
    return await begin();
  } finally {
    underWay -= 1;
  }
}

export const hasWritesUnderWay = (): boolean => underWay > 0;

/** From now on none begins. */
export function refuseWrites(): void {
  isEnding = true;
}
