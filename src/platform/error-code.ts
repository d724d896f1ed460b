/** The error code of Node.js or the system, such as `ENOENT`. */
export const getErrorCode = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;

/** The error code, or the message if there is none. */
export const describeCode = (error: unknown): string => getErrorCode(error) ?? String(error);

/** The message of an Error; any other thrown value as text. */
export const getMessage = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message : String(thrown);

/** True if this machine has run out of file descriptors, ports or memory, which says nothing about the other side. */
export const isShortage = (code: string): boolean => SHORTAGES.has(code);

/** True if every other caller would fail to connect as well. */
export const isNobodyThere = (code: string): boolean => NOBODY_THERE.has(code);

const NOBODY_THERE = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH']);
const SHORTAGES = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS', 'ENOMEM']);
