import { defineTool, elicit } from 'postern/define';

export const deleteVolume = defineTool({
  name: 'delete_volume',
  description: 'Deletes a volume, after the user has typed its name.',
  annotations: { destructiveHint: true, idempotentHint: true },
  inputSchema: {
    type: 'object',
    properties: { volume: { type: 'string' } },
    required: ['volume'],
    additionalProperties: false,
  },
  async run({ volume }, { ask, client }) {
    if (!client.elicitation) {
      const text = 'Your client cannot ask you. Delete the volume in the console.';
      return { content: [{ type: 'text', text }], isError: true };
    }

    const { sure } = await ask({
      sure: elicit(`Delete ${volume} for good?`, {
        type: 'object',
        properties: { name: { type: 'string', title: 'Type the name of the volume' } },
        required: ['name'],
      }),
    });

    if (sure.action !== 'accept') {
      return { content: [{ type: 'text', text: `Kept ${volume}.` }] };
    }
    if (sure.content.name !== volume) {
      return { content: [{ type: 'text', text: `Kept ${volume}: you typed a different name.` }] };
    }
    // After the question: in the stateless era everything above runs twice.
    return { content: [{ type: 'text', text: `Deleted ${volume}.` }] };
  },
});
