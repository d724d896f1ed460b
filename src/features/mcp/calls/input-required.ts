/** Ends a run in the stateless era: it starts again when the client has answered (MCP, MRTR). */
export class InputRequired extends Error {
  override readonly name = 'InputRequired';

  constructor() {
    super('The client is asked; the call starts again with its answers');
  }
}
