// Tools of servers name arguments that clients repeat in headers: browsers ask first whether they may.
import { expect, test } from 'vitest';
import { startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import { serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const ORIGIN = 'http://localhost:6274';
const COMMON =
  'Content-Type, Authorization, mcp-session-id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID';

test.each([
  { asked: 'content-type, Mcp-Param-Region', allowed: `${COMMON}, Mcp-Param-Region` },
  { asked: 'mcp-param-a,mcp-param-b', allowed: `${COMMON}, mcp-param-a, mcp-param-b` },
  { asked: 'x-other, mcp-paramx', allowed: COMMON },
  { asked: 'mcp-param-a b', allowed: COMMON },
])('§18.3 a preflight that asks for $asked', async ({ asked, allowed }) => {
  const server = await serve();
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  const { headers } = await gateway.request({
    method: 'OPTIONS',
    path: '/mcp',
    headers: { origin: ORIGIN, 'access-control-request-headers': asked },
  });
  expect(headers['access-control-allow-origin']).toBe(ORIGIN);
  expect(headers['access-control-allow-headers']).toBe(allowed);
});
