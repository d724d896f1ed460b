// What lies in Redis may be broken, or somebody else's: bytes that are no text count as no record, and are replaced.
import { expect, test } from 'vitest';
import { openClient } from '../../support/clients/session-client.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { describeWatchedProcesses, RESOURCES } from '../../support/upstreams/watched-server.ts';

const redis = useShared(startRedis);
const [FIRST, SECOND] = RESOURCES;

async function breakRecords(pattern: string): Promise<void> {
  const client = redis.client();
  const keys = await client.keys(pattern);
  expect(keys).not.toEqual([]);
  for (const key of keys) await client.set(key, Buffer.from([0xff, 0xfe, 0xfd]), 'EX', 3600);
}

test('§18.3 a session whose subscriptions cannot be read subscribes to more', async () => {
  const { entry } = describeWatchedProcesses();
  const env = { MCP_STREAMS: 'true', REDIS_URL: redis.url };
  const gateway = await startForTest({ file: { mcpServers: { s: entry } }, env });
  const client = await openClient(gateway);
  expect(await client.ask('resources/subscribe', { uri: FIRST })).toMatchObject({ result: {} });
  await breakRecords('*:upstream:*');
  expect(await client.ask('resources/subscribe', { uri: SECOND })).toMatchObject({ result: {} });
});

test('§18.6 keys of identity tokens that cannot be read are replaced', async () => {
  const file = { mcpServers: { s: { url: 'http://127.0.0.1:9', auth: { type: 'identity' } } } };
  const env = { REDIS_URL: redis.url };
  const listKeys = async (): Promise<readonly { kid: string }[]> => {
    const gateway = await startForTest({ file, env });
    return (await gateway.request({ path: '/.well-known/jwks.json' })).json.keys;
  };
  const known = await listKeys();
  await breakRecords('identity:key:*');
  const fresh = await listKeys();
  expect(fresh.filter(({ kid }) => known.some((one) => one.kid === kid))).toEqual([]);
  expect(await listKeys()).toEqual(fresh);
});
