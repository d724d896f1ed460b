/** Calls that wait until they are cancelled, and how many there were. */
export interface Waits {
  wait(signal: AbortSignal): Promise<void>;
  count(): { readonly started: number; readonly cancelled: number };
}

export function createWaits(): Waits {
  let started = 0;
  let cancelled = 0;
  return {
    wait(signal) {
      started += 1;
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          cancelled += 1;
          reject(new Error('cancelled'));
        });
      });
    },
    count: () => ({ started, cancelled }),
  };
}
