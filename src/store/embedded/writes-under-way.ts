// Writes of lmdb that are under way in this process. Each has a thread that waits for this one to run its change: a process
// that exits before has Node.js wait for that thread, which waits for it, and never ends.

let underWay = 0;
let isEnding = false;

/** Once the process ends, none begins: its caller hears nothing, as of one that the end cuts off. */
export async function trackWrite<Result>(begin: () => Promise<Result>): Promise<Result> {
  if (isEnding) return new Promise(() => {});
  underWay += 1;
  try {
    return await begin();
  } finally {
    underWay -= 1;
  }
}

export const hasWritesUnderWay = (): boolean => underWay > 0;

/** From now on none begins. */
export function holdWritesBack(): void {
  isEnding = true;
}
