// §21.1: where the lines go: appended to a file, or to standard output, where the log goes, too.
import { closeSync, fstatSync, openSync, statSync, writeSync } from 'node:fs';
import type { Clock } from '../clock.ts';
import { getErrorCode } from '../errors/error-code.ts';

export interface LineSink {
  /**
   * In one piece, because several processes may write to the same place.
   *
   * @throws Error of the system, also where only a part of the line was written.
   */
  write(line: string): void;
  close(): void;
}

/** A wrong AUDIT_LOG: one line for the operator, no stack. */
export class AuditLogError extends Error {
  override readonly name = 'AuditLogError';
}

const STDOUT = 1;
/** How long lines may still go to a file that was renamed. */
const RENAMED_MS = 1000;
const MODE = 0o640;

export function openStdoutSink(): LineSink {
  const writeLine = createWriteLine();
  return { write: (line) => writeLine(STDOUT, line), close() {} };
}

/**
 * Goes on in a new file once this one was renamed or removed (log rotation).
 *
 * @throws AuditLogError
 */
export function openFileSink(path: string, clock: Clock): LineSink {
  let file = openFirst(path);
  let checkedAt = clock.monotonic();
  const writeLine = createWriteLine();

  function followRename(): void {
    const now = clock.monotonic();
    if (now - checkedAt < RENAMED_MS) return;
    if (!isAt(path, file)) {
      const next = openSync(path, 'a', MODE);
      closeSync(file);
      file = next;
    }
    checkedAt = now;
  }

  return {
    write(line) {
      followRename();
      writeLine(file, line);
    },
    close: () => closeSync(file),
  };
}

function openFirst(path: string): number {
  try {
    return openSync(path, 'a', MODE);
  } catch (error) {
    throw new AuditLogError(
      `AUDIT_LOG: ${path} cannot be opened for writing (${getErrorCode(error) ?? String(error)}). Its folder must exist, and this user must be allowed to write there.`,
    );
  }
}

function isAt(path: string, file: number): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  const open = fstatSync(file);
  return found !== undefined && found.ino === open.ino && found.dev === open.dev;
}

/** After a part of a line, which a full disk leaves, the next begins on a line of its own. */
function createWriteLine(): (file: number, line: string) => void {
  let isTorn = false;

  return function writeLine(file, line) {
    const bytes = Buffer.from(isTorn ? `\n${line}` : line);
    let written = 0;
    try {
      while (written < bytes.length) written += writeSome(file, bytes.subarray(written));
    } finally {
      if (written > 0) isTorn = bytes[written - 1] !== NEWLINE;
    }
  };
}

const NEWLINE = 0x0a;
/** How often, and how long each time, a pipe is waited for whose reader is slow. */
const TRIES = 100;
const WAIT_MS = 10;
const sleeper = new Int32Array(new SharedArrayBuffer(4));

function writeSome(file: number, bytes: Uint8Array): number {
  for (let tries = 1; ; tries += 1) {
    try {
      return writeSync(file, bytes);
    } catch (error) {
      if (getErrorCode(error) !== 'EAGAIN' || tries === TRIES) throw error;
      Atomics.wait(sleeper, 0, 0, WAIT_MS);
    }
  }
}
