// §15: whoever stands between client and gateway may cut what is silent: nothing that takes long is.
import { describe, expect, test } from 'vitest';
import type { Catalog } from '../../../src/mcp/catalog/catalog.ts';
import { createChangingResources } from '../../support/catalogs/changing-resources.ts';
import { createWaitingCatalog } from '../../support/catalogs/waiting-catalog.ts';
import { type EventStream, openEvents } from '../../support/clients/event-stream.ts';
import {
  openRevisionClient,
  REVISIONS,
  SESSION_REVISIONS,
} from '../../support/clients/revision-client.ts';
import { BOTH_TYPES } from '../../support/clients/session-client.ts';
import { STATELESS } from '../../support/clients/stateless.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { type IdleBalancer, startIdleBalancer } from '../../support/gateway/idle-balancer.ts';
import { useFreshGateway } from '../../support/gateway/use-gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const { catalog: waiting, calls } = createWaitingCatalog();
const { catalog: changing } = createChangingResources();
/** One has the tools, the other the resources. */
const catalog: Catalog = {
  ...changing,
  offers: { ...changing.offers, ...waiting.offers, resources: true, subscriptions: true },
  listTools: waiting.listTools,
  callTool: waiting.callTool,
};
const SETTINGS = { STREAM_AFTER_MS: '2000', STREAM_KEEPALIVE_MS: '2000', MCP_STREAMS: 'true' };

let clock: ManualClock;
const gateway = useFreshGateway(() => {
  clock = manualClock();
  calls.clear();
  return { env: SETTINGS, deps: { catalog, clock } };
});

const openBalancer = async (): Promise<IdleBalancer> =>
  closeAfterTest(
    await startIdleBalancer({
      clock,
      target: await gateway.listen(),
      idleMs: 5_000,
      dueMs: 2_500,
    }),
  );

async function post(
  port: number,
  revision: string,
  method: string,
  params: object,
  accept: string,
) {
  const client = await openRevisionClient(gateway, revision);
  const { message, headers } = await client.request(method, { ...params });
  return openEvents({ port, headers: { ...headers, accept }, body: message });
}

const callWait = (port: number, revision: string, accept = BOTH_TYPES): Promise<EventStream> =>
  post(port, revision, 'tools/call', { name: 'wait', arguments: { name: 'a' } }, accept);

const RESULT = { id: 1, result: { content: [{ type: 'text', text: 'late' }] } };

async function begun(name = 'a') {
  await expect.poll(() => calls.has(name)).toBe(true);
  const call = calls.get(name);
  if (call === undefined) throw new Error('There is no such call');
  return call;
}

describe('behind a balancer that cuts after 5 s of silence', () => {
  test.each(REVISIONS)('§15 a call of 24 s is answered (%s)', async (revision) => {
    const balancer = await openBalancer();
    const answering = callWait(balancer.port, revision);
    const call = await begun();
    await balancer.pass(24_000);
    expect(balancer.cut).toBe(0);
    call.answer('late');
    const answer = await answering;
    expect(answer).toMatchObject({ status: 200, isStream: true });
    expect(await answer.rest()).toMatchObject([RESULT]);
  });

  test.each(SESSION_REVISIONS)('§15 the stream of a session stays open (%s)', async (revision) => {
    const balancer = await openBalancer();
    const client = await openRevisionClient(gateway, revision);
    const { headers } = await client.request('ping');
    const stream = await openEvents({
      port: balancer.port,
      method: 'GET',
      headers: { ...headers, accept: 'text/event-stream' },
    });
    expect(stream.status).toBe(200);
    await balancer.pass(24_000);
    expect(balancer.cut).toBe(0);
  });

  test('§15 a subscription stays open', async () => {
    const balancer = await openBalancer();
    const notifications = { resourceSubscriptions: ['watched://a'] };
    const method = 'subscriptions/listen';
    const stream = await post(balancer.port, STATELESS, method, { notifications }, BOTH_TYPES);
    expect(stream.status).toBe(200);
    await balancer.pass(24_000);
    expect(balancer.cut).toBe(0);
  });
});
