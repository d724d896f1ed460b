// §8.7, §11: how long a refusal is remembered where processes take of windows in advance.
import { expect, test } from 'vitest';
import { buildLimitKey } from '../../../src/store/keys.ts';
import { openRedisStore } from '../../../src/store/redis/open.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { INITIALIZE_REQUEST, startGateway } from '../../support/gateway/gateway.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';

const MAX = 100;
const ADDRESS = '10.0.0.1';
const SHARE_LIFE_MS = 5000;

const redis = useFresh(startRedis);

test('§8.7 what another process took and did not use ends a refusal that is remembered', async () => {
  const clock = manualClock();
  const other = openRedisStore({
    url: redis.url,
    sessionKeyPrefix: 'mcp:session:',
    counting: 'leased',
    // It holds its share for as long as the test needs.
    clock: manualClock(),
    log: collectLog().log,
  });
  const window = {
    scope: 'ip' as const,
    key: buildLimitKey('mcp', ADDRESS),
    windowMs: 60_000,
    max: MAX,
  };
  for (let requests = 0; requests < 4; requests += 1) await other.admitRequest([window], undefined);
  const gateway = closeAfterTest(
    await startGateway({
      env: {
        REDIS_URL: redis.url,
        RATE_LIMIT_COUNTING: 'leased',
        MCP_RATE_LIMIT_MAX: String(MAX),
      },
      deps: { clock },
    }),
  );
  const call = () =>
    gateway.request({
      method: 'POST',
      path: '/mcp',
      headers: { 'x-forwarded-for': ADDRESS },
      body: INITIALIZE_REQUEST,
    });
  const asked = () => seriesOf(gateway, 'redis_operations_total', { operation: 'admit' });
  let answered = 0;
  while ((await call()).status === 401) answered += 1;
  expect(answered).toBeLessThan(MAX - 4);
  await other.close();

  const before = await asked();
  const refused = await call();
  expect(refused.status).toBe(429);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(30);
  expect(await asked()).toBe(before);
  clock.advance(SHARE_LIFE_MS);
  expect((await call()).status).toBe(401);
});
