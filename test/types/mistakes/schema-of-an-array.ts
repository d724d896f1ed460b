// tsc: Type '"array"' is not assignable to type '"object"'.
import { defineTool } from 'postern/define';

defineTool({
  name: 'roll',
  description: 'Rolls a die.',
  inputSchema: { type: 'array' },
  run: () => ({ content: [] }),
});
