// §18.4: a process that writes as fast as it can, sense or none, must leave the gateway time for all else. What is not
// read from it waits in its pipe, and so does the process.
import type { Readable } from 'node:stream';
import type { Clock } from '../../../core/clock.ts';

export interface OutputPace {
  /** Called once a piece has been looked at. */
  notePiece(bytes: number): void;
  /** A line of it was no message: to find that out costs more than any message. */
  noteStray(): void;
}

/** A smaller piece is no flood. */
const LARGE_PIECE = 16_384;
const MAX_STRAYS = 1000;
const PAUSE_MS = 1000;

export function createOutputPace(output: Readable, clock: Clock): OutputPace {
  let strays = 0;
  let isPaused = false;

  function resume(): void {
    isPaused = false;
    output.resume();
  }

  function pauseUntil(after: (go: () => void) => void): void {
    if (isPaused) return;
    isPaused = true;
    output.pause();
    after(resume);
  }

  return {
    notePiece(bytes) {
      if (strays >= MAX_STRAYS) {
        strays = 0;
        pauseUntil((go) => void clock.after(PAUSE_MS, go));
      } else if (bytes >= LARGE_PIECE) {
        // Node.js would read on and on before it looks at anything else.
        pauseUntil((go) => void setImmediate(go));
      }
    },
    noteStray() {
      strays += 1;
    },
  };
}
