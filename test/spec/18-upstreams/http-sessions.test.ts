import { describe, expect, test } from 'vitest';
import { GATEWAY_CALLER } from '../../../src/mcp/upstream/upstream.ts';
import { createServerSessions, ServerSession } from '../../../src/servers/http/sessions.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import {
  callTool,
  NO_CAPABILITIES,
  sessionCaller,
  statelessCaller,
  toRequest,
} from '../../support/upstreams/requests.ts';
import {
  sendJson,
  startScriptedHttp,
  toError,
  toResult,
} from '../../support/upstreams/scripted-http.ts';
import { startSdk1Http } from '../../support/upstreams/sdk-1-http.ts';

const ECHO = { content: [{ type: 'text', text: 'x' }] };
const FIFTEEN_MINUTES_MS = 900_000;
const bob = { sub: 'bob', claims: { sub: 'bob' }, token: 'the token of bob' };

describe('sessions at a server of the session era', () => {
  const server = useFresh(() => startSdk1Http());
  const opened = useFresh(() => openHttpUpstream({ url: server.url }));
  const echo = (caller: Parameters<typeof callTool>[1], upstream = opened.upstream) =>
    callTool(upstream, caller, 'echo', { text: 'x' });

  test('§18.3 the session of a client has one of its own, opened at first use, once', async () => {
    const [one, other] = [sessionCaller(), sessionCaller()];
    await Promise.all([echo(one), echo(one), echo(other), echo(one)]);
    await echo(other);
    expect(server.opened()).toBe(2);
  });

  test('§18.3 any replica goes on with it, and its id lies sealed in the store', async () => {
    const caller = sessionCaller();
    await echo(caller);
    expect(await echo(caller, opened.openReplica())).toEqual(ECHO);
    expect(server.opened()).toBe(1);
    const [id = ''] = server.sessions();
    const written = JSON.stringify(opened.written);
    expect(written).toContain(caller.sessionId);
    expect(written).not.toContain(id);
  });

  test('§18.3 two replicas that begin at once end with one session', async () => {
    const caller = sessionCaller();
    const replica = opened.openReplica();
    await Promise.all([echo(caller), echo(caller, replica)]);
    await expect.poll(() => server.sessions()).toHaveLength(1);
    expect(await Promise.all([echo(caller), echo(caller, replica)])).toEqual([ECHO, ECHO]);
  });

  test('§18.3 calls in a session that is known ask the store nothing', async () => {
    const caller = sessionCaller();
    await echo(caller);
    const before = opened.trips();
    await echo(caller);
    expect(opened.trips()).toBe(before);
  });

  test('§18.3 a session that the server forgot is opened anew, once for all calls, and each is repeated', async () => {
    const caller = sessionCaller();
    await echo(caller);
    const replica = opened.openReplica();
    await echo(caller, replica);
    await server.forgetSessions();
    const calls = Array.from({ length: 20 }, () => echo(caller));
    expect(await Promise.all(calls)).toEqual(calls.map(() => ECHO));
    expect(server.opened()).toBe(2);
    // The other replica takes over what this one opened.
    expect(await echo(caller, replica)).toEqual(ECHO);
    expect(server.opened()).toBe(2);
  });

  test('§18.3 callers without a session share one for each user, client and capabilities', async () => {
    await Promise.all([echo(statelessCaller()), echo(statelessCaller())]);
    expect(server.opened()).toBe(1);
    await echo(statelessCaller({ user: bob }));
    await echo(statelessCaller({ clientId: 'another client' }));
    await echo(statelessCaller({ capabilities: NO_CAPABILITIES }));
    await echo(GATEWAY_CALLER);
    expect(server.opened()).toBe(5);
  });

  test('§18.3 endSession ends it, wherever it was used', async () => {
    const caller = sessionCaller();
    await echo(caller);
    await opened.openReplica().endSession(caller);
    expect(server.sessions()).toEqual([]);
    await opened.upstream.endSession(sessionCaller());
  });

  test('§18.3 endSession ends the one that another replica opened in its place', async () => {
    const caller = sessionCaller();
    await echo(caller);
    await server.forgetSessions();
    await echo(caller, opened.openReplica());
    expect(server.sessions()).toHaveLength(1);
    await opened.upstream.endSession(caller);
    expect(server.sessions()).toEqual([]);
  });

  test('§18.3 close ends shared sessions, and leaves those of clients to other replicas', async () => {
    const caller = sessionCaller();
    await echo(caller);
    await echo(statelessCaller());
    expect(server.sessions()).toHaveLength(2);
    await opened.upstream.close(0);
    expect(server.sessions()).toHaveLength(1);
    expect(await echo(caller, opened.openReplica())).toEqual(ECHO);
  });

  test('§18.3 close waits for calls under way, for as long as it may', async () => {
    const caller = sessionCaller();
    await opened.upstream.describe(caller);
    const call = echo(caller);
    const closed = opened.upstream.close(60_000);
    await expect(echo(caller)).rejects.toMatchObject({ failure: 'unavailable' });
    expect(await call).toEqual(ECHO);
    await closed;
  });
});

describe('what a session is asked for', () => {
  const server = useFresh(() => startScriptedHttp('session'));
  const clock = manualClock();
  const opened = useFresh(() => openHttpUpstream({ url: server.url }, { clock }));
  const call = (caller = sessionCaller(), given = {}) =>
    callTool(opened.upstream, caller, 'any', {}, given);
  const paramsOf = (method: string) =>
    server.received
      .filter(({ message }) => message.method === method)
      .map(({ message }) => message.params);

  test('§18.3 initialize declares what the client can be asked, and names the gateway', async () => {
    const capabilities = { elicitation: true, sampling: false, roots: true };
    await call(sessionCaller({ capabilities }));
    expect(paramsOf('initialize')).toEqual([
      {
        protocolVersion: '2025-11-25',
        capabilities: { elicitation: {}, roots: {} },
        clientInfo: { name: 'postern', version: expect.any(String) },
      },
    ]);
    expect(server.count('notifications/initialized')).toBe(1);
  });

  test.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])(
    '§18.3 a server may answer %s, which its requests then name',
    async (protocolVersion) => {
      server.answer('initialize', (res, request) =>
        sendJson(res, toResult(request, { protocolVersion, capabilities: {} })),
      );
      await call();
      expect(server.received.at(-1)?.headers['mcp-protocol-version']).toBe(protocolVersion);
      expect(server.received.at(-1)?.headers['mcp-session-id']).toBeUndefined();
      expect(await opened.upstream.describe(GATEWAY_CALLER)).toMatchObject({ protocolVersion });
    },
  );

  test('§18.3 logging/setLevel is sent when the level that is wanted has changed', async () => {
    const caller = sessionCaller();
    for (const logLevel of [undefined, 'info', 'info', 'debug', undefined, 'debug', 'info']) {
      await call(caller, { logLevel });
    }
    expect(paramsOf('logging/setLevel')).toEqual([
      { level: 'info' },
      { level: 'debug' },
      { level: 'info' },
    ]);
  });

  /** Answers calls of the session that there is now by 400, and those of others rightly. */
  async function refuseSession(caller: ReturnType<typeof sessionCaller>, body: unknown) {
    await call(caller);
    const lost = server.received.at(-1)?.headers['mcp-session-id'];
    server.answer('tools/call', (res, request) =>
      request.headers['mcp-session-id'] === lost
        ? sendJson(res, typeof body === 'function' ? body(request) : body, 400)
        : sendJson(res, toResult(request, ECHO)),
    );
  }

  const toUnnamed = (message: string) => ({
    jsonrpc: '2.0',
    error: { code: -32000, message },
    id: null,
  });

  test.each([
    'Session not found',
    'Bad Request: No valid session ID provided',
    'Bad Request: Server not initialized',
  ])(
    '§18.3 a server that says 400 to a session it forgot (%s) gets another one, too',
    async (message) => {
      const caller = sessionCaller();
      await refuseSession(caller, toUnnamed(message));
      expect(await call(caller)).toEqual(ECHO);
      expect(server.count('initialize')).toBe(2);
    },
  );

  test.each([
    ['an error that names neither request nor session', toUnnamed('Bad Request')],
    ['no error of JSON-RPC', { error: 'session not found' }],
    ['no JSON', 'session not found'],
    [
      'an error of the call itself',
      (request: Parameters<typeof toError>[0]) => toError(request, -32000, 'no session of yours'),
    ],
  ])(
    '§18.3 any other 400 (%s) is no lost session: the call is not sent again',
    async (_what, body) => {
      const caller = sessionCaller();
      await refuseSession(caller, body);
      await expect(call(caller)).rejects.toThrow();
      expect(server.count('tools/call')).toBe(2);
      expect(server.count('initialize')).toBe(1);
    },
  );

  test('§18.3 a logging/setLevel that fails is no reason for the call to fail', async () => {
    server.answer('logging/setLevel', (res) => sendJson(res, 'no JSON'));
    expect(await call(sessionCaller(), { logLevel: 'info' })).toEqual({ content: [] });
  });

  test('§18.3 a shared session ends after its time, also where a request had to be sent twice', async () => {
    const caller = statelessCaller();
    await call(caller);
    let count = 0;
    server.answer('tools/list', (res, request) => {
      count += 1;
      if (count === 1) res.destroy();
      else sendJson(res, toResult(request, { tools: [] }));
    });
    await opened.upstream.request(caller, toRequest('tools/list', {}));
    expect(count).toBe(2);
    clock.advance(FIFTEEN_MINUTES_MS + 120_000);
    await expect.poll(() => server.count('DELETE')).toBe(1);
  });

  test('§18.3 a shared session ends after its time, also where a request could not be written', async () => {
    const caller = statelessCaller();
    await call(caller);
    // As a module that guards calls may make of one.
    const args = { amount: 1n };
    const failing = callTool(opened.upstream, caller, 'any', args);
    await expect(failing).rejects.toThrow(TypeError);
    clock.advance(FIFTEEN_MINUTES_MS + 120_000);
    await expect.poll(() => server.count('DELETE')).toBe(1);
  });

  test('§18.3 a server that forgets each session gets the request twice, not more', async () => {
    server.answer('tools/call', (res) => void res.writeHead(404).end());
    await expect(call()).rejects.toMatchObject({ failure: 'unavailable' });
    expect(server.count('tools/call')).toBe(2);
  });

  test('§18.3 a shared session ends after 15 minutes without a call', async () => {
    const caller = statelessCaller();
    await call(caller);
    clock.advance(FIFTEEN_MINUTES_MS - 60_000);
    await call(caller);
    clock.advance(FIFTEEN_MINUTES_MS - 60_000);
    expect(server.count('DELETE')).toBe(0);
    clock.advance(120_000);
    await expect.poll(() => server.count('DELETE')).toBe(1);
    await call(caller);
    expect(server.count('initialize')).toBe(2);
  });

  test('§18.3 that of a client is forgotten by then, and found in the store', async () => {
    const caller = sessionCaller();
    await call(caller);
    clock.advance(FIFTEEN_MINUTES_MS + 120_000);
    await call(caller);
    expect(server.count('DELETE')).toBe(0);
    expect(server.count('initialize')).toBe(1);
  });

  test('§18.3 its record outlives a session that is used by an hour', async () => {
    const caller = sessionCaller();
    await call(caller);
    // Each call slides the client's session, which lives for an hour here.
    for (let minute = 0; minute < 180; minute += 50) {
      clock.advance(3_000_000);
      await call(caller);
      // What was written meanwhile is on the disk by then.
      await opened.store.set('another', 'value', 1);
    }
    clock.advance(3_600_000 + 1_800_000);
    await call(caller);
    expect(server.count('initialize')).toBe(1);
    clock.advance(3_600_000 + 3_600_000 + 1000);
    await call(caller);
    expect(server.count('initialize')).toBe(2);
  });

  test('§18.3 a server of the same name at another address is never told the session', async () => {
    const other = closeAfterTest(await startScriptedHttp('session'));
    const caller = sessionCaller();
    await call(caller);
    const moved = opened.openReplica({ url: other.url });
    await callTool(moved, caller, 'any');
    expect(other.count('initialize')).toBe(1);
  });
});

describe('the era of a server', () => {
  const clock = manualClock();

  test('§18.3 is asked for once', async () => {
    const server = closeAfterTest(await startScriptedHttp('stateless'));
    const { upstream, close } = await openHttpUpstream({ url: server.url });
    const callers = [sessionCaller(), statelessCaller(), GATEWAY_CALLER];
    await Promise.all(callers.map((caller) => callTool(upstream, caller, 'any')));
    await upstream.describe(GATEWAY_CALLER);
    expect(server.count('server/discover')).toBe(1);
    expect(server.count('initialize')).toBe(0);
    await close();
  });

  test.each([
    ['a method that it does not know', 200, -32601],
    ['a request without a session', 400, -32000],
    ['a version that it does not know', 400, -32022],
    ['something that is not found', 404, -32601],
    ['an internal error', 500, -32603],
  ])('§18.3 is that of sessions where server/discover is %s', async (_what, status, code) => {
    const server = closeAfterTest(await startScriptedHttp('session'));
    server.answer('server/discover', (res, request) =>
      sendJson(res, toError(request, code, 'no'), status),
    );
    const { upstream } = closeAfterTest(await openHttpUpstream({ url: server.url }));
    expect(await upstream.describe(sessionCaller())).toMatchObject({ era: 'session' });
  });

  test.each([
    ['session', 'stateless'],
    ['stateless', 'session'],
  ] as const)('§18.3 is noticed when it changes from %s to %s', async (before, after) => {
    const server = closeAfterTest(await startScriptedHttp(before));
    const { upstream } = closeAfterTest(await openHttpUpstream({ url: server.url }, { clock }));
    const caller = sessionCaller();
    await callTool(upstream, caller, 'any');
    server.become(after);
    const refuse = (res: Parameters<typeof sendJson>[0]) =>
      sendJson(res, { jsonrpc: '2.0', error: { code: -32000, message: 'no' }, id: null }, 400);
    server.answer('tools/call', (res, request) => {
      const { headers } = request;
      const isStateless = headers['mcp-protocol-version'] === '2026-07-28';
      const isOurs = after === 'stateless' ? isStateless : !isStateless;
      if (isOurs) sendJson(res, toResult(request, ECHO));
      else refuse(res);
    });
    clock.advance(60_000);
    expect(await callTool(upstream, caller, 'any')).toEqual(ECHO);
    expect(await upstream.describe(caller)).toMatchObject({ era: after });
  });
});

describe('a server of sessions that is replaced by one without', () => {
  const clock = manualClock();
  const server = useFresh(() => startScriptedHttp('session'));
  const opened = useFresh(() => openHttpUpstream({ url: server.url }, { clock }));

  function replace(): void {
    server.become('stateless');
    server.answer('initialize', (res, request) =>
      sendJson(res, toError(request, -32601, 'Method not found'), 404),
    );
    server.answer('tools/call', (res, request) =>
      request.headers['mcp-protocol-version'] === '2026-07-28'
        ? sendJson(res, toResult(request, ECHO))
        : sendJson(res, toError(request, -32022, 'Unsupported protocol version'), 400),
    );
    clock.advance(60_000);
  }

  test('§18.3 is noticed by calls that come at the same time', async () => {
    const callers = [sessionCaller(), sessionCaller(), statelessCaller()];
    for (const caller of callers) await callTool(opened.upstream, caller, 'any');
    replace();
    const calls = callers.map((caller) => callTool(opened.upstream, caller, 'any'));
    expect(await Promise.all(calls)).toEqual(callers.map(() => ECHO));
  });

  test('§18.3 is noticed by the first call of a client that is new', async () => {
    await callTool(opened.upstream, sessionCaller(), 'any');
    replace();
    expect(await callTool(opened.upstream, sessionCaller(), 'any')).toEqual(ECHO);
  });
});

test('§18.3 sessions of many users: the one that is ended to make room is none that is in use', async () => {
  const ended: unknown[] = [];
  const records = {
    read: async () => undefined,
    readOrWrite: async (_id: string, text: string) => text,
    update: async () => undefined,
    take: async () => undefined,
  };
  const sessions = createServerSessions(manualClock(), records, () => undefined, {
    initialize: async ({ user }) => new ServerSession(user?.sub, '2025-11-25', 0),
    terminate: async (_caller, { id }) => void ended.push(id),
    restore: async () => {},
  });
  const openAs = (sub: string) =>
    sessions.open(statelessCaller({ user: { sub, claims: { sub }, token: sub } }));
  const busy = await openAs('busy');
  const request = toRequest('tools/call', { name: 'slow' });
  busy.openRequests.add({ id: 1, request, deadline: undefined });
  for (let user = 0; user < 10_000; user += 1) await openAs(`user-${user}`);
  expect(ended).toEqual(['user-0']);
  await sessions.close();
});
