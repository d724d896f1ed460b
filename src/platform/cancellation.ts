/**
 * The part of an AbortSignal that it takes to hear that nobody waits any more: an AbortSignal is one, too. Each listener is
 * called once.
 */
export interface CancelSignal {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * As an AbortController and its signal, for what every relayed call has: those with their event targets cost some µs each,
 * and outlived several garbage collections.
 */
export class Cancellation implements CancelSignal {
  aborted = false;
  /** Made on first use: who listens at the end of the line may be nobody. */
  private listeners: (() => void)[] | undefined;

  addEventListener(_type: 'abort', listener: () => void): void {
    if (this.aborted) return;
    // There is nearly always one: an empty array makes room for 16 when it gets its first.
    if (this.listeners === undefined) this.listeners = [listener];
    else if (!this.listeners.includes(listener)) this.listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.listeners?.indexOf(listener) ?? -1;
    if (at !== -1) this.listeners?.splice(at, 1);
  }

  abort(): void {
    this.aborted = true;
    while (this.listeners !== undefined && this.listeners.length > 0) this.listeners.shift()?.();
  }
}

/** The same for whom only an AbortSignal will do. */
export function toAbortSignal(signal: CancelSignal): AbortSignal {
  const controller = new AbortController();
  if (signal.aborted) controller.abort();
  else signal.addEventListener('abort', () => controller.abort());
  return controller.signal;
}

/** The reason of the signal, once it is aborted. */
export const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });
