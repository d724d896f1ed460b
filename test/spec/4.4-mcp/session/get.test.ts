// GET /mcp: who gets the stream of a session, and how long it lasts.
import { describe, expect, test } from 'vitest';
import { createChangingResources, updated } from '../../../support/catalogs/changing-resources.ts';
import { openEvents } from '../../../support/clients/event-stream.ts';
import { clientOf, openClient } from '../../../support/clients/session-client.ts';
import { advanceSlowly, type ManualClock, manualClock } from '../../../support/gateway/clock.ts';
import { startGateway } from '../../../support/gateway/gateway.ts';
import { useFreshGateway, useGateway } from '../../../support/gateway/use-gateway.ts';

const { catalog, change, watchers } = createChangingResources();
const STREAMS = { MCP_STREAMS: 'true' };
const UNKNOWN = '5f0c1f0e-6d5a-4c3e-9b57-0a2f4f8f9a11';

const reasonOf = (text: string) => JSON.parse(text).error.data?.reason;

describe('GET /mcp without MCP_STREAMS', () => {
  test.each([{}, { MCP_STREAMS: 'false' }])(
    '§15 with %j it is 405, even in a session',
    async (env) => {
      const gateway = await startGateway({ env, deps: { catalog } });
      try {
        const client = await openClient(gateway);
        const answer = await client.watch();
        expect(answer.status).toBe(405);
        expect(answer.headers.allow).toBe('POST, DELETE');
        expect(JSON.parse(await answer.text())).toMatchObject({
          error: { code: -32000, message: 'Method Not Allowed' },
        });
      } finally {
        await gateway.close();
      }
    },
  );
});

describe('who gets the stream', () => {
  const gateway = useGateway({ env: STREAMS, deps: { catalog } });

  test('§15 a session gets its stream at once, with the headers of a stream', async () => {
    const stream = await (await openClient(gateway)).watch({ origin: 'http://localhost:3000' });
    expect(stream.status).toBe(200);
    expect(stream.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': expect.stringMatching(/\bno-cache\b/),
      'x-accel-buffering': 'no',
      'x-session-expires-at': expect.stringMatching(/^\d{4}-.*Z$/),
      'x-ratelimit-limit': '10000',
      'access-control-allow-origin': 'http://localhost:3000',
      'x-content-type-options': 'nosniff',
    });
    stream.hangUp();
  });

  test.each([
    { what: 'without a session', session: undefined, status: 400, reason: 'missing_session_id' },
    { what: 'of an unknown session', session: UNKNOWN, status: 404, reason: 'session_not_found' },
    { what: 'of what is no id', session: '../../x', status: 404, reason: 'session_not_found' },
  ])('§7.2 a stream $what is $status', async ({ session, status, reason }) => {
    const answer = await openEvents({
      port: await gateway.listen(),
      method: 'GET',
      headers: {
        authorization: `Bearer ${await gateway.issuer.sign()}`,
        accept: 'text/event-stream',
        ...(session !== undefined && { 'mcp-session-id': session }),
      },
    });
    expect(answer.status).toBe(status);
    expect(reasonOf(await answer.text())).toBe(reason);
  });

  test('§3.1 another user’s token gets 404, and the stream that is open stays', async () => {
    const client = await openClient(gateway);
    const own = await client.watch();
    const token = await gateway.issuer.sign({ sub: 'mallory' });
    const answer = await clientOf(await gateway.listen(), client.session, token).watch();
    expect(answer.status).toBe(404);
    expect(reasonOf(await answer.text())).toBe('session_not_found');
    await client.ask('resources/subscribe', { uri: 'watched://a' });
    change('a');
    expect(await own.next()).toEqual(updated('a'));
    own.hangUp();
  });

  test.each(['application/json', '*/*', 'text/*', '', 'text/event-stream;q=0'])(
    '§15 with Accept "%s" it is 406, and the stream that is open stays',
    async (accept) => {
      const client = await openClient(gateway);
      const own = await client.watch();
      const answer = await client.watch({ accept });
      expect(answer.status).toBe(406);
      expect(JSON.parse(await answer.text())).toMatchObject({
        error: { code: -32000, message: 'Not Acceptable' },
      });
      await client.ask('resources/subscribe', { uri: 'watched://b' });
      change('b');
      expect(await own.next()).toEqual(updated('b'));
      own.hangUp();
    },
  );

  test('§15 HEAD says what GET would, and the stream that is open stays', async () => {
    const client = await openClient(gateway);
    const own = await client.watch();
    const answer = await openEvents({
      port: await gateway.listen(),
      method: 'HEAD',
      headers: {
        authorization: `Bearer ${await gateway.issuer.sign()}`,
        accept: 'text/event-stream',
        'mcp-session-id': client.session,
      },
    });
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('text/event-stream');
    expect(await answer.text()).toBe('');
    await client.ask('resources/subscribe', { uri: 'watched://a' });
    change('a');
    expect(await own.next()).toEqual(updated('a'));
    own.hangUp();
  });

  test.each([
    { what: 'without a token', headers: { authorization: '' } },
    { what: 'with a token of nobody', headers: { authorization: 'Bearer x.y.z' } },
  ])('§7.1 $what it is 401', async ({ headers }) => {
    const client = await openClient(gateway);
    const answer = await client.watch(headers);
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toContain('Bearer');
    await answer.text();
  });

  test('§15 other methods name GET among those that are allowed', async () => {
    const answer = await gateway.request({ method: 'PUT', path: '/mcp' });
    expect(answer.status).toBe(405);
    expect(answer.headers.allow?.split(', ').toSorted()).toEqual(['DELETE', 'GET', 'HEAD', 'POST']);
  });
});

test('§15 without authentication nobody has to log in for a stream', async () => {
  const env = { ...STREAMS, AUTH_REQUIRED: 'false' };
  const gateway = await startGateway({ env, deps: { catalog } });
  try {
    const { session } = await openClient(gateway);
    const stream = await openEvents({
      port: await gateway.listen(),
      method: 'GET',
      headers: { 'mcp-session-id': session, accept: 'text/event-stream' },
    });
    await gateway.call(session, 'resources/subscribe', { uri: 'watched://a' });
    change('a');
    expect(await stream.next()).toEqual(updated('a'));
    stream.hangUp();
  } finally {
    await gateway.close();
  }
});

test('§8.1 a stream is counted, and refused, by the limit of /mcp', async () => {
  const env = { ...STREAMS, MCP_RATE_LIMIT_MAX: '3' };
  const gateway = await startGateway({ env, deps: { catalog } });
  try {
    // From another address than the test's own.
    const client = await openClient(gateway);
    const statuses: number[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      const answer = await client.watch({ 'x-forwarded-for': '192.0.2.7' });
      statuses.push(answer.status);
      answer.hangUp();
    }
    expect(statuses).toEqual([200, 200, 200, 429]);
  } finally {
    await gateway.close();
  }
});

describe('how long a stream lasts', () => {
  let clock: ManualClock;
  const gateway = useFreshGateway(() => {
    clock = manualClock();
    return { env: STREAMS, deps: { catalog, clock } };
  });

  test('§15 it ends after five minutes, and may be opened again', async () => {
    const client = await openClient(gateway);
    await client.ask('resources/subscribe', { uri: 'watched://a' });
    const stream = await client.watch();
    await advanceSlowly(clock, 299_999);
    change('a');
    expect(await stream.next()).toEqual(updated('a'));
    clock.advance(1);
    expect(await stream.next()).toBeUndefined();
    await expect.poll(() => watchers('a')).toBe(0);
    const again = await client.watch();
    change('a');
    expect(await again.next()).toEqual(updated('a'));
  });

  test('§15 a second one ends the first, and has the five minutes for itself', async () => {
    const client = await openClient(gateway);
    await client.ask('resources/subscribe', { uri: 'watched://a' });
    const first = await client.watch();
    await advanceSlowly(clock, 200_000);
    const second = await client.watch();
    expect(await first.rest()).toEqual([]);
    await advanceSlowly(clock, 200_000);
    change('a');
    expect(await second.next()).toEqual(updated('a'));
  });

  test('§4.5 DELETE ends it', async () => {
    const client = await openClient(gateway);
    const other = await openClient(gateway);
    const [stream, theirs] = [await client.watch(), await other.watch()];
    await other.ask('resources/subscribe', { uri: 'watched://a' });
    expect(await client.end()).toBe(204);
    expect(await stream.rest()).toEqual([]);
    change('a');
    expect(await theirs.next()).toEqual(updated('a'));
  });

  test('§4.3 a gateway that closes ends it at once, and does not wait', async () => {
    const client = await openClient(gateway);
    const streams = [await client.watch(), await (await openClient(gateway)).watch()];
    // The clock stands still: neither the stream's own end nor a grace period comes.
    await gateway.gateway.close();
    for (const stream of streams) expect(await stream.rest()).toEqual([]);
    expect(watchers('a')).toBe(0);
  });

  test('§15 a client that hangs up ends it, and nobody watches any more', async () => {
    // Of a revision whose clients do not come back for what they have missed.
    const client = await openClient(gateway, { protocolVersion: '2024-11-05' });
    const stream = await client.watch();
    expect(watchers('a')).toBe(1);
    stream.hangUp();
    await expect.poll(() => watchers('a')).toBe(0);
  });

  test('§15.1 for a client that may come back it is watched for half a minute', async () => {
    const client = await openClient(gateway);
    const stream = await client.watch();
    stream.hangUp();
    await expect
      .poll(() => {
        clock.advance(10_000);
        return watchers('a');
      })
      .toBe(0);
  });

  test('§15.1 who comes back gets what happened meanwhile, then what happens', async () => {
    const client = await openClient(gateway);
    for (const name of ['a', 'b']) {
      await client.ask('resources/subscribe', { uri: `watched://${name}` });
    }
    const stream = await client.watch();
    const first = (await stream[Symbol.asyncIterator]().next()).value;
    expect(first).toMatchObject({ data: '', id: expect.any(String) });
    change('a');
    expect(await stream.next()).toEqual(updated('a'));
    stream.hangUp();
    change('b');
    await client.ask('ping');
    const resumed = await client.watch({ 'last-event-id': first?.id ?? '' });
    expect(await resumed.next()).toEqual(updated('a'));
    expect(await resumed.next()).toEqual(updated('b'));
    change('a');
    expect(await resumed.next()).toEqual(updated('a'));
  });

  test('§15.1 where that is not kept any more, it looks again at what may have changed', async () => {
    const client = await openClient(gateway);
    const stream = await client.watch();
    const first = (await stream[Symbol.asyncIterator]().next()).value;
    const unknown = first?.id?.replace(/\.[0-9a-f]{12}\./, '.0123456789ab.') ?? '';
    const resumed = await client.watch({ 'last-event-id': unknown });
    expect(await resumed.next()).toMatchObject({ method: 'notifications/tools/list_changed' });
  });
});
