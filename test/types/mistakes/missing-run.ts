// tsc: Property 'run' is missing in type
import { defineTool } from 'postern/define';

defineTool({
  name: 'roll',
  description: 'Rolls a die.',
  inputSchema: { type: 'object', additionalProperties: false },
});
