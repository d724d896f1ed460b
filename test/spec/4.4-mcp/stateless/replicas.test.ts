// MCP 2026-07-28 "Multi Round-Trip Requests" over one Redis: a round each, and Redis down.
import { afterEach, describe, expect, test } from 'vitest';
import { askingCatalog } from '../../../support/catalogs/stateless-asking-catalog.ts';
import {
  accepted,
  answeringCall,
  askingCall,
  type Retry,
  stateless,
} from '../../../support/clients/stateless.ts';
import {
  startGateway,
  type TestGateway,
  type TestResponse,
} from '../../../support/gateway/gateway.ts';
import { closeAfterTest, useShared } from '../../../support/lifetimes.ts';
import { startRedis } from '../../../support/stores/redis.ts';

const ADA = accepted({ name: 'Ada' });
const SECRET = { OAUTH_STATE_SECRET: 'one-secret-for-both-of-the-replicas' };

const redis = useShared(startRedis);

async function open(env: Readonly<Record<string, string>> = {}): Promise<TestGateway> {
  const options = { env: { REDIS_URL: redis.url, ...env }, deps: { catalog: askingCatalog } };
  return closeAfterTest(await startGateway(options));
}

// Each test gateway has an issuer of its own: a state belongs to `sub`, not to a token.
const call = (gateway: TestGateway, name: string, retry?: Retry) =>
  askingCall(gateway, name, retry);

const stateIn = ({ json }: TestResponse): string => {
  expect(json.result?.resultType).toBe('input_required');
  return json.result.requestState;
};

describe('two replicas', () => {
  test.each<{ what: string; env: Readonly<Record<string, string>> }>([
    { what: 'with OAUTH_STATE_SECRET', env: SECRET },
    { what: 'without a secret of the settings', env: {} },
  ])('§15 a round each, $what', async ({ env }) => {
    const [one, two] = [await open(env), await open(env)];
    const first = stateIn(await call(one, 'rounds'));
    const second = stateIn(
      await call(two, 'rounds', { inputResponses: { who: ADA }, requestState: first }),
    );
    const { json } = await call(one, 'rounds', {
      inputResponses: { sure: ADA },
      requestState: second,
    });
    expect(JSON.parse(json.result.content[0].text)).toEqual({ who: ADA, sure: ADA });
  });

  test('§15 both asked first at the same moment agree on one secret', async () => {
    const env = { MCP_SESSION_KEY_PREFIX: 'at-once:' };
    const all = [await open(env), await open(env), await open(env)];
    const states = await Promise.all(
      all.map((gateway) =>
        answeringCall(gateway, 'rounds', { inputResponses: { who: ADA } }).then(stateIn),
      ),
    );
    for (const gateway of all) {
      for (const requestState of states) {
        const retry = { inputResponses: { sure: ADA }, requestState };
        expect((await call(gateway, 'rounds', retry)).json.result?.resultType).toBe('complete');
      }
    }
  });

  test('§15 a state of other services on the same Redis is none', async () => {
    const one = await open();
    const other = await open({ MCP_SESSION_KEY_PREFIX: 'other:' });
    const requestState = stateIn(await call(one, 'rounds'));
    const { json } = await call(other, 'rounds', { requestState });
    expect(json.error).toMatchObject({ code: -32602 });
  });

  test('§4.11 the secret is read once: later questions cost no operation more', async () => {
    const gateway = await open();
    await call(gateway, 'once');
    const monitor = await redis.client().monitor();
    const seen: string[] = [];
    monitor.on('monitor', (...[, args, source]: unknown[]) => {
      if (source !== 'lua' && Array.isArray(args)) seen.push(String(args[0]).toLowerCase());
    });
    await answeringCall(gateway, 'once', { inputResponses: { who: ADA } });
    await expect.poll(() => seen).toEqual(['evalsha', 'evalsha']);
    monitor.disconnect();
  });
});

describe('Redis down', () => {
  afterEach(() => redis.restart());

  /** Neither a question that cannot be answered, nor a refusal of what the client did right. */
  function expectTrueError({ status, json }: TestResponse): void {
    expect(status).toBe(500);
    expect(json).toMatchObject({
      jsonrpc: '2.0',
      error: { code: -32000, message: 'Internal Server Error' },
      id: 1,
    });
    expect(json.error.data.reason).toBeUndefined();
  }

  test('§15 the first question ever is an error, and asked when Redis is back', async () => {
    const gateway = await open({ MCP_SESSION_KEY_PREFIX: 'down-first:' });
    await redis.kill();
    expectTrueError(await call(gateway, 'once'));
    expectTrueError(await call(gateway, 'swallows'));
    expect(gateway.log.some(({ level }) => level === 'error')).toBe(true);
    await redis.restart();
    await expect
      .poll(async () => (await call(gateway, 'once')).json.result?.resultType, { timeout: 10_000 })
      .toBe('input_required');
    await redis.kill();
  });

  test('§15 a state that cannot be checked yet is not called a wrong one', async () => {
    const env = { MCP_SESSION_KEY_PREFIX: 'down-second:' };
    const requestState = stateIn(await call(await open(env), 'rounds'));
    const fresh = await open(env);
    await redis.kill();
    expectTrueError(await call(fresh, 'rounds', { inputResponses: { who: ADA }, requestState }));
  });

  test('§15 a secret that is known, or of the settings, needs no Redis', async () => {
    const asked = await open({ MCP_SESSION_KEY_PREFIX: 'down-third:' });
    await call(asked, 'once');
    const given = await open(SECRET);
    await redis.kill();
    for (const gateway of [asked, given]) {
      const requestState = stateIn(await call(gateway, 'once'));
      const retry = { inputResponses: { who: ADA }, requestState };
      expect((await call(gateway, 'once', retry)).json.result?.resultType).toBe('complete');
    }
  });

  test('§15 calls that ask nothing go on', async () => {
    const gateway = await open();
    await redis.kill();
    for (const method of ['server/discover', 'tools/list', 'prompts/list']) {
      expect((await stateless(gateway, method)).status).toBe(200);
    }
  });
});
