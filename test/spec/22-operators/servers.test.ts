// §22.4: what operators see of servers behind the gateway.
import { expect, test } from 'vitest';
import { freePort } from '../../support/gateway/ports.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, startListingServer } from '../../support/upstreams/listing-server.ts';

test('§22.4 operators: servers behind the gateway: up with their tools, or down and why', async () => {
  const up = closeAfterTest(
    await startListingServer({ tools: [buildTool('one'), buildTool('two')] }),
  );
  const gateway = await startForTest({
    file: { mcpServers: { up: up.url, down: `http://127.0.0.1:${await freePort()}/mcp` } },
    env: { ADMIN_GROUPS: 'operators', ADMIN_CLIENTS: 'ops-script' },
  });
  await gateway.listNames('tools/list');
  const token = await gateway.issuer.sign({ groups: ['operators'], azp: 'ops-script' });
  const answer = await gateway.request({
    path: '/admin/api/servers',
    headers: { authorization: `Bearer ${token}` },
  });
  expect(answer.json.servers).toEqual([
    { name: 'up', transport: 'http', isRequired: false, isUp: true, era: 'session', tools: 2 },
    {
      name: 'down',
      transport: 'http',
      isRequired: false,
      isUp: false,
      reason: expect.stringMatching(/./),
    },
  ]);
});
