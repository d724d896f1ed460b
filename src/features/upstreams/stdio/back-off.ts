/** §18.4: milliseconds until a process is started again. */
export interface BackOff {
  /** Whether the last start failed. */
  readonly hasFailed: boolean;
  /** The time to wait after one more failure. */
  next(): number;
  reset(): void;
}

const FIRST_MS = 1000;
const LONGEST_MS = 30_000;

export function createBackOff(): BackOff {
  let delay = FIRST_MS;
  let hasFailed = false;
  return {
    get hasFailed() {
      return hasFailed;
    },
    next() {
      const next = delay;
      hasFailed = true;
      delay = Math.min(2 * delay, LONGEST_MS);
      return next;
    },
    reset() {
      delay = FIRST_MS;
      hasFailed = false;
    },
  };
}
