// tsc: Type '"interger"' is not assignable to type 'readonly TypeName[] | TypeName | undefined'. Did you mean '"integer"'?
import { defineTool } from 'postern/define';

defineTool({
  name: 'roll',
  description: 'Rolls a die.',
  inputSchema: {
    type: 'object',
    properties: { dice: { type: 'array', items: { type: 'interger' } } },
  },
  run: ({ dice = [] }) => ({ content: [{ type: 'text', text: String(dice.length) }] }),
});
