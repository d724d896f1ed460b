// Two gateways over one Redis, with one issuer: tokens of the first are good at both.
import { startGateway, type TestGateway, type TestOptions } from './gateway.ts';
import { startRedis } from './redis.ts';

export interface Pair {
  readonly one: TestGateway;
  readonly other: TestGateway;
  close(): Promise<void>;
}

export async function startPair({ env = {}, deps }: TestOptions = {}): Promise<Pair> {
  const redis = await startRedis();
  const shared = { ...env, REDIS_URL: redis.url };
  const one = await startGateway({ env: shared, ...(deps && { deps }) });
  const other = await startGateway({
    env: { ...shared, OIDC_ISSUER: one.issuer.url },
    ...(deps && { deps }),
  });
  return {
    one,
    other,
    async close() {
      await other.close();
      await one.close();
      await redis.close();
    },
  };
}
