// A server on stdio made with the official SDK 1.x: the session era.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const server = new McpServer(
  { name: 'sdk-1', version: '1.0.0' },
  { capabilities: { logging: {} } },
);
server.registerTool('add', { inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) => ({
  content: [{ type: 'text', text: String(a + b) }],
}));
server.registerTool('grow', {}, () => {
  server.registerTool('grown', {}, () => ({ content: [] }));
  return { content: [{ type: 'text', text: 'grown' }] };
});
await server.connect(new StdioServerTransport());
