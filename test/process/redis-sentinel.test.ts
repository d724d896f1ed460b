// The service on Redis Sentinel, while the primary fails.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import {
  endPosterns,
  makeFolder,
  type RunningPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { checkSession, openSession } from '../support/gateway/process-http.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { AUDIENCE, startIssuer } from '../support/oauth/issuer.ts';
import { startRedisSentinel } from '../support/stores/redis-sentinel.ts';

const LONG = { timeout: 20_000 };
const PASSWORD = 'hunter2-of-redis';
const SENTINEL_PASSWORD = 'hunter2-of-sentinels';

const issuer = useShared(startIssuer);
afterEach(endPosterns);

const readiness = async ({ url }: RunningPostern) => (await fetch(`${url}/health/ready`)).status;

test('§17 Sentinel: the primary fails under load: sessions live on, and no answer is wrong', async () => {
  const redis = closeAfterTest(
    await startRedisSentinel({
      tls: true,
      password: PASSWORD,
      sentinelPassword: SENTINEL_PASSWORD,
    }),
  );
  const caFile = join(await makeFolder(), 'ca.pem');
  await writeFile(caFile, redis.ca ?? '');
  const shared = {
    OIDC_ISSUER: issuer.url,
    OIDC_AUDIENCE: AUDIENCE,
    REDIS_URL: redis.url,
    NODE_EXTRA_CA_CERTS: caFile,
    OAUTH_CONSENT: 'off',
    MCP_RATE_LIMIT_MAX: '1000000',
    MCP_GLOBAL_RATE_LIMIT_MAX: '1000000',
  };
  const posterns = await Promise.all([startPostern(shared), startPostern(shared)]);
  for (const postern of posterns) await expect.poll(() => readiness(postern), LONG).toBe(200);
  const token = await issuer.sign();
  const session = await openSession(posterns[0].url, token);
  await redis.servers[0].client().call('WAIT', 1, 5000);

  const statuses: number[][] = [[], []];
  let isOver = false;
  const callers = posterns.flatMap(({ url }, at) =>
    Array.from({ length: 4 }, async () => {
      while (!isOver) statuses[at]?.push(await checkSession(url, { session, token }));
    }),
  );
  await expect.poll(() => statuses.flat().length, LONG).toBeGreaterThan(50);
  await redis.servers[0].kill();
  for (const at of [0, 1]) {
    await expect.poll(() => statuses[at]?.includes(500), LONG).toBe(true);
    // The last ten: what comes after the fail-over stays well.
    await expect
      .poll(() => statuses[at]?.slice(-10).every((status) => status === 200), LONG)
      .toBe(true);
  }
  isOver = true;
  await Promise.all(callers);
  expect([...new Set(statuses.flat())].sort()).toEqual([200, 500]);
  for (const postern of posterns) {
    await expect.poll(() => readiness(postern), LONG).toBe(200);
    const errors = postern.log().filter(({ msg }) => String(msg).startsWith('The store does not'));
    expect(errors).toHaveLength(1);
    expect(postern.stdout + postern.stderr).not.toContain('hunter2');
    postern.kill('SIGTERM');
    expect(await postern.ended).toEqual({ code: 0, signal: null });
  }
});
