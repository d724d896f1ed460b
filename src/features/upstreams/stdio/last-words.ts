/** The last lines that a process wrote to its error output: they often say why it ended. */
export interface LastWords {
  /** Keeps a copy. */
  add(line: Buffer): void;
  list(): readonly Buffer[];
}

const MAX_LINES = 10;

export function createLastWords(): LastWords {
  const lines: Buffer[] = [];
  return {
    add(line) {
      if (line.length === 0) return;
      lines.push(Buffer.from(line));
      if (lines.length > MAX_LINES) lines.shift();
    },
    list: () => lines,
  };
}
