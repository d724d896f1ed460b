// The official SDK's server behind node:http: its Streamable HTTP transport, sessions in memory, answers
// in JSON (less work for it than a stream). No limits, no store.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { checkToken } from './check-token.mjs';

const transports = new Map();
const inputSchema = fromJsonSchema({
  type: 'object',
  properties: { message: { type: 'string' } },
  additionalProperties: false,
});

async function openTransport() {
  const server = new McpServer({ name: 'bench', version: '1.0.0' });
  server.registerTool('service_ping', { inputSchema }, ({ message }) => ({
    content: [{ type: 'text', text: `Postern MCP Server: ${message}` }],
  }));
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: (id) => void transports.set(id, transport),
  });
  await server.connect(transport);
  return transport;
}

createServer(async (req, res) => {
  try {
    req.auth = { extra: await checkToken(req.headers) };
  } catch {
    return res.writeHead(401).end();
  }
  const session = req.headers['mcp-session-id'];
  const transport = session === undefined ? await openTransport() : transports.get(session);
  if (transport === undefined) return res.writeHead(404).end();
  await transport.handleRequest(req, res);
}).listen(Number(process.env.PORT), '127.0.0.1');

// An orderly end, so that a profile gets written.
process.once('SIGTERM', () => process.exit());
