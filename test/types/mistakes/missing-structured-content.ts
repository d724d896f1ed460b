// tsc: is not assignable to type 'Promise<StructuredResult<
import { defineTool } from 'postern/define';

defineTool({
  name: 'roll',
  description: 'Rolls a die.',
  inputSchema: { type: 'object', additionalProperties: false },
  outputSchema: { type: 'object', properties: { number: { type: 'integer' } } },
  run: () => ({ content: [{ type: 'text', text: 'six' }] }),
});
