import { defineTool, sample } from 'postern/define';

const LOG = 'checkout: 512 timeouts of payments since 10:04';

export const summarizeLog = defineTool({
  name: 'summarize_log',
  description: "Has the client's own model sum up the log.",
  inputSchema: { type: 'object', additionalProperties: false },
  async run(_args, { ask, client }) {
    // Clients that cannot do this get the log itself.
    if (!client.sampling) return { content: [{ type: 'text', text: LOG }] };

    const { summary } = await ask({
      summary: sample({
        messages: [{ role: 'user', content: { type: 'text', text: `Sum up:\n${LOG}` } }],
        systemPrompt: 'Be brief.',
        maxTokens: 200,
      }),
    });
    return { content: [{ type: 'text', text: textIn(summary.content) }] };
  },
});

/** What a model answers comes from outside: one block, or several, of any kind. */
const textIn = (content: unknown): string =>
  [content]
    .flat()
    .map((block) => (hasText(block) ? block.text : ''))
    .join('');

const hasText = (block: unknown): block is { readonly text: string } =>
  typeof block === 'object' && block !== null && 'text' in block && typeof block.text === 'string';
