/**
 * The part of AbortSignal that is needed to be notified of a cancellation; an AbortSignal satisfies it. Each listener is called
 * once.
 */
export interface CancelSignal {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

/**
 * AbortController and AbortSignal in one, for relayed calls. Node's own are event targets that cost some µs each, and survived
 * several garbage collections.
 */
export class Cancellation implements CancelSignal {
  aborted = false;
  /** Created on first use: many calls have no listener. */
  private listeners: (() => void)[] | undefined = undefined;

  addEventListener(_type: 'abort', listener: () => void): void {
    if (this.aborted) return;
    // There is nearly always just one listener, and an empty array allocates room for 16 on its first push.
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

/** Converts the signal for APIs that require an AbortSignal. */
export function toAbortSignal(signal: CancelSignal): AbortSignal {
  const controller = new AbortController();
  if (signal.aborted) controller.abort();
  else signal.addEventListener('abort', () => controller.abort());
  return controller.signal;
}

/** Rejects with the signal's reason once it is aborted. */
export const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });
