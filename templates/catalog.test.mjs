// Run it with: node --test
// It calls the tools as a client does, through a gateway without login.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createGateway, loadConfig } from 'postern';
import catalog from './catalog.mjs';

const server = createServer();
let folder;
let gateway;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'catalog-test-'));
  const config = loadConfig({ AUTH_REQUIRED: 'false', DATA_DIR: folder, LOG_LEVEL: 'error' });
  gateway = await createGateway(config, { catalog });
  server.on('request', gateway.handler);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
});

after(async () => {
  server.close();
  server.closeAllConnections();
  await gateway.close();
  await rm(folder, { recursive: true });
});

async function callTool(name, args) {
  const response = await fetch(`http://127.0.0.1:${server.address().port}/mcp`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'tools/call',
      'Mcp-Name': name,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name,
        arguments: args,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    }),
  });
  return response.json();
}

test('roll_dice rolls one of the sides', async () => {
  const { result } = await callTool('roll_dice', { sides: 4 });
  assert.match(result.content[0].text, /^Somebody rolled [1-4]$/);
});

test('roll_dice refuses a die with one side', async () => {
  const { error, result } = await callTool('roll_dice', { sides: 1 });
  assert.ok(error ?? result.isError);
});
