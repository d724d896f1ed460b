// Writes of lmdb that are under way in this process. Each has a thread that waits for this one to run its change: a process
// that exits before has Node.js wait for that thread, which waits for it, and never ends.

const pending = new Set<Promise<unknown>>();

export function trackWrite<Result>(write: Promise<Result>): Promise<Result> {
  const settled = write.then(forget, forget);
  pending.add(settled);
  return write;

  function forget(): void {
    pending.delete(settled);
  }
}

export const hasPendingWrites = (): boolean => pending.size > 0;

/** Resolves once there is none, those included that begin meanwhile. */
export async function settleWrites(): Promise<void> {
  while (hasPendingWrites()) await Promise.all(pending);
  // Its thread has told of its end, and may not have left lmdb yet.
  await new Promise((resolve) => setImmediate(resolve));
}
