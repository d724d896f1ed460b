/**
 * Thrown by a tool for what its caller's model should read and can act on: the message is the text of a result with
 * `isError`. Of everything else that a tool throws, callers get a reference only, and the log gets the message.
 */
export class ToolError extends Error {
  override readonly name = 'ToolError';
}

/** By its name: a catalogue may have imported this class from another copy of the package. */
export const isToolError = (thrown: unknown): thrown is Error =>
  thrown instanceof Error && thrown.name === 'ToolError';
