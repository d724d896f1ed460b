// Commands that people paste into a terminal. Used in browsers as well, so it imports nothing of Node.js.

/** As one word of a shell, in which nothing is expanded and nothing run. */
export const quoteForShell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Without quotes where it needs none. */
export const toShellWord = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) ? text : quoteForShell(text);
