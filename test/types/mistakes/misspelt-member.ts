// tsc: 'descripton' does not exist in type 'ToolDefinition<ObjectSchema, undefined, undefined>'. Did you mean to write 'description'?
import { defineTool } from 'postern/define';

defineTool({
  name: 'roll',
  descripton: 'Rolls a die.',
  inputSchema: { type: 'object', additionalProperties: false },
  run: () => ({ content: [] }),
});
