// tsc: Property 'side' does not exist on type '{ sides?: number; }'.
import { defineTool } from 'postern/define';

defineTool({
  name: 'roll',
  description: 'Rolls a die.',
  inputSchema: {
    type: 'object',
    properties: { sides: { type: 'integer' } },
    additionalProperties: false,
  },
  run: ({ side }) => ({ content: [{ type: 'text', text: String(side) }] }),
});
