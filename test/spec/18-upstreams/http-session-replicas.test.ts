// Sessions at servers that start again, with replicas: each goes on with what another one has opened.
import { expect, test } from 'vitest';
import { openClient } from '../../support/clients/session-client.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { RESOURCES, startWatchedHttp } from '../../support/upstreams/watched-server.ts';

const redis = useShared(startRedis);

test('§18.3 a call ends well where its session, and the one that another replica opened in its place, are both lost', async () => {
  const server = closeAfterTest(await startWatchedHttp('session'));
  const file = { mcpServers: { s: server.entry } };
  const env = { MCP_STREAMS: 'true', REDIS_URL: redis.url };
  const first = await startForTest({ file, env });
  const second = await startForTest({ file, env: { ...env, OIDC_ISSUER: first.issuer.url } });
  const here = await openClient(first);
  const there = await here.at(second);
  const [uri] = RESOURCES;
  const read = { jsonrpc: '2.0', result: expect.anything(), id: 1 };
  for (const client of [here, there]) {
    expect(await client.ask('resources/read', { uri })).toEqual(read);
  }
  await server.restart(here);
  expect(await here.ask('resources/read', { uri })).toEqual(read);
  await server.restart(here);
  expect(await there.ask('resources/read', { uri })).toEqual(read);
});
