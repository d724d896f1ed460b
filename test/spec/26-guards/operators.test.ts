// §26.5: what operators see of guards.
import { expect, test } from 'vitest';
import { callTool } from '../../support/clients/stateless.ts';
import { writeGuard } from '../../support/guards/module-guard.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest } from '../../support/upstreams/listing-server.ts';

test('§26.5 operators: each guard, what it said, and why it failed last', async () => {
  const server = await serveForTest({ tools: [buildTool('one')] });
  const gateway = await startForTest({
    file: {
      mcpServers: { it: server.url },
      guards: [
        { name: 'secrets', on: ['tools/call'], use: { builtIn: 'secrets' } },
        { name: 'mine', on: ['tools/call'], use: await writeGuard("return 'what?';") },
      ],
    },
    env: { ADMIN_GROUPS: 'operators', ADMIN_CLIENTS: 'ops-script' },
  });
  await callTool(gateway, 'it__one');
  const token = await gateway.issuer.sign({ groups: ['operators'], azp: 'ops-script' });
  const { json } = await gateway.request({
    path: '/admin/api/guards',
    headers: { authorization: `Bearer ${token}` },
  });
  expect(json.guards).toEqual([
    {
      name: 'secrets',
      kind: 'built in: secrets',
      on: ['tools/call'],
      onError: 'refuse',
      counts: { passed: 1, changed: 0, refused: 0, failed: 0 },
    },
    {
      name: 'mine',
      kind: 'module guard.mjs',
      on: ['tools/call'],
      onError: 'refuse',
      counts: { passed: 0, changed: 0, refused: 0, failed: 1 },
      problem: 'its answer is not an object',
    },
  ]);
});
