/** The call was not made, or its result is not passed on; the message is for the client's model and its user. */
export class CallStopped extends Error {
  override readonly name = 'CallStopped';
  /** What stopped it, as the audit log names it. */
  readonly by: string;

  constructor(by: string, message: string) {
    super(message);
    this.by = by;
  }
}
