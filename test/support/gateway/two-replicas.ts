// Two gateways over one Redis, with one issuer: tokens of the first are good at both.

import { type RedisServer, startRedis } from '../stores/redis.ts';
import { startGateway, type TestGateway, type TestOptions } from './gateway.ts';

export interface TwoReplicas {
  readonly one: TestGateway;
  readonly other: TestGateway;
  readonly redis: RedisServer;
  close(): Promise<void>;
}

/** `second` holds where the other differs from the first. */
export async function startTwoReplicas(
  { env = {}, deps }: TestOptions = {},
  second: TestOptions = {},
): Promise<TwoReplicas> {
  const redis = await startRedis();
  const shared = { ...env, REDIS_URL: redis.url };
  const one = await startGateway({ env: shared, ...(deps && { deps }) });
  const other = await startGateway({
    env: { ...shared, OIDC_ISSUER: one.issuer.url, ...second.env },
    deps: { ...deps, ...second.deps },
  });
  return {
    one,
    other,
    redis,
    async close() {
      await other.close();
      await one.close();
      await redis.close();
    },
  };
}
