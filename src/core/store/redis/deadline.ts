// Decisions 9: an operation of the store answers or fails within a quarter of a second.

export const DEADLINE_MS = 250;

/**
 * The result, or a rejection after `ms`. One more turn of the event loop is granted at the end:
 * after a stall of this process the answer may lie in the socket, unread, and Redis was not slow.
 */
export function withDeadline<Result>(
  ms: number,
  work: Promise<Result>,
  onTimeout: () => Error,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(() => reject(onTimeout())), ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
