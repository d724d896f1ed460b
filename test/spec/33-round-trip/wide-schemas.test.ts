// §33: tools of a server of 2026-07-28 that clients of sessions could not read: for them alone they are written otherwise.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, test } from 'vitest';
import { openClient } from '../../support/clients/session-client.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startCatalogGateway } from '../../support/upstreams/catalog-gateway.ts';
import { sendJson, startScriptedHttp, toResult } from '../../support/upstreams/scripted-http.ts';

const OBJECT = { type: 'object' };
const TOOLS = [
  { name: 'plain', inputSchema: OBJECT, outputSchema: { type: 'object', properties: { a: {} } } },
  { name: 'list', inputSchema: OBJECT, outputSchema: { type: 'array', items: { type: 'number' } } },
  { name: 'any', inputSchema: OBJECT, outputSchema: { anyOf: [OBJECT, { type: 'string' }] } },
  {
    name: 'flags',
    title: 'Flags',
    inputSchema: { type: 'object', properties: { yes: true, no: false, text: { type: 'string' } } },
  },
];

const RESULTS: Readonly<Record<string, object>> = {
  plain: { content: [], structuredContent: { a: 1 } },
  list: { content: [{ type: 'text', text: '[1,2]' }], structuredContent: [1, 2] },
  any: { content: [], structuredContent: 'said', isError: false },
  flags: { content: [], structuredContent: null, 'x-member': 1 },
};

async function start(prefix = 'it') {
  const server = closeAfterTest(await startScriptedHttp('stateless'));
  const complete = { resultType: 'complete' };
  server.answer('tools/list', (res, request) =>
    sendJson(
      res,
      toResult(request, { ...complete, ttlMs: 60_000, cacheScope: 'public', tools: TOOLS }),
    ),
  );
  server.answer('tools/call', (res, request) => {
    const { name } = Object(request.message.params);
    sendJson(res, toResult(request, { ...complete, ...RESULTS[name] }));
  });
  return closeAfterTest(
    await startCatalogGateway({
      file: { mcpServers: { it: { url: server.url, prefix } } },
      env: { AUTH_REQUIRED: 'false' },
    }),
  );
}

const prefixed = (tools: readonly { readonly name: string }[]) =>
  tools.map((tool) => ({ ...tool, name: `it__${tool.name}` }));

const NARROWED = [
  TOOLS[0],
  { name: 'list', inputSchema: OBJECT },
  { name: 'any', inputSchema: OBJECT },
  {
    name: 'flags',
    title: 'Flags',
    inputSchema: {
      type: 'object',
      properties: { yes: {}, no: { not: {} }, text: { type: 'string' } },
    },
  },
] as typeof TOOLS;

test('§33 a list in a session has schemas that its clients know; in the stateless era they are as the server wrote them', async () => {
  const gateway = await start();
  const client = await openClient(gateway);
  // Twice, and in turn: what one era gets is not remembered for the other.
  for (let time = 0; time < 2; time += 1) {
    expect((await stateless(gateway, 'tools/list')).json.result.tools).toEqual(prefixed(TOOLS));
    expect((await client.ask('tools/list')).result.tools).toEqual(prefixed(NARROWED));
  }
});

test('§33 the official client 1.x lists and calls all of them', async () => {
  const gateway = await start('');
  const port = await gateway.listen();
  const client = new Client({ name: 'test', version: '1' });
  const url = new URL(`http://127.0.0.1:${port}/mcp`);
  await client.connect(new StreamableHTTPClientTransport(url));
  closeAfterTest({ close: () => client.close() });
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(TOOLS.map(({ name }) => name));
  const results = Object.fromEntries(
    await Promise.all(
      TOOLS.map(
        async ({ name }) => [name, await client.callTool({ name, arguments: {} })] as const,
      ),
    ),
  );
  expect(results).toEqual({
    plain: RESULTS.plain,
    list: { content: [{ type: 'text', text: '[1,2]' }] },
    any: { content: [{ type: 'text', text: '"said"' }], isError: false },
    flags: { content: [{ type: 'text', text: 'null' }], 'x-member': 1 },
  });
});

test('§33 a client of the stateless era gets the value itself', async () => {
  const gateway = await start('');
  for (const { name } of TOOLS) {
    const { json } = await stateless(gateway, 'tools/call', { name, arguments: {} });
    expect(json.result).toMatchObject(RESULTS[name] ?? {});
  }
});
