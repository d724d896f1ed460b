// tsc: Type 'string' is not assignable to type 'ContentResult | Promise<ContentResult>'.
import { defineTool } from 'postern/define';

defineTool({
  name: 'roll',
  description: 'Rolls a die.',
  inputSchema: { type: 'object', additionalProperties: false },
  run: () => 'six',
});
