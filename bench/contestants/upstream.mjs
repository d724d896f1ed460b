// The least that an MCP server behind the gateway can be: it answers what the gateway's own tool would.
// ERA=session or stateless; TOOLS says how many tools it lists.
import { createServer } from 'node:http';
import { createJsonListener } from './answer.mjs';

const { ERA, TOOLS = '1', PORT } = process.env;
const isStateless = ERA === 'stateless';
const serverInfo = { name: 'bare', version: '1' };
const meta = { 'io.modelcontextprotocol/serverInfo': serverInfo };
const completed = isStateless ? { resultType: 'complete', _meta: meta } : {};
const cached = isStateless ? { ttlMs: 3_600_000, cacheScope: 'public' } : {};
const inputSchema = { type: 'object', properties: { message: { type: 'string' } } };

const names = ['service_ping', ...Array.from({ length: Number(TOOLS) - 1 }, (_, n) => `tool_${n}`)];
const tools = names.map((name) => ({ name, description: `Does ${name}.`, inputSchema }));
const text = 'Postern MCP Server: hello';

const results = {
  ...(isStateless
    ? {
        'server/discover': {
          ...completed,
          ...cached,
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {} },
        },
      }
    : {
        initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo },
        ping: {},
      }),
  'tools/list': { ...completed, ...cached, tools },
  'tools/call': { ...completed, content: [{ type: 'text', text }] },
};

const bodies = new Map(
  Object.entries(results).map(([method, result]) => [method, JSON.stringify(result)]),
);
const notFound = JSON.stringify({ code: -32601, message: 'Method not found' });

const listener = createJsonListener((_req, res, { id, method }) => {
  if (id === undefined) return res.writeHead(202).end();
  const result = bodies.get(method);
  const outcome = result === undefined ? `"error":${notFound}` : `"result":${result}`;
  const body = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},${outcome}}`;
  res.writeHead(result === undefined && isStateless ? 404 : 200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(method === 'initialize' && { 'mcp-session-id': 'bare' }),
  });
  res.end(body);
});

createServer({ keepAliveTimeout: 120_000 }, (req, res) =>
  req.method === 'POST' || req.url === '/health' ? listener(req, res) : res.writeHead(405).end(),
).listen(Number(PORT), '127.0.0.1');

process.once('SIGTERM', () => process.exit());
