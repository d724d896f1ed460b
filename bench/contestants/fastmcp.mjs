// fastmcp with its own HTTP server, sessions in memory, answers in JSON. No limits, no store.
import { FastMCP } from 'fastmcp';
import { z } from 'zod';
import { checkToken } from './check-token.mjs';

const server = new FastMCP({
  name: 'bench',
  version: '1.0.0',
  authenticate: (request) => checkToken(request.headers),
  ping: { enabled: false },
});

server.addTool({
  name: 'service_ping',
  description: 'Answers with the name of the service and your message.',
  parameters: z.object({ message: z.string() }),
  execute: async ({ message }) => `Postern MCP Server: ${message}`,
});

await server.start({
  transportType: 'httpStream',
  httpStream: {
    host: '127.0.0.1',
    port: Number(process.env.PORT),
    endpoint: '/mcp',
    enableJsonResponse: true,
  },
});

// An orderly end, so that a profile gets written.
process.once('SIGTERM', () => process.exit());
