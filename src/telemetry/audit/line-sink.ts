// §21.1: where the lines go: appended to a file, or to standard output, where the log goes, too.
import { closeSync, constants, fstatSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import type { Clock } from '../../platform/clock.ts';
import { getErrorCode } from '../../platform/error-code.ts';
import { createLineOutput, type LineOutput, standardOutput } from '../../platform/line-output.ts';

export interface LineSink {
  /** Longer lines could be mixed with those of other processes. */
  getMaxLineBytes(): number;
  /**
   * In one piece, because several processes may write to the same place. Where somebody reads, lines may wait a while.
   *
   * @throws Error of the system, also where only a part of the line was written.
   */
  write(line: string): void;
  /**
   * Until the system has it.
   *
   * @throws Error as `write` does, at once or by the promise.
   */
  writeThrough(line: string): undefined | Promise<void>;
  close(): void;
}

/** A wrong AUDIT_LOG: one line for the operator, no stack. */
export class AuditLogError extends Error {
  override readonly name = 'AuditLogError';
}

/** What a pipe takes in one piece (PIPE_BUF). */
const MAX_PIPED_BYTES = 4096;
/** The system appends to a file in one piece, however long it is: this is for those who read. */
const MAX_APPENDED_BYTES = 32_768;

/** Lines that nobody read yet. The log may have a little more, so that it can say that lines are lost. */
const MAX_WAITING_BYTES = 1_048_576;

export const openStdoutSink = (): LineSink => createOutputSink(standardOutput, () => {});

const createOutputSink = (output: LineOutput, close: () => void): LineSink => ({
  getMaxLineBytes: () => MAX_PIPED_BYTES,
  write: (line) => output.write(line, MAX_WAITING_BYTES),
  writeThrough: (line) => output.writeThrough(line, MAX_WAITING_BYTES),
  close() {
    output.flush();
    close();
  },
});

/** How long lines may still go to a file that was renamed. */
const RENAMED_MS = 1000;

/**
 * Goes on in a new file once this one was renamed or removed (log rotation).
 *
 * @throws AuditLogError
 */
export function openPathSink(path: string, clock: Clock): LineSink {
  let open = openFirst(path, clock);
  let checkedAt = clock.monotonic();

  function followRename(): LineSink {
    const now = clock.monotonic();
    if (now - checkedAt < RENAMED_MS) return open.sink;
    if (!isAt(path, open.file)) {
      const next = openPath(path, clock);
      open.sink.close();
      open = next;
    }
    checkedAt = now;
    return open.sink;
  }

  return {
    getMaxLineBytes: () => open.sink.getMaxLineBytes(),
    write: (line) => followRename().write(line),
    writeThrough: (line) => followRename().writeThrough(line),
    close: () => open.sink.close(),
  };
}

interface OpenPath {
  readonly file: number;
  readonly sink: LineSink;
}

function openFirst(path: string, clock: Clock): OpenPath {
  try {
    return openPath(path, clock);
  } catch (error) {
    throw new AuditLogError(
      `AUDIT_LOG: ${path} cannot be opened for writing (${getErrorCode(error) ?? String(error)}). Its folder must exist, and this user must be allowed to read and write there.`,
    );
  }
}

const MODE = 0o640;

/** A file, or a pipe or a device that has a path. */
function openPath(path: string, clock: Clock): OpenPath {
  const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() !== false;
  const { O_WRONLY, O_APPEND, O_NONBLOCK } = constants;
  const file = isFile
    ? openSync(path, 'a+', MODE)
    : openSync(path, O_WRONLY | O_APPEND | O_NONBLOCK);
  const close = () => closeSync(file);
  if (!isFile) return { file, sink: createOutputSink(createLineOutput(file, clock), close) };
  const write = createAppendLine(file);
  const getMaxLineBytes = () => MAX_APPENDED_BYTES;
  return { file, sink: { getMaxLineBytes, write, writeThrough: write, close } };
}

function isAt(path: string, file: number): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  const open = fstatSync(file);
  return found !== undefined && found.ino === open.ino && found.dev === open.dev;
}

/**
 * A full disk leaves a part of a line at the end of the file, perhaps of another process. The next line, of whichever
 * process, begins on a line of its own. Nothing is written between the look at the end and the write: after a part of
 * a line there is no room for it.
 */
function createAppendLine(file: number): (line: string) => undefined {
  /** Of the file, after the last line of this process. */
  let end = 0;

  return function appendLine(line) {
    const { size } = fstatSync(file);
    const endsWithLine = size === 0 || size === end || readByte(file, size - 1) === NEWLINE;
    const bytes = Buffer.from(endsWithLine ? line : `\n${line}`);
    const written = writeSync(file, bytes);
    if (written === bytes.length) {
      end = size + written;
      return;
    }
    // The system says why at the next byte. If that has room, it ends what was begun.
    writeSync(file, '\n');
    throw new Error(`Only ${written} of ${bytes.length} bytes could be written`);
  };
}

const NEWLINE = 0x0a;

function readByte(file: number, position: number): number | undefined {
  const byte = new Uint8Array(1);
  return readSync(file, byte, 0, 1, position) === 1 ? byte[0] : undefined;
}
