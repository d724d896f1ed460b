/** Why the service cannot start: lines for the operator, no stack. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** The code by which Node and the system name an error, such as `EADDRINUSE`. */
export const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined;
