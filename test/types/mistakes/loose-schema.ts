// tsc: Type 'string' is not assignable to type '"object"'.
import { defineTool } from 'postern/define';

const inputSchema = { type: 'object', properties: { sides: { type: 'integer' } } };
defineTool({
  name: 'roll',
  description: 'Rolls a die.',
  inputSchema,
  run: () => ({ content: [] }),
});
