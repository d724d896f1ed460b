// For --catalog: a tool that takes as long as it is told to.
import { setTimeout as pause } from 'node:timers/promises';
import { createLocalCatalog, defineTool } from '../../../dist/index.js';

// biome-ignore lint/style/noDefaultExport: --catalog takes the default export of its file
export default createLocalCatalog({
  tools: [
    defineTool({
      name: 'slow',
      description: 'Answers with the text after so many milliseconds.',
      inputSchema: {
        type: 'object',
        properties: { ms: { type: 'integer' }, text: { type: 'string' } },
        required: ['ms', 'text'],
      },
      async run({ ms, text }, { signal }) {
        await pause(ms, undefined, { signal });
        return { content: [{ type: 'text', text }] };
      },
    }),
  ],
});
