// tsc: Type 'string' is not assignable to type 'number'.
import { defineTool } from 'postern/define';

defineTool({
  name: 'roll',
  description: 'Rolls a die.',
  inputSchema: { type: 'object', additionalProperties: false },
  outputSchema: {
    type: 'object',
    properties: { number: { type: 'integer' } },
    required: ['number'],
  },
  run: () => ({ structuredContent: { number: 'six' } }),
});
