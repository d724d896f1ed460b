// §22.4: what operators see of servers behind the gateway.
import { expect, test } from 'vitest';
import { manualClock } from '../../support/gateway/clock.ts';
import { freePort } from '../../support/gateway/ports.ts';
import {
  type CatalogGateway,
  type CatalogGatewayOptions,
  startForTest,
} from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest } from '../../support/upstreams/listing-server.ts';

const startWithOperators = (options: CatalogGatewayOptions): Promise<CatalogGateway> =>
  startForTest({ ...options, env: { ADMIN_GROUPS: 'operators', ADMIN_CLIENTS: 'ops-script' } });

async function show(gateway: CatalogGateway, path: string) {
  const token = await gateway.issuer.sign({ groups: ['operators'], azp: 'ops-script' });
  return gateway.request({
    path: `/admin/api${path}`,
    headers: { authorization: `Bearer ${token}` },
  });
}

test('§22.4 operators: servers behind the gateway: up with their tools, or down and why, and since when', async () => {
  const up = await serveForTest({ tools: [buildTool('one'), buildTool('two')] });
  const clock = manualClock();
  const startedAt = clock.now();
  const gateway = await startWithOperators({
    file: { mcpServers: { up: up.url, down: `http://127.0.0.1:${await freePort()}/mcp` } },
    clock,
  });
  await gateway.listNames('tools/list');
  clock.advance(500);
  const since = new Date(startedAt).toISOString();
  expect((await show(gateway, '/servers')).json.servers).toEqual([
    {
      name: 'up',
      transport: 'http',
      isRequired: false,
      isUp: true,
      since,
      era: 'session',
      isPersonal: false,
      tools: 2,
    },
    {
      name: 'down',
      transport: 'http',
      isRequired: false,
      isUp: false,
      since,
      reason: expect.stringMatching(/./),
      isPersonal: false,
    },
  ]);
});

test('§22.4 operators: tools of a server: under which names, and why clients do not see one', async () => {
  const server = await serveForTest({
    tools: [
      buildTool('read'),
      buildTool('write'),
      buildTool('read', { description: 'Again.' }),
      { name: 'odd\u202e', inputSchema: {} },
      { description: 'Without a name.' },
    ],
  });
  const gateway = await startWithOperators({
    file: {
      mcpServers: {
        files: { url: server.url, prefix: 'f', tools: { exclude: ['write'] } },
      },
    },
  });
  await gateway.listNames('tools/list');
  expect((await show(gateway, '/tools?server=files')).json).toEqual({
    server: 'files',
    isPersonal: false,
    total: 5,
    tools: [
      { name: 'read', listedAs: 'f__read', state: 'listed' },
      { name: 'write', state: 'left_out', problem: expect.stringContaining('tools') },
      { name: 'read', state: 'unusable', problem: 'is listed twice' },
      { name: 'odd\u202e', state: 'unusable', problem: expect.stringContaining('name') },
      { name: '', state: 'unusable', problem: 'has no name' },
    ],
  });
});

test('§22.4 operators: tools come in pages', async () => {
  const names = Array.from({ length: 5 }, (_, at) => `tool-${at}`);
  const server = await serveForTest({ tools: names.map((name) => buildTool(name)) });
  const gateway = await startWithOperators({ file: { mcpServers: { files: server.url } } });
  await gateway.listNames('tools/list');
  const first = (await show(gateway, '/tools?server=files&limit=3')).json;
  expect(first.total).toBe(5);
  const second = (await show(gateway, `/tools?server=files&limit=3&cursor=${first.nextCursor}`))
    .json;
  expect(second.nextCursor).toBeUndefined();
  expect([...first.tools, ...second.tools].map(({ name }: { name: string }) => name)).toEqual(
    names,
  );
  expect((await show(gateway, '/tools?server=files&limit=101')).status).toBe(400);
});

test("§22.4 operators: tools that differ between users are nobody else's to see", async () => {
  const server = await serveForTest({ tools: [buildTool('mine')] });
  const gateway = await startWithOperators({
    file: {
      mcpServers: {
        files: { url: server.url, auth: { type: 'identity' } },
      },
    },
  });
  await gateway.listNames('tools/list');
  expect((await show(gateway, '/servers')).json.servers).toMatchObject([{ isPersonal: true }]);
  expect((await show(gateway, '/tools?server=files')).json).toEqual({
    server: 'files',
    isPersonal: true,
    total: 0,
    tools: [],
  });
});

test('§22.4 operators: a server that is not there has no tools', async () => {
  const gateway = await startWithOperators({ file: { mcpServers: {} } });
  for (const path of ['/tools?server=files', '/tools']) {
    const answer = await show(gateway, path);
    expect(answer.status).toBe(404);
    expect(answer.json.error.data).toMatchObject({ reason: 'server_not_found' });
  }
});
