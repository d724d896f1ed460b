// An MCP server without sessions (2026-07-28), by the official SDK 2: node docs/examples/servers/weather.mjs
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

function createWeather() {
  const server = new McpServer({ name: 'weather', version: '1.0.0' });
  server.registerTool(
    'forecast',
    { description: 'Says what the weather will be.', inputSchema: z.object({ city: z.string() }) },
    ({ city }) => ({ content: [{ type: 'text', text: `Sunny in ${city}.` }] }),
  );
  return server;
}

createServer(toNodeHandler(createMcpHandler(createWeather))).listen(
  Number(process.env.PORT ?? 4001),
  '127.0.0.1',
);
