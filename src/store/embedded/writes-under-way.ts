// Tracks in-flight lmdb writes of this process. The thread of each write waits for the main thread to run the change: on exit,
// Node.js would wait for that thread, and the process would hang.

let underWay = 0;
let isEnding = false;

/**
 * Once the process is exiting, new writes are not started; their promises never settle, like those of writes that the exit
 * interrupts.
 */
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

/** From now on, no write begins. */
export function holdWritesBack(): void {
  isEnding = true;
}
