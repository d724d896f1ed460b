// §4.11: series of tools are named as /mcp lists them, whatever a client called.
import { expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import type { Catalog } from '../../../src/mcp/catalog/catalog.ts';
import { statelessRequest } from '../../support/clients/stateless.ts';
import type { TestGateway } from '../../support/gateway/gateway.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest } from '../../support/upstreams/listing-server.ts';

const local = createLocalCatalog({
  tools: [
    defineTool({
      name: 'read',
      description: '',
      inputSchema: { type: 'object' },
      run: () => ({ content: [] }),
    }),
  ],
});

async function listSeries(gateway: TestGateway) {
  const { text } = await gateway.request({ path: '/metrics' });
  const found = text.matchAll(
    /^mcp_tool_invocations_total\{(?:[^}]*,)?tool="([^"]*)"[^}]*\} (\d+)/gm,
  );
  return Object.fromEntries([...found].map(([, name, count]) => [name, Number(count)]));
}

async function callAt(gateway: TestGateway, path: string, name: string) {
  const { message, headers } = statelessRequest('tools/call', { name });
  const authorization = `Bearer ${await gateway.issuer.sign()}`;
  return gateway.request({
    method: 'POST',
    path,
    body: message,
    headers: { ...headers, authorization },
  });
}

test('§4.11 a tool has one series, at whatever path it is called', async () => {
  const wiki = await serveForTest({ tools: [buildTool('read')] });
  const files = await serveForTest({ tools: [buildTool('read')] });
  const gateway = await startForTest({
    file: { mcpServers: { wiki: wiki.url, files: files.url } },
    builtIn: local,
  });
  for (const [path, name] of [
    ['/mcp', 'read'],
    ['/mcp/wiki', 'read'],
    ['/mcp', 'wiki__read'],
    ['/mcp/files', 'read'],
  ] as const) {
    await callAt(gateway, path, name);
  }
  expect(await listSeries(gateway)).toEqual({ read: 1, wiki__read: 2, files__read: 1 });
});

test('§4.11 names that nobody is known to have are no series', async () => {
  const failing: Catalog = {
    ...local,
    async listTools() {
      throw new Error('the database is down');
    },
  };
  const gateway = await startForTest({ file: { mcpServers: {} }, builtIn: failing });
  for (const name of ['made_up_1', 'made_up_2']) await callAt(gateway, '/mcp', name);
  expect(await listSeries(gateway)).toEqual({});
});
