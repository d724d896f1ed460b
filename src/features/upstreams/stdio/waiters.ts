import type { CancelSignal } from '../../../core/cancellation.ts';
import type { Clock } from '../../../core/clock.ts';
import type { UpstreamError } from '../upstream.ts';
import { createAbortedError } from './calls.ts';

/** Those that wait for the same thing, each for a time of its own. */
export interface Waiters<Value> {
  readonly count: number;
  /** @throws UpstreamError what `createError` makes when the time is over; `aborted` by the signal. */
  wait(ms: number, createError: () => UpstreamError, signal?: CancelSignal): Promise<Value>;
  resolve(value: Value): void;
  reject(error: UpstreamError): void;
}

interface Waiter<Value> {
  resolve(value: Value): void;
  reject(error: UpstreamError): void;
}

export function createWaiters<Value>(clock: Clock): Waiters<Value> {
  const waiting = new Set<Waiter<Value>>();

  return {
    get count() {
      return waiting.size;
    },
    wait: (ms, createError, signal) =>
      new Promise((resolve, reject) => {
        const onAbort = () => waiter.reject(createAbortedError());
        const cancel = clock.after(ms, () => waiter.reject(createError()));
        function end(): void {
          cancel();
          signal?.removeEventListener('abort', onAbort);
          waiting.delete(waiter);
        }
        const waiter: Waiter<Value> = {
          resolve(value) {
            end();
            resolve(value);
          },
          reject(error) {
            end();
            reject(error);
          },
        };
        signal?.addEventListener('abort', onAbort);
        waiting.add(waiter);
      }),
    resolve(value) {
      for (const waiter of [...waiting]) waiter.resolve(value);
    },
    reject(error) {
      for (const waiter of [...waiting]) waiter.reject(error);
    },
  };
}
