// Calls wait here until the test lets them go on.
export interface Gate {
  /** Rejects once the call is cancelled. */
  wait(signal: AbortSignal): Promise<void>;
  /** How many wait. */
  count(): number;
  /** Lets all that wait go on. */
  open(): void;
}

export function createGate(): Gate {
  const waiting = new Set<() => void>();
  return {
    wait: (signal) =>
      new Promise((resolve, reject) => {
        waiting.add(resolve);
        signal.addEventListener('abort', () => {
          waiting.delete(resolve);
          reject(new Error('cancelled'));
        });
      }),
    count: () => waiting.size,
    open() {
      for (const goOn of waiting) goOn();
      waiting.clear();
    },
  };
}
