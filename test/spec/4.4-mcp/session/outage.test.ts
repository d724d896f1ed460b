// Streams, questions and cancelled calls while the shared store is away, and after it.
import { afterEach, expect, test } from 'vitest';
import { ABLE, createAskingCatalog } from '../../../support/catalogs/session-asking-catalog.ts';
import { lastOf, openClient } from '../../../support/clients/session-client.ts';
import { INITIALIZE_REQUEST } from '../../../support/gateway/gateway.ts';
import { useFreshGateway } from '../../../support/gateway/use-gateway.ts';
import { useFresh } from '../../../support/lifetimes.ts';
import { startRedis } from '../../../support/stores/redis.ts';

const { catalog } = createAskingCatalog();
const DECLINE = { action: 'decline' };
const DECLINED = { content: [{ type: 'text', text: JSON.stringify({ form: DECLINE }) }] };

const redis = useFresh(startRedis);
const env = () => ({ REDIS_URL: redis.url, MCP_STREAMS: 'true' });
const one = useFreshGateway(() => ({ env: env(), deps: { catalog } }));
const other = useFreshGateway(() => ({
  env: { ...env(), OIDC_ISSUER: one.issuer.url },
  deps: { catalog },
}));
afterEach(() => redis.thaw());

/** Asks until it is answered as hoped for. */
async function until(hoped: () => Promise<boolean>): Promise<void> {
  await expect.poll(hoped, { timeout: 20_000 }).toBe(true);
}

test('§17 while the store is away a stream is 500, not 404, and a question stays open', async () => {
  const client = await openClient(one, { capabilities: ABLE });
  const elsewhere = await client.at(other);
  const stream = await client.call('asks', { kinds: ['form'] });
  const { id } = await stream.next();
  redis.freeze();
  const refused = await client.watch();
  expect(refused.status).toBe(500);
  expect(JSON.parse(await refused.text())).toMatchObject({
    error: { code: -32000, message: 'Internal Server Error' },
  });
  expect(await elsewhere.answer(id, DECLINE)).toBe(500);
  expect(await elsewhere.cancel(1)).toBe(500);
  redis.thaw();
  await until(async () => (await elsewhere.answer(id, DECLINE)) === 202);
  expect(await lastOf(stream)).toMatchObject({ result: DECLINED });
});

test('§17 when the store was lost and is back, replicas hear each other again', async () => {
  const token = await one.issuer.sign();
  await redis.kill();
  await redis.restart();
  await until(async () => {
    const statuses = await Promise.all([
      one.rpc(INITIALIZE_REQUEST),
      other.rpc(INITIALIZE_REQUEST, { token }),
    ]);
    return statuses.every(({ status }) => status === 200);
  });
  const able = await openClient(one, { token, capabilities: ABLE });
  const elsewhere = await able.at(other);
  const stream = await able.call('asks', { kinds: ['form'] }, { id: 'asked' });
  await stream.next();
  let isOver = false;
  const last = lastOf(stream).finally(() => {
    isOver = true;
  });
  // The channel may come back later than the rest; clients may say it again.
  await until(async () => {
    await elsewhere.cancel('asked');
    return isOver;
  });
  expect(await last).toMatchObject({ error: { data: { reason: 'request_cancelled' } } });
});
