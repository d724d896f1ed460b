// §16: records of a later version, of a replica that was upgraded first, are errors: what they mean is not known here.
import { describe, expect, test } from 'vitest';
import { useGateway } from '../support/gateway/use-gateway.ts';
import { useShared } from '../support/lifetimes.ts';
import { createLoginSteps } from '../support/oauth/login-steps.ts';
import { startRedis } from '../support/stores/redis.ts';

describe('records in Redis', () => {
  const redis = useShared(startRedis);
  const gateway = useGateway(() => ({ env: { REDIS_URL: redis.url } }));

  test.each([
    {
      what: 'session',
      use: async () => {
        const token = await gateway.issuer.sign();
        const session = await gateway.open({ token });
        await redis.client().hset(`mcp:session:${session}`, 'version', '2');
        return gateway.rpc({ jsonrpc: '2.0', id: 1, method: 'ping' }, { session, token });
      },
    },
    {
      what: 'registered client',
      use: async () => {
        const steps = createLoginSteps(gateway);
        const client = await steps.register();
        const key = `dcr:client:${client.id}`;
        const record = JSON.parse((await redis.client().get(key)) ?? '');
        await redis.client().set(key, JSON.stringify({ ...record, version: 2 }), 'EX', 60);
        return steps.authorize(client);
      },
    },
  ])(
    '§2.1 a $what of a later version is an error, not absent, and the log says so',
    async ({ use }) => {
      const { status } = await use();
      expect(status).toBe(500);
      expect(JSON.stringify(gateway.log.at(-1))).toContain('later version');
    },
  );
});
