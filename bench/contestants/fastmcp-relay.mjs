// fastmcp in front of a server, by the client of the official SDK: each of its tools asks the server's tool.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { FastMCP } from 'fastmcp';
import { z } from 'zod';
import { checkToken } from './check-token.mjs';

const { PORT, UPSTREAM_URL } = process.env;
const client = new Client({ name: 'bench', version: '1' });
await client.connect(new StreamableHTTPClientTransport(new URL(UPSTREAM_URL)));

const server = new FastMCP({
  name: 'bench',
  version: '1.0.0',
  authenticate: (request) => checkToken(request.headers),
  ping: { enabled: false },
});

const { tools } = await client.listTools();
for (const { name, description } of tools) {
  server.addTool({
    name,
    description,
    parameters: z.object({ message: z.string() }),
    execute: async (args) => {
      const { content } = await client.callTool({ name, arguments: args });
      return { content };
    },
  });
}

await server.start({
  transportType: 'httpStream',
  httpStream: { host: '127.0.0.1', port: Number(PORT), endpoint: '/mcp', enableJsonResponse: true },
});

// An orderly end, so that a profile gets written.
process.once('SIGTERM', () => process.exit());
