/** Why a command did not do what it is for: a heading, and lines below it; no stack. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly heading: string;
  readonly lines: readonly string[];

  /** `heading` ends with a colon. */
  constructor(heading: string, lines: readonly string[]) {
    super([heading, ...lines].join('\n'));
    this.heading = heading;
    this.lines = lines;
  }
}
