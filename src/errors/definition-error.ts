/** A tool, prompt or resource is defined wrongly: its author's line to mend, no stack. */
export class DefinitionError extends Error {
  override readonly name = 'DefinitionError';
}
