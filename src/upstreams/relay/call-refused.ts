/** Ends a call that cannot be passed on; `message` is for the client's model. */
export class CallRefusedError extends Error {
  override readonly name = 'CallRefusedError';
}
