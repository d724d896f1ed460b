// What is kept open for as long as somebody listens: tried again after a pause that grows.
import type { Clock } from '../../../core/clock.ts';

export interface RetryLoop {
  /** Ends the attempt under way and begins another one at once. */
  restart(): void;
  /** As `restart`, but what stands ends only when the other one stands. */
  replace(): void;
  stop(): void;
}

/**
 * One attempt, until its signal is aborted; calls `onOpen` when it stands. It resolves to whether another one makes
 * sense before something has changed; what it throws is a reason to try again.
 */
export type Attempt = (signal: AbortSignal, onOpen: () => void) => Promise<'again' | 'never'>;

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;

export function startRetryLoop(clock: Clock, attempt: Attempt): RetryLoop {
  let current = start(() => {});

  /** Attempts one after the other, until the result is called. */
  function start(onFirstOpen: () => void): () => void {
    let release = onFirstOpen;
    const controller = new AbortController();
    const { signal } = controller;
    let pauseMs = FIRST_PAUSE_MS;
    let cancelPause = () => {};

    /** What stood before is not needed any more. */
    function noteOpen(): void {
      release();
      release = () => {};
    }

    async function run(): Promise<void> {
      if (signal.aborted) return;
      const startedAt = clock.monotonic();
      const next = await attempt(signal, noteOpen).catch(() => 'again' as const);
      if (signal.aborted) return;
      if (next === 'never') {
        noteOpen();
        return;
      }
      // What stood for a while is no server that refuses.
      if (clock.monotonic() - startedAt >= LONGEST_PAUSE_MS) pauseMs = FIRST_PAUSE_MS;
      cancelPause = clock.after(pauseMs, () => void run());
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    }

    queueMicrotask(() => void run());
    return () => {
      noteOpen();
      cancelPause();
      controller.abort();
    };
  }

  return {
    restart() {
      current();
      current = start(() => {});
    },
    replace() {
      current = start(current);
    },
    stop: () => current(),
  };
}
