// tsc: Type '"int"' is not assignable to type
import { defineTool } from 'postern/define';

defineTool({
  name: 'roll',
  description: 'Rolls a die.',
  inputSchema: { type: 'object', additionalProperties: false },
  outputSchema: { type: 'object', properties: { number: { type: 'int' } } },
  run: () => ({ structuredContent: { number: 6 } }),
});
