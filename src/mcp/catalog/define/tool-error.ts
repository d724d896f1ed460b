/** By a symbol that all copies of this package share: a catalogue may have brought one of its own. */
const MARK = Symbol.for('postern.ToolError');

/** Characters of what a model is told. */
const MAX_WORDS = 10_000;

/**
 * Thrown by a tool for its model to read: the message becomes the text of a result with `isError`, as it is, up to 10,000
 * characters. Put no secrets into it.
 */
export class ToolError extends Error {
  override readonly name = 'ToolError';
  readonly [MARK] = true;
}

export const isToolError = (thrown: unknown): thrown is Error =>
  thrown instanceof Error && MARK in thrown;

export const readWords = ({ message }: Error): string => String(message).slice(0, MAX_WORDS);
