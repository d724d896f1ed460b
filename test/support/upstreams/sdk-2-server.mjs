// A server on stdio made with the official SDK 2.x: both eras, chosen by the first message.
import { inputRequired, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

serveStdio(() => {
  const server = new McpServer(
    { name: 'sdk-2', version: '2.0.0' },
    { instructions: 'Add numbers.' },
  );
  server.registerTool(
    'add',
    { inputSchema: z.object({ a: z.number(), b: z.number() }) },
    ({ a, b }) => ({
      content: [{ type: 'text', text: String(a + b) }],
    }),
  );
  server.registerTool('grow', {}, () => {
    server.registerTool('grown', {}, () => ({ content: [] }));
    return { content: [{ type: 'text', text: 'grown' }] };
  });
  server.registerTool('choose', {}, ({ mcpReq }) =>
    inputRequired({
      inputRequests: {
        colour: inputRequired.elicit({
          message: 'Which colour?',
          requestedSchema: z.object({ colour: z.string() }),
        }),
      },
      requestState: String(mcpReq.id),
    }),
  );
  server.registerTool('folders', {}, () =>
    inputRequired({ inputRequests: { folders: inputRequired.listRoots() } }),
  );
  return server;
});
