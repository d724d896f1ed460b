/** The code by which Node or the system names an error, such as `ENOENT`. */
export const getErrorCode = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;

/** For a message: its code where it has one, else all that it says. */
export const describeCode = (error: unknown): string => getErrorCode(error) ?? String(error);

/** The message; where no error was thrown, what was thrown, as text. */
export const getMessage = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);

/** True if it is this machine that lacks files, ports or memory: that says nothing about the other side. */
export const isShortage = (code: string): boolean => SHORTAGES.has(code);

/** True if nobody else gets a connection there, either. */
export const isNobodyThere = (code: string): boolean => NOBODY_THERE.has(code);

const NOBODY_THERE = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH']);
const SHORTAGES = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM']);
