// An MCP server with sessions (up to 2025-11-25), by the official SDK 1: node docs/examples/servers/notes.mjs
// It takes only requests with its key.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const { PORT = '4002', KEY = 'secret' } = process.env;
const transports = new Map();

/** Each session has notes of its own. */
function createNotes() {
  const notes = [];
  const server = new McpServer({ name: 'notes', version: '1.0.0' });
  server.registerTool(
    'add_note',
    { description: 'Adds a note to this session.', inputSchema: { text: z.string() } },
    ({ text }) => ({ content: [{ type: 'text', text: `Note ${notes.push(text)} is kept.` }] }),
  );
  return server;
}

async function openSession() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => transports.set(id, transport),
    onsessionclosed: (id) => transports.delete(id),
  });
  await createNotes().connect(transport);
  return transport;
}

createServer(async (req, res) => {
  if (req.headers['x-api-key'] !== KEY) return res.writeHead(401).end();
  const id = req.headers['mcp-session-id'];
  const transport = id === undefined ? await openSession() : transports.get(id);
  if (transport === undefined) return res.writeHead(404).end();
  await transport.handleRequest(req, res);
}).listen(Number(PORT), '127.0.0.1');
