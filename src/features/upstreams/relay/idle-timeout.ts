// §18.3: `timeout` of a server counts time without progress, and stands still while the client is asked.
import type { Clock } from '../../../core/clock.ts';

export interface IdleTimeout {
  /** There was progress: the whole time is left again. */
  restart(): void;
  /** Stands still until `resume` was called as often. */
  pause(): void;
  resume(): void;
  /** For good. */
  end(): void;
}

export function startIdleTimeout(clock: Clock, timeoutMs: number, onIdle: () => void): IdleTimeout {
  let leftMs = timeoutMs;
  let since = clock.monotonic();
  let pauses = 0;
  let isOver = false;
  let cancel = clock.after(leftMs, check);

  // Progress can come a thousand times a second: it moves no timer, the timer looks when it came.
  function check(): void {
    const stillMs = leftMs - (clock.monotonic() - since);
    if (stillMs > 0) cancel = clock.after(Math.ceil(stillMs), check);
    else onIdle();
  }

  return {
    restart() {
      leftMs = timeoutMs;
      since = clock.monotonic();
    },
    pause() {
      pauses += 1;
      if (pauses > 1) return;
      cancel();
      leftMs -= clock.monotonic() - since;
    },
    resume() {
      pauses -= 1;
      if (pauses > 0 || isOver) return;
      since = clock.monotonic();
      check();
    },
    end() {
      isOver = true;
      cancel();
    },
  };
}
