// tsc: not assignable to type '"To return structuredContent, give the tool an outputSchema"'
import { defineTool } from 'postern/define';

defineTool({
  name: 'roll',
  description: 'Rolls a die.',
  inputSchema: { type: 'object', additionalProperties: false },
  async run() {
    return { content: [], structuredContent: { number: 6 } };
  },
});
