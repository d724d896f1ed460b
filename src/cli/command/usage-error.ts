/** A command line that cannot be understood: a sentence for the user. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  /** Whose help says more; undefined where the command is not known. */
  readonly command: string | undefined;

  constructor(message: string, command?: string) {
    super(message);
    this.command = command;
  }
}
