// A server that was started anew has lost its sessions. Some say so otherwise than by 404, in words that may mean something else.
import { describe, expect, test } from 'vitest';
import { GATEWAY_CALLER, type UpstreamCaller } from '../../../src/mcp/upstream/upstream.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import type { TestResponse } from '../../support/gateway/gateway.ts';
import { closeAfterTest, useFresh, useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { type CatalogGateway, startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import {
  callTool,
  sessionCaller,
  statelessCaller,
  toRequest,
} from '../../support/upstreams/requests.ts';
import {
  LOSS_WAYS,
  LOSSES,
  type Loss,
  type RestartedHttp,
  startRestartedHttp,
} from '../../support/upstreams/restarted-http.ts';

const REVISIONS = ['2025-03-26', '2025-06-18', '2025-11-25'] as const;
const DONE = { content: [{ type: 'text', text: 'done' }] };
const MAY_BE_DONE =
  's had lost its session with the gateway, probably because it was restarted. A new one has been opened. The call may have been done: check before you repeat it.';

const textOf = ({ json }: TestResponse): string => json.result.content[0].text;

/** Calls as a client does: `n` says which one it is. */
const CLIENTS = {
  async own(gateway: CatalogGateway, token: string) {
    const session = await gateway.open({ token });
    const params = (n: number) => ({ name: 's__do', arguments: { n } });
    return (n: number) =>
      gateway.rpc(
        { jsonrpc: '2.0', id: 1, method: 'tools/call', params: params(n) },
        { session, token },
      );
  },
  async shared(gateway: CatalogGateway, token: string) {
    return (n: number) =>
      stateless(gateway, 'tools/call', { name: 's__do', arguments: { n } }, { token });
  },
};

/** Which calls came, and in which sessions. */
const listCalls = ({ received }: RestartedHttp) =>
  received.flatMap(({ method, params, session, isDone }) =>
    method === 'tools/call' ? [{ args: params.arguments, session, isDone }] : [],
  );

const startWith = (server: RestartedHttp, members: object = {}) =>
  startForTest({ file: { mcpServers: { s: { url: server.url, ...members } } } });

const ROWS = REVISIONS.flatMap((revision) =>
  (['own', 'shared'] as const).flatMap((whose) =>
    LOSS_WAYS.map((loss) => ({ revision, whose, loss })),
  ),
);

test.each(ROWS)(
  '§18.3 a server of $revision that lost its sessions ($whose) and says $loss: the call is not sent again, and the next one works',
  async ({ revision, whose, loss }) => {
    const server = closeAfterTest(await startRestartedHttp(revision));
    const gateway = await startWith(server);
    const call = await CLIENTS[whose](gateway, await gateway.issuer.sign());
    expect(textOf(await call(1))).toBe('done');
    server.restart(LOSSES[loss]);
    const failed = (await call(2)).json.result;
    expect(failed).toMatchObject({ isError: true, content: [{ text: MAY_BE_DONE }] });
    expect(textOf(await call(3))).toBe('done');
    const calls = listCalls(server);
    expect(calls.map(({ args }) => args)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    expect(calls.map(({ isDone }) => isDone)).toEqual([true, false, true]);
    expect(calls[2]?.session).not.toBe(calls[0]?.session);
    const [warning] = gateway.log.filter(({ failure }) => failure === 'session_lost');
    expect(warning?.msg).toMatch(/It should answer 404 to a session that it does not know/);
  },
);

describe('a session that the server may have lost', () => {
  const clock = manualClock();
  const server = useFresh(() => startRestartedHttp());
  const opened = useFresh(() => openHttpUpstream({ url: server.url }, { clock }));
  const call = (caller: UpstreamCaller, upstream = opened.upstream) =>
    callTool(upstream, caller, 'do');
  const lost = { failure: 'session_lost' };
  const countLooks = () => [server.count('ping'), server.count('initialize')];

  test.each(['own', 'shared'])('§18.3 (%s) is asked once for all its calls', async (whose) => {
    const caller = whose === 'own' ? sessionCaller() : statelessCaller();
    await call(caller);
    server.restart(LOSSES['410']);
    const calls = await Promise.allSettled(Array.from({ length: 20 }, () => call(caller)));
    for (const one of calls) expect(one).toMatchObject({ status: 'rejected', reason: lost });
    // It, and the one that took its place.
    expect(countLooks()).toEqual([2, 2]);
    expect(await call(caller)).toEqual(DONE);
    expect(listCalls(server).filter(({ isDone }) => isDone)).toHaveLength(2);
  });

  test('§18.3 is asked whenever it has answered since: a server may be started anew often, and say something else each time', async () => {
    const caller = sessionCaller();
    for (const loss of LOSS_WAYS) {
      expect(await call(caller)).toEqual(DONE);
      server.restart(LOSSES[loss]);
      await expect(call(caller)).rejects.toMatchObject(lost);
    }
    expect(await call(caller)).toEqual(DONE);
  });

  test('§18.3 404 is as it was: another session, and the call once more', async () => {
    const caller = sessionCaller();
    await call(caller);
    server.restart((res) => void res.writeHead(404).end());
    expect(await call(caller)).toEqual(DONE);
    expect(countLooks()).toEqual([0, 2]);
  });

  test('§18.3 what was asked for in the one before is asked for again: subscriptions, the log level', async () => {
    const caller = sessionCaller();
    const { upstream } = opened;
    await callTool(upstream, caller, 'do', {}, { logLevel: 'debug' });
    await upstream.request(caller, toRequest('resources/subscribe', { uri: 'a://1' }));
    server.restart(LOSSES['410']);
    await expect(call(caller)).rejects.toMatchObject(lost);
    const asked = () =>
      server.received
        .filter(({ isDone, session }) => isDone && session === listCalls(server).at(-1)?.session)
        .map(({ method, params }) => [method, params]);
    await call(caller);
    await expect.poll(asked).toEqual(
      expect.arrayContaining([
        ['logging/setLevel', { level: 'debug' }],
        ['resources/subscribe', { uri: 'a://1' }],
      ]),
    );
  });

  test.each(LOSS_WAYS)(
    '§18.3 whoever only listens hears again what changes after %s',
    async (loss) => {
      const caller = sessionCaller();
      opened.upstream.listen(caller, { listChanged() {}, resourceUpdated() {} });
      await expect.poll(server.listStreams).toHaveLength(1);
      const [before] = server.listStreams();
      server.restart(LOSSES[loss]);
      await expect.poll(server.listStreams).toEqual([]);
      await expect
        .poll(() => {
          clock.advance(1000);
          return server.listStreams();
        })
        .toEqual([expect.not.stringMatching(`^${before}$`)]);
      expect(await call(caller)).toEqual(DONE);
    },
  );

  test.each(LOSS_WAYS)(
    '§18.3 whoever listens hears it in the new session where the stream of the lost one still stands (%s)',
    async (loss) => {
      const caller = sessionCaller();
      const heard: string[] = [];
      const listChanged = (list: string) => void heard.push(list);
      opened.upstream.listen(caller, { listChanged, resourceUpdated() {} });
      await expect.poll(server.listStreams).toHaveLength(1);
      await call(caller);
      const [before] = server.listStreams();
      server.forgetSessions(LOSSES[loss]);
      await expect(call(caller)).rejects.toMatchObject(lost);
      await expect
        .poll(server.listStreams, { timeout: 5000 })
        .toEqual([expect.not.stringMatching(`^${before}$`)]);
      // What changed in between, nobody told.
      await expect.poll(() => heard).toEqual(['tools']);
    },
  );

  test('§18.3 a stream that was given up is opened again in the session that takes its place', async () => {
    const caller = sessionCaller();
    server.refuse('GET', (res) => void res.writeHead(401).end());
    opened.upstream.listen(caller, { listChanged() {}, resourceUpdated() {} });
    // The session is there: it is the stream that is refused.
    await expect.poll(() => server.count('ping')).toBe(1);
    server.refuse('GET', undefined);
    clock.advance(60_000);
    server.restart(LOSSES['401 with a text']);
    await expect(call(caller)).rejects.toMatchObject(lost);
    await expect.poll(server.listStreams).toHaveLength(1);
  });

  test.each([401, 400, 404, 410, 503])(
    '§18.3 a server that answers each GET by %i keeps its session, which is not opened again and again',
    async (status) => {
      const caller = sessionCaller();
      server.refuse('GET', (res) => void res.writeHead(status).end());
      opened.upstream.listen(caller, { listChanged() {}, resourceUpdated() {} });
      await expect.poll(() => server.count('ping')).toBe(1);
      for (let minute = 0; minute < 10; minute += 1) {
        clock.advance(60_000);
        await call(caller);
      }
      expect(server.count('initialize')).toBe(1);
    },
  );

  test('§18.3 a call that is refused by its nature costs a ping in five seconds, and no handshake', async () => {
    const caller = sessionCaller();
    await call(caller);
    server.refuse('tools/call', (res, { id }) =>
      LOSSES['400 with the id of the request'](res, { id }),
    );
    for (let second = 0; second < 10; second += 1) {
      // The words are the server's own.
      await expect(call(caller)).rejects.toMatchObject({
        failure: 'error',
        jsonRpcError: { message: 'Unknown session' },
      });
      clock.advance(1000);
    }
    expect(countLooks()).toEqual([2, 1]);
  });

  test('§18.3 a server that loses each session at once costs a handshake in five seconds', async () => {
    const caller = sessionCaller();
    await call(caller);
    for (let second = 0; second < 10; second += 1) {
      server.restart(LOSSES['410']);
      await expect(call(caller)).rejects.toThrow();
      clock.advance(1000);
    }
    expect(server.count('initialize')).toBe(3);
    expect(server.count('tools/call')).toBe(11);
  });

  test('§18.3 a server that takes no ping, and refuses calls, keeps its session', async () => {
    const caller = sessionCaller();
    await call(caller);
    for (const method of ['ping', 'tools/call']) server.refuse(method, LOSSES['400 with a text']);
    await expect(call(caller)).rejects.toMatchObject({ message: 'it refuses the request (400)' });
    // The session that was opened to compare is ended.
    await expect.poll(() => server.count('DELETE')).toBe(1);
    for (const method of ['ping', 'tools/call']) server.refuse(method, undefined);
    expect(await call(caller)).toEqual(DONE);
    expect(new Set(listCalls(server).map(({ session }) => session)).size).toBe(1);
  });

  test('§18.4 true 401: credentials that are refused in each session are told as that', async () => {
    const caller = sessionCaller();
    await call(caller);
    const methods = ['ping', 'tools/call', 'initialize'];
    for (const method of methods) server.refuse(method, LOSSES['401 with a challenge']);
    const message = expect.stringContaining('it refuses the credentials');
    await expect(call(caller)).rejects.toMatchObject({ failure: 'unavailable', message });
    expect(server.count('tools/call')).toBe(2);
    for (const method of methods) server.refuse(method, undefined);
    clock.advance(60_000);
    await expect.poll(() => opened.upstream.isUp).toBe(true);
    expect(await call(caller)).toEqual(DONE);
    expect(new Set(listCalls(server).map(({ session }) => session)).size).toBe(1);
  });

  test('§18.4 true 401 where anybody may begin a session: it goes on once the token is good', async () => {
    const caller = sessionCaller();
    await call(caller);
    for (const method of ['ping', 'tools/call'])
      server.refuse(method, LOSSES['401 without a word']);
    await expect(call(caller)).rejects.toThrow(/it refuses the credentials/);
    for (const method of ['ping', 'tools/call']) server.refuse(method, undefined);
    expect(await call(caller)).toEqual(DONE);
    expect(new Set(listCalls(server).map(({ session }) => session)).size).toBe(1);
  });

  test('§18.4 a lost session and credentials that are refused, too: the words are about the credentials', async () => {
    const caller = sessionCaller();
    await call(caller);
    server.restart(LOSSES['400 with the id of the request']);
    server.refuse('initialize', LOSSES['401 without a word']);
    await expect(call(caller)).rejects.toThrow(/it refuses the credentials/);
  });

  test('§18.4 true 503: a server that is down is told as that, and its session goes on', async () => {
    const caller = sessionCaller();
    await call(caller);
    const methods = ['ping', 'tools/call', 'initialize'];
    for (const method of methods) server.refuse(method, LOSSES['503']);
    await expect(call(caller)).rejects.toMatchObject({
      failure: 'interrupted',
      message: 'it fails (503)',
    });
    await expect.poll(() => opened.upstream.isUp).toBe(false);
    for (const method of methods) server.refuse(method, undefined);
    clock.advance(60_000);
    await expect.poll(() => opened.upstream.isUp).toBe(true);
    expect(await call(caller)).toEqual(DONE);
    expect(new Set(listCalls(server).map(({ session }) => session)).size).toBe(1);
  });

  test('§18.4 -32001, by which SDKs tell of a time-out, is passed on, and the session is not asked', async () => {
    const caller = sessionCaller();
    await call(caller);
    const error = { code: -32001, message: 'Request timed out' };
    server.refuse('tools/call', (res, { id }) =>
      res
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, error })),
    );
    await expect(call(caller)).rejects.toMatchObject({ failure: 'error', jsonRpcError: error });
    expect(countLooks()).toEqual([0, 1]);
  });

  test('§18.4 the session of one user that is lost changes nothing for another, nor for the gateway', async () => {
    const bob = { sub: 'bob', claims: { sub: 'bob' }, token: 'the token of bob' };
    const callers = [
      sessionCaller(),
      sessionCaller({ user: bob }),
      statelessCaller(),
      GATEWAY_CALLER,
    ];
    const [ann = GATEWAY_CALLER, ...others] = callers;
    for (const caller of callers) await call(caller);
    const [annsSession] = listCalls(server).map(({ session }) => session);
    server.lose(annsSession, LOSSES['410']);
    const before = listCalls(server).length;
    await expect(call(ann)).rejects.toMatchObject(lost);
    for (const caller of others) expect(await call(caller)).toEqual(DONE);
    const sessions = (calls: ReturnType<typeof listCalls>) => calls.map(({ session }) => session);
    expect(sessions(listCalls(server).slice(before + 1))).toEqual(
      sessions(listCalls(server).slice(1, before)),
    );
    expect(countLooks()).toEqual([2, 5]);
    expect(opened.upstream.isUp).toBe(true);
  });

  test('§18.3 two replicas that notice at once end with one session', async () => {
    const caller = sessionCaller();
    const replica = opened.openReplica();
    await call(caller);
    await call(caller, replica);
    server.restart(LOSSES['401 with a text']);
    const both = await Promise.allSettled([call(caller), call(caller, replica)]);
    for (const one of both) expect(one).toMatchObject({ status: 'rejected', reason: lost });
    expect(await Promise.all([call(caller), call(caller, replica)])).toEqual([DONE, DONE]);
    const [here, there] = listCalls(server).slice(-2);
    expect(here?.session).toBe(there?.session);
  });

  test('§18.3 a replica that notices later goes on with the session that another has opened', async () => {
    const caller = sessionCaller();
    const replica = opened.openReplica();
    await call(caller);
    await call(caller, replica);
    server.restart(LOSSES['410']);
    await expect(call(caller)).rejects.toMatchObject(lost);
    const handshakes = server.count('initialize');
    await expect(call(caller, replica)).rejects.toMatchObject(lost);
    expect(await call(caller, replica)).toEqual(DONE);
    expect(server.count('initialize')).toBe(handshakes);
  });

  test('§18.3 where that one is lost, too, it opens its own', async () => {
    const caller = sessionCaller();
    const replica = opened.openReplica();
    await call(caller);
    await call(caller, replica);
    server.restart(LOSSES['410']);
    await expect(call(caller)).rejects.toMatchObject(lost);
    server.restart(LOSSES['410']);
    await expect(call(caller, replica)).rejects.toMatchObject(lost);
    expect(await call(caller, replica)).toEqual(DONE);
  });
});

test.each(LOSS_WAYS)('§18.4 lists of a server go on after %s', async (loss) => {
  const server = closeAfterTest(await startRestartedHttp());
  const clock = manualClock();
  const gateway = await startForTest({ file: { mcpServers: { s: { url: server.url } } }, clock });
  const session = await gateway.open();
  expect(await gateway.listNames('tools/list', session)).toEqual(['s__do']);
  server.restart(LOSSES[loss]);
  const countLists = () =>
    server.received.filter(({ method, isDone }) => method === 'tools/list' && isDone).length;
  const before = countLists();
  await expect
    .poll(async () => {
      clock.advance(61_000);
      expect(await gateway.listNames('tools/list', session)).toEqual(['s__do']);
      return countLists();
    })
    .toBeGreaterThan(before);
});

describe('with two replicas over Redis', () => {
  const redis = useShared(startRedis);

  test.each(LOSS_WAYS)('§18.3 calls at either go on after %s', async (loss: Loss) => {
    const server = closeAfterTest(await startRestartedHttp());
    const file = { mcpServers: { s: { url: server.url } } };
    const first = await startForTest({ file, env: { REDIS_URL: redis.url } });
    const env = { REDIS_URL: redis.url, OIDC_ISSUER: first.issuer.url };
    const second = await startForTest({ file, env });
    const here = await openClient(first);
    const there = await here.at(second);
    const ask = async (client: typeof here) =>
      (await client.ask('tools/call', { name: 's__do', arguments: {} })).result.content[0].text;
    for (const client of [here, there]) expect(await ask(client)).toBe('done');
    server.restart(LOSSES[loss]);
    for (const client of [here, there]) expect(await ask(client)).toBe(MAY_BE_DONE);
    for (const client of [here, there]) expect(await ask(client)).toBe('done');
    const [one, other] = listCalls(server).slice(-2);
    expect(one?.session).toBe(other?.session);
  });
});
