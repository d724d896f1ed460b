/**
 * What of an AbortSignal it takes to hear that nobody waits any more: an AbortSignal is one, too. Each listener is
 * called once.
 */
export interface CancelSignal {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export interface Cancellation {
  readonly signal: CancelSignal;
  abort(): void;
}

/**
 * As an AbortController, for what every relayed call has: those with their event targets cost some µs each, and
 * outlived several garbage collections.
 */
export function createCancellation(): Cancellation {
  /** Made on first use: who listens at the end of the line may be nobody. */
  let listeners: Set<() => void> | undefined;
  // No accessor: each object that has one of its own costs as much as all else here.
  const signal = {
    aborted: false,
    addEventListener(_type: 'abort', listener: () => void) {
      if (signal.aborted) return;
      listeners ??= new Set();
      listeners.add(listener);
    },
    removeEventListener: (_type: 'abort', listener: () => void) => void listeners?.delete(listener),
  };
  return {
    signal,
    abort() {
      signal.aborted = true;
      for (const listener of listeners ?? []) {
        listeners?.delete(listener);
        listener();
      }
    },
  };
}

/** The same for whom only an AbortSignal will do. */
export function toAbortSignal(signal: CancelSignal): AbortSignal {
  const controller = new AbortController();
  if (signal.aborted) controller.abort();
  else signal.addEventListener('abort', () => controller.abort());
  return controller.signal;
}
