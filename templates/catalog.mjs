import { createLocalCatalog, defineTool } from 'postern/define';

const rollDice = defineTool({
  name: 'roll_dice',
  description: 'Rolls a die, with 6 sides unless told otherwise.',
  inputSchema: {
    type: 'object',
    properties: { sides: { type: 'integer', minimum: 2, description: 'How many sides it has.' } },
    additionalProperties: false,
  },
  run({ sides = 6 }, { user }) {
    const number = 1 + Math.floor(Math.random() * sides);
    return { content: [{ type: 'text', text: `${user?.name ?? 'Somebody'} rolled ${number}` }] };
  },
});

export default createLocalCatalog({ tools: [rollDice] });
