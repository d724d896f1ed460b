// tsc: Type '"int"' is not assignable to type
import { defineTool } from 'postern/define';

defineTool({
  name: 'roll',
  description: 'Rolls a die.',
  inputSchema: {
    type: 'object',
    properties: { sides: { type: 'int' } },
    additionalProperties: false,
  },
  run: () => ({ content: [] }),
});
