// The line that says that the service runs: what an operator looks for first.
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { summarizeConfig } from '../../../src/config/start-log.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

let gateway: TestGateway;

test.each([
  { env: {}, mode: 'proxy' },
  { env: { OAUTH_MODE: 'broker', OAUTH_CLIENT_ID: 'c' }, mode: 'broker' },
  { env: { AUTH_REQUIRED: 'false' }, mode: 'without authentication' },
])('§10 listening: with $env the mode is $mode', async ({ env, mode }) => {
  gateway = closeAfterTest(await startGateway({ env }));
  const port = await gateway.listen();
  expect(gateway.log).toContainEqual(
    expect.objectContaining({
      level: 'info',
      msg: 'Listening.',
      port,
      mcp: `${gateway.baseUrl}/mcp`,
      mode,
      issuer: gateway.issuer.url,
      store: expect.stringMatching(/^embedded in \//),
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      node: process.version,
    }),
  );
});

test.each([
  ['rediss://user:hunter2@redis.example:6380/3?cluster=true', 'Redis at redis.example:6380'],
  ['redis://redis.example', 'Redis at redis.example'],
  [
    'redis+sentinel://user:hunter2@one,[2001:db8::1]:5000/main/2?sentinelPassword=hunter3',
    'Redis primary main, named by the sentinels one:26379, [2001:db8::1]:5000',
  ],
])('§10 listening: of %s the host alone is said', (REDIS_URL, store) => {
  const config = loadConfig({ AUTH_REQUIRED: 'false', REDIS_URL });
  expect(summarizeConfig(config)).toEqual({ mode: 'without authentication', store });
});
