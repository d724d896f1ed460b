// npm test: the tools through the gateway, as a client calls them.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createGateway, loadConfig } from 'postern';
import catalog from './catalog.mjs';

let folder;
let gateway;
let server;
let session;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'my-gateway-'));
  const config = loadConfig({ AUTH_REQUIRED: 'false', DATA_DIR: folder, LOG_LEVEL: 'error' });
  gateway = await createGateway(config, { catalog });
  server = createServer(gateway.handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const answer = await post({
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    },
  });
  session = answer.headers.get('mcp-session-id');
});

after(async () => {
  server.close();
  await gateway.close();
  await rm(folder, { recursive: true });
});

const post = (message) =>
  fetch(`http://127.0.0.1:${server.address().port}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(session && { 'mcp-session-id': session }) },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
  });

async function call(name, args) {
  const answer = await post({ method: 'tools/call', params: { name, arguments: args } });
  const { result, error } = await answer.json();
  if (error) throw new Error(error.message);
  return result;
}

test('time_in says the time', async () => {
  const { content } = await call('time_in', { zone: 'UTC' });
  assert.match(content[0].text, /^it is \d\d:\d\d in UTC\.$/);
});

test('time_in says what a time zone looks like', async () => {
  const { content, isError } = await call('time_in', { zone: 'Atlantis' });
  assert.equal(isError, true);
  assert.match(content[0].text, /Asia\/Tokyo/);
});
