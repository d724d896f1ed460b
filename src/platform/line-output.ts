// Lines to a pipe, a socket or a terminal. A reader that does not keep up must not stop the gateway: lines wait here,
// as many as there is room for, and what comes then is refused.
import { writeSync } from 'node:fs';
import { type Clock, systemClock } from './clock.ts';
import { getErrorCode } from './error-code.ts';

export interface LineOutput {
  /**
   * Returns at once. Lines wait while the reader does not keep up, `maxWaitingBytes` of them at most.
   *
   * @throws Error when no more may wait, or what the system says.
   */
  write(line: string, maxWaitingBytes: number): void;
  /**
   * Until the system has the line: mostly at once, else for a second at most.
   *
   * @throws Error as `write` does, at once or by the promise.
   */
  writeThrough(line: string, maxWaitingBytes: number): undefined | Promise<void>;
  /** For the end of the process: waits for the reader, a second at most, and does nothing else meanwhile. */
  flush(): void;
}

interface WaitingLine {
  bytes: Uint8Array;
  /** A part of it is written: the rest has to follow. */
  hasBegun: boolean;
  readonly settle?: (error?: unknown) => void;
}

const RETRY_MS = 20;
const MAX_WAIT_MS = 1000;

/** `fd` is one that does not block; where it does, nothing ever waits here. */
export function createLineOutput(fd: number, clock: Clock): LineOutput {
  let waiting: WaitingLine[] = [];
  let waitingBytes = 0;

  /** How many bytes the system took: none while its own buffer is full. */
  function tryWrite(bytes: Uint8Array): number {
    try {
      return writeSync(fd, bytes);
    } catch (error) {
      if (getErrorCode(error) === 'EAGAIN') return 0;
      throw error;
    }
  }

  /** Undefined where the system took the whole line. */
  function writeOrWait(
    line: string,
    maxWaitingBytes: number,
    settle?: WaitingLine['settle'],
  ): WaitingLine | undefined {
    const bytes = Buffer.from(line);
    const taken = waiting.length === 0 ? tryWrite(bytes) : 0;
    if (taken === bytes.length) return undefined;
    // The rest of a line that has begun is never refused.
    if (taken === 0 && waitingBytes + bytes.length > maxWaitingBytes) {
      throw new Error(`Nobody reads what was written: ${waitingBytes} bytes wait`);
    }
    const rest = { bytes: bytes.subarray(taken), hasBegun: taken > 0, ...(settle && { settle }) };
    if (waiting.length === 0) retryLater();
    waiting.push(rest);
    waitingBytes += rest.bytes.length;
    return rest;
  }

  function retryLater(): void {
    clock.after(RETRY_MS, () => {
      writeWaiting();
      if (waiting.length > 0) retryLater();
    });
  }

  function writeWaiting(): void {
    try {
      for (let first = waiting[0]; first !== undefined; first = waiting[0]) {
        const taken = tryWrite(first.bytes);
        waitingBytes -= taken;
        if (taken < first.bytes.length) {
          first.bytes = first.bytes.subarray(taken);
          first.hasBegun ||= taken > 0;
          return;
        }
        waiting.shift();
        first.settle?.();
      }
    } catch (error) {
      // Nobody will read it any more.
      const lost = waiting;
      waiting = [];
      waitingBytes = 0;
      for (const { settle } of lost) settle?.(error);
    }
  }

  /** So that it does not turn up after its caller was told that it was not written. */
  function giveUp(line: WaitingLine): void {
    if (!line.hasBegun && waiting.includes(line)) {
      waiting = waiting.filter((other) => other !== line);
      waitingBytes -= line.bytes.length;
    }
    line.settle?.(new Error('Nobody reads what was written'));
  }

  return {
    write(line, maxWaitingBytes) {
      writeOrWait(line, maxWaitingBytes);
    },
    writeThrough(line, maxWaitingBytes) {
      let settle: WaitingLine['settle'];
      const written = new Promise<void>((resolve, reject) => {
        settle = (error) => (error === undefined ? resolve() : reject(error));
      });
      const rest = writeOrWait(line, maxWaitingBytes, settle);
      if (rest === undefined) return undefined;
      const stop = clock.after(MAX_WAIT_MS, () => giveUp(rest));
      return written.finally(stop);
    },
    flush() {
      for (let waited = 0; waiting.length > 0 && waited < MAX_WAIT_MS; waited += RETRY_MS) {
        writeWaiting();
        if (waiting.length > 0) Atomics.wait(SLEEPER, 0, 0, RETRY_MS);
      }
    },
  };
}

const SLEEPER = new Int32Array(new SharedArrayBuffer(4));

/** Of the process: the log, and an audit log beside it. */
export const standardOutput = createLineOutput(1, systemClock);
