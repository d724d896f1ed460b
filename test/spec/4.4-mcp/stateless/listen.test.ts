// subscriptions/listen, 2026-07-28, with MCP_STREAMS=true.
import { EventEmitter, once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { createLocalCatalog } from '../../../../src/index.ts';
import type { Catalog } from '../../../../src/mcp/catalog/catalog.ts';
import { createChangingResources } from '../../../support/catalogs/changing-resources.ts';
import { openEvents } from '../../../support/clients/event-stream.ts';
import { SERVER_INFO, stateless, statelessRequest } from '../../../support/clients/stateless.ts';
import { advanceSlowly, manualClock } from '../../../support/gateway/clock.ts';
import { startGateway } from '../../../support/gateway/gateway.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';
import { closeAfterTest } from '../../../support/lifetimes.ts';

const { catalog, change, watchers } = createChangingResources();
const STREAMS = { MCP_STREAMS: 'true' };
const LISTEN = 'subscriptions/listen';
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

type Id = string | number;

const gateway = useGateway({ env: STREAMS, deps: { catalog } });

async function listen(
  notifications: unknown,
  { at = gateway, id = 1 as Id, accept = 'application/json, text/event-stream', token = '' } = {},
) {
  const { message, headers } = statelessRequest(LISTEN, { notifications }, { id });
  const authorization = `Bearer ${token || (await at.issuer.sign())}`;
  return openEvents({
    port: await at.listen(),
    headers: { ...headers, accept, authorization },
    body: message,
  });
}

const acknowledged = (id: Id, notifications: object) => ({
  jsonrpc: '2.0',
  method: 'notifications/subscriptions/acknowledged',
  params: { notifications, _meta: { [SUBSCRIPTION_ID]: id } },
});
const updated = (id: Id, name: 'a' | 'b') => ({
  jsonrpc: '2.0',
  method: 'notifications/resources/updated',
  params: { uri: `watched://${name}`, _meta: { [SUBSCRIPTION_ID]: id } },
});

describe('subscriptions/listen', () => {
  const [a, b] = ['watched://a', 'watched://b'];

  test.each([
    { asked: { resourceSubscriptions: [a] }, granted: { resourceSubscriptions: [a] } },
    { asked: { resourceSubscriptions: [b, a] }, granted: { resourceSubscriptions: [b, a] } },
    {
      asked: { resourceSubscriptions: [a, 'watched://still', 'watched://nowhere'] },
      granted: { resourceSubscriptions: [a] },
    },
    {
      asked: {
        toolsListChanged: true,
        promptsListChanged: true,
        resourcesListChanged: true,
        resourceSubscriptions: [b],
      },
      granted: { resourceSubscriptions: [b] },
    },
    { asked: { resourceSubscriptions: ['watched://still'] }, granted: {} },
    { asked: { toolsListChanged: true }, granted: {} },
    { asked: {}, granted: {} },
  ])('§15 of $asked $granted is acknowledged, first of all', async ({ asked, granted }) => {
    const stream = await listen(asked);
    expect(stream.status).toBe(200);
    expect(stream.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'x-accel-buffering': 'no',
      'x-ratelimit-limit': '10000',
    });
    expect(stream.headers).not.toHaveProperty('mcp-session-id');
    expect(stream.headers).not.toHaveProperty('x-session-expires-at');
    expect(await stream.next()).toEqual(acknowledged(1, granted));
    stream.hangUp();
  });

  test.each([1, 0, 'mine', ''])('§15 what changes is told with the id %j', async (id) => {
    const stream = await listen({ resourceSubscriptions: [a] }, { id });
    expect(await stream.next()).toEqual(acknowledged(id, { resourceSubscriptions: [a] }));
    change('b');
    change('a');
    expect(await stream.next()).toEqual(updated(id, 'a'));
    stream.hangUp();
  });

  test('§15 two streams of one user, with one id, are two', async () => {
    const token = await gateway.issuer.sign();
    const one = await listen({ resourceSubscriptions: [a] }, { token });
    const other = await listen({ resourceSubscriptions: [b] }, { token });
    await Promise.all([one.next(), other.next()]);
    change('a');
    change('b');
    expect(await one.next()).toEqual(updated(1, 'a'));
    expect(await other.next()).toEqual(updated(1, 'b'));
    for (const stream of [one, other]) stream.hangUp();
    await expect.poll(() => watchers('a')).toBe(0);
  });

  test.each([
    { what: 'no filter', notifications: undefined },
    { what: 'a filter that is a list', notifications: ['toolsListChanged'] },
    { what: 'a filter of text', notifications: 'all' },
    { what: 'URIs that are no list', notifications: { resourceSubscriptions: a } },
    { what: 'a URI that is no text', notifications: { resourceSubscriptions: [a, 1] } },
  ])('§15 with $what it is -32602, and no stream', async ({ notifications }) => {
    const answer = await listen(notifications);
    expect(answer.isStream).toBe(false);
    expect(JSON.parse(await answer.text())).toMatchObject({
      error: { code: -32602, message: 'Invalid params' },
      id: 1,
    });
    expect(watchers('a')).toBe(0);
  });

  test.each(['application/json', '*/*', ''])('§15 with Accept "%s" it is 406', async (accept) => {
    const answer = await listen({ resourceSubscriptions: [a] }, { accept });
    expect(answer.status).toBe(406);
    expect(JSON.parse(await answer.text())).toMatchObject({ error: { code: -32000 } });
    expect(watchers('a')).toBe(0);
  });

  test('§7.1 without a good token it is 401', async () => {
    const answer = await listen({}, { token: 'x.y.z' });
    expect(answer.status).toBe(401);
    await answer.text();
  });
});

describe('servers that nobody can listen to', () => {
  test.each([
    { what: 'without MCP_STREAMS', env: {}, entries: catalog },
    { what: 'with nothing to watch', env: STREAMS, entries: createLocalCatalog({}) },
  ])('§15 $what it is 404 -32601, and not advertised', async ({ env, entries }) => {
    const at = closeAfterTest(await startGateway({ env, deps: { catalog: entries } }));
    const answer = await listen({ resourceSubscriptions: ['watched://a'] }, { at });
    expect(answer.status).toBe(404);
    expect(JSON.parse(await answer.text())).toMatchObject({ error: { code: -32601 }, id: 1 });
    const { capabilities } = (await stateless(at, 'server/discover')).json.result;
    expect(capabilities.resources?.subscribe).toBeUndefined();
  });

  test('§15 with it, it is advertised', async () => {
    const { capabilities } = (await stateless(gateway, 'server/discover')).json.result;
    expect(capabilities.resources).toEqual({ subscribe: true });
  });
});

describe('the end of listening', () => {
  const result = {
    jsonrpc: '2.0',
    id: 'mine',
    result: {
      resultType: 'complete',
      _meta: expect.objectContaining({ [SUBSCRIPTION_ID]: 'mine' }),
    },
  };

  test('§15 after five minutes it ends with its result', async () => {
    const clock = manualClock();
    const at = await startGateway({ env: STREAMS, deps: { catalog, clock } });
    try {
      const stream = await listen({}, { at, id: 'mine' });
      await stream.next();
      await advanceSlowly(clock, 300_000);
      const rest = await stream.rest();
      expect(rest).toEqual([result]);
      expect(rest[0].result._meta[SERVER_INFO]).toEqual({
        name: expect.any(String),
        version: expect.any(String),
      });
    } finally {
      await at.close();
    }
  });

  test('§4.3 a gateway that closes ends it at once, with its result', async () => {
    const clock = manualClock();
    const at = await startGateway({ env: STREAMS, deps: { catalog, clock } });
    const stream = await listen({ resourceSubscriptions: ['watched://a'] }, { at, id: 'mine' });
    await stream.next();
    // The clock stands still: no grace period is waited for.
    await at.close();
    expect(await stream.rest()).toEqual([result]);
    expect(watchers('a')).toBe(0);
  });
});

test('§15 a subscription names at most 200 resources', async () => {
  const name = (count: number) => ({
    notifications: {
      resourceSubscriptions: Array.from({ length: count }, (_, index) => `watched://${index}`),
    },
  });
  const { json } = await stateless(gateway, LISTEN, name(201), {
    headers: { accept: 'text/event-stream' },
  });
  expect(json.error.code).toBe(-32602);
  const stream = await listen(name(200).notifications);
  expect(await stream.next()).toEqual(acknowledged(1, {}));
  stream.hangUp();
});

describe('beside calls', () => {
  const call = async (at: typeof gateway, token: string) =>
    (await stateless(at, 'tools/call', { name: 'nothing' }, { token })).status;

  test('§12 a user whose streams are all open can call, and another one can listen', async () => {
    const clock = manualClock();
    const env = { ...STREAMS, MCP_USER_CALLS_MAX: '1' };
    const at = closeAfterTest(await startGateway({ env, deps: { catalog, clock } }));
    const token = await at.issuer.sign({ sub: 'listens' });
    const other = await at.issuer.sign({ sub: 'other' });
    const streams = [];
    for (let count = 0; count < 50; count += 1) streams.push(await listen({}, { at, token }));
    expect(streams.map(({ status }) => status)).toEqual(Array.from({ length: 50 }, () => 200));
    // Long enough for a call to count.
    clock.advance(1001);
    const refused = await listen({}, { at, token });
    expect(refused.status).toBe(503);
    expect(JSON.parse(await refused.text()).error.data.reason).toBe('too_many_streams');
    expect(await call(at, token)).toBe(200);
    const stream = await listen({}, { at, token: other });
    expect(stream.status).toBe(200);
    expect(await call(at, other)).toBe(200);
    for (const { hangUp } of [...streams, stream]) hangUp();
  });

  test('§12 a stream counts as a call while it is not open, because a resource is asked about', async () => {
    const clock = manualClock();
    const asked = new EventEmitter();
    const slow: Catalog = {
      ...catalog,
      async canWatch() {
        const answered = once(asked, 'answered');
        asked.emit('asked');
        await answered;
        return true;
      },
    };
    const env = { ...STREAMS, MCP_USER_CALLS_MAX: '1' };
    const at = closeAfterTest(await startGateway({ env, deps: { catalog: slow, clock } }));
    const token = await at.issuer.sign({ sub: 'listens' });
    const begun = once(asked, 'asked');
    const opening = listen({ resourceSubscriptions: ['watched://a'] }, { at, token });
    await begun;
    clock.advance(1001);
    expect(await call(at, token)).toBe(429);
    expect((await listen({}, { at, token })).status).toBe(429);
    expect(await call(at, await at.issuer.sign({ sub: 'other' }))).toBe(200);
    asked.emit('answered');
    const stream = await opening;
    expect(stream.status).toBe(200);
    expect(await call(at, token)).toBe(200);
    stream.hangUp();
  });
});
