// §18.3, RFC 6265: cookies of sessions at servers, as balancers with several nodes need them.
import { describe, expect, test } from 'vitest';
import { openClient } from '../../support/clients/session-client.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest, useFresh, useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { issueCertificate } from '../../support/upstreams/certificates.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { listenOnLoopback } from '../../support/upstreams/listen.ts';
import { callTool, sessionCaller, statelessCaller } from '../../support/upstreams/requests.ts';
import {
  type Respond,
  type ScriptedHttp,
  sendJson,
  startEvents,
  startScriptedHttp,
  toResult,
} from '../../support/upstreams/scripted-http.ts';
import { startStickyNodes } from '../../support/upstreams/sticky-nodes.ts';

const redis = useShared(startRedis);

describe.each([{ rotates: false }, { rotates: true }])('nodes behind a cookie %j', (balancer) => {
  test('§18.3 of 200 calls of two users through two replicas none is lost, and nobody has the cookie of another', async () => {
    const nodes = await startStickyNodes(balancer);
    const file = { mcpServers: { s: { url: nodes.url, auth: { type: 'identity' } } } };
    const env = { REDIS_URL: redis.url };
    const first = await startForTest({ file, env });
    const second = await startForTest({ file, env: { ...env, OIDC_ISSUER: first.issuer.url } });
    const clients = await Promise.all(
      ['ada', 'bob', 'ada'].map(async (sub) => {
        const token = await first.issuer.sign({ sub });
        const here = await openClient(first, { token });
        return [here, await here.at(second)];
      }),
    );
    const texts = await Promise.all(
      clients.map(async (replicas) => {
        const found: unknown[] = [];
        for (let at = 0; at < 70; at += 1) {
          const params = { name: 's__any', arguments: {} };
          const answer = await replicas[at % 2]?.ask('tools/call', params);
          found.push(answer.result.content[0].text);
        }
        return new Set(found);
      }),
    );
    expect(nodes.lost()).toBe(0);
    // Each session of a client has one session at the server, whichever replica it came through.
    expect(texts.map(({ size }) => size)).toEqual([1, 1, 1]);
    const users = new Map<string, Set<unknown>>();
    for (const { method, session, authorization = '', cookie } of nodes.seen) {
      if (method === 'server/discover' || method === 'initialize') {
        expect(cookie).toBeUndefined();
        continue;
      }
      expect(cookie).toMatch(new RegExp(`^NODE=${session?.[0]}(-\\d+)?$`));
      const { sub } = JSON.parse(
        Buffer.from(authorization.split('.')[1] ?? '', 'base64url').toString(),
      );
      users.set(cookie ?? '', (users.get(cookie ?? '') ?? new Set()).add(sub));
    }
    if (balancer.rotates) expect([...users.values()].every(({ size }) => size === 1)).toBe(true);
  });
});

test('§18.3 a value that changes with each answer is stored once a minute, whichever replica writes, a new name at once', async () => {
  const clock = manualClock();
  const server = closeAfterTest(await startScriptedHttp('session'));
  let serial = 0;
  let names = ['AWSALB'];
  server.answer('tools/call', (res, request) => {
    serial += 1;
    res.setHeader(
      'set-cookie',
      names.map((name) => `${name}=${serial}; Path=/; Max-Age=604800`),
    );
    sendJson(res, toResult(request, { content: [] }));
  });
  const opened = closeAfterTest(await openHttpUpstream({ url: server.url }, { clock }));
  const replica = opened.openReplica();
  const caller = sessionCaller();
  const countWrites = () => opened.written.length;
  await callTool(opened.upstream, caller, 'any');
  // The session, and the first name.
  await expect.poll(countWrites).toBe(2);
  await callTool(replica, caller, 'any');
  // That the session is in use.
  await expect.poll(countWrites).toBe(3);
  for (let minute = 1; minute <= 5; minute += 1) {
    const before = countWrites();
    for (let call = 0; call < 10; call += 1) {
      await callTool(call % 2 ? opened.upstream : replica, caller, 'any');
    }
    clock.advance(60_000);
    await expect.poll(countWrites).toBe(before + 1);
  }
  const before = countWrites();
  names = ['AWSALB', 'AWSALBCORS'];
  await callTool(opened.upstream, caller, 'any');
  await expect.poll(countWrites).toBe(before + 1);
  // A third replica knows what the store has.
  await callTool(opened.openReplica(), caller, 'any');
  expect(lastCookie(server)).toBe(`AWSALB=${serial - 1}; AWSALBCORS=${serial - 1}`);
  expect(JSON.stringify(opened.written)).not.toMatch(/AWSALB/);
});

const lastCookie = (server: ScriptedHttp) =>
  server.received.findLast(({ message }) => message.method === 'tools/call')?.headers.cookie;

test.each([404, 410])(
  '§18.3 a replica that did not know a name which came later, and is sent elsewhere for that (%i), goes on in the same session with it',
  async (status) => {
    const server = closeAfterTest(await startScriptedHttp('session'));
    let isSet = false;
    const respond: Respond = (res, request) => {
      if (isSet && request.headers.cookie !== 'NODE=1') res.writeHead(status).end();
      else sendJson(res, toResult(request, { content: [] }));
    };
    server.answer('ping', respond);
    server.answer('tools/call', respond);
    const opened = closeAfterTest(await openHttpUpstream({ url: server.url }));
    const replica = opened.openReplica();
    const caller = sessionCaller();
    await callTool(opened.upstream, caller, 'any');
    await callTool(replica, caller, 'any');
    server.answer('tools/call', (res, request) => {
      isSet = true;
      res.setHeader('set-cookie', 'NODE=1; Path=/');
      sendJson(res, toResult(request, { content: [] }));
    });
    // The session, and that it is in use.
    await expect.poll(() => opened.written.length).toBe(2);
    await callTool(opened.upstream, caller, 'any');
    await expect.poll(() => opened.written.length).toBe(3);
    server.answer('tools/call', respond);
    const called = callTool(replica, caller, 'any');
    if (status === 404) await called;
    else await expect(called).rejects.toMatchObject({ failure: 'session_lost' });
    for (const upstream of [replica, opened.upstream]) await callTool(upstream, caller, 'any');
    expect(server.count('initialize')).toBe(1);
  },
);

test('§18.3 names that are made up anew with each answer are not each stored at once', async () => {
  const server = closeAfterTest(await startScriptedHttp('session'));
  let serial = 0;
  server.answer('tools/call', (res, request) => {
    serial += 1;
    res.setHeader('set-cookie', [`n${serial - 1}=; Max-Age=0`, `n${serial}=x`]);
    sendJson(res, toResult(request, { content: [] }));
  });
  const opened = closeAfterTest(await openHttpUpstream({ url: server.url }));
  const caller = sessionCaller();
  for (let call = 0; call < 50; call += 1) await callTool(opened.upstream, caller, 'any');
  expect(lastCookie(server)).toBe(`n${serial - 1}=x`);
  expect(opened.written.length).toBeLessThan(12);
});

/** What comes back to the path /a/mcp of what one answer sets. */
const RULES: readonly (readonly [lines: readonly string[], back: string | undefined])[] = [
  [['a=1'], 'a=1'],
  [['a=1', 'b=2'], 'a=1; b=2'],
  [['a=1', 'a=2'], 'a=2'],
  [['a=b=c=='], 'a=b=c=='],
  [['a="q"'], 'a="q"'],
  [['a=x y, z'], 'a=x y, z'],
  [[' a = 1 '], 'a=1'],
  [['a='], 'a='],
  [['a=\x80\xff'], 'a=\x80\xff'],
  [['a=1; Domain=elsewhere.example; HttpOnly; SameSite=Strict; Partitioned; Priority=High'], 'a=1'],
  [['a=1; Path=/'], 'a=1'],
  [['a=1; path=/a'], 'a=1'],
  [['a=1; Path=/a/'], 'a=1'],
  [['a=1; Path=/a/mcp'], 'a=1'],
  [['a=1; Path=/a/mcp/'], undefined],
  [['a=1; Path=/a/mc'], undefined],
  [['a=1; Path=/b'], undefined],
  [['a=1; Path=b'], 'a=1'],
  [['a=1; Path'], 'a=1'],
  [['a=1; Path=/', 'a=2; Path=/a'], 'a=2; a=1'],
  [['a=1; Secure'], undefined],
  [['a=1; Max-Age=60'], 'a=1'],
  [['a=1', 'a=2; Max-Age=0'], undefined],
  [['a=1; Max-Age=-1'], undefined],
  [['a=1; Max-Age=soon'], 'a=1'],
  [[`a=1; Max-Age=${'9'.repeat(400)}`], 'a=1'],
  [['a=1; Expires=Wed, 09 Jun 2100 10:18:14 GMT'], 'a=1'],
  [['a=1; Expires=Wed, 09-Jun-2100 10:18:14 GMT'], 'a=1'],
  [['a=1; expires=Wed, 09 Jun 2021 10:18:14 GMT'], undefined],
  [['a=1; Expires=Thu, 01-Jan-70 00:00:00 GMT'], undefined],
  [['a=1; Expires=Wed, 09 Jun 2021 10:18:14 GMT; Max-Age=60'], 'a=1'],
  [['a=1; Max-Age=0; Expires=Wed, 09 Jun 2100 10:18:14 GMT'], undefined],
  [['a=1; Expires=never'], 'a=1'],
  [['__proto__=1', 'constructor=2', 'toString=3'], '__proto__=1; constructor=2; toString=3'],
  [['', '=', '=1', 'a', ';', 'a b=1', 'a(=1', 'ä=1'], undefined],
  [['a=1\tb', 'b=2'], 'b=2'],
  // At most 8, of 4,096 bytes: those that were set last.
  [
    Array.from({ length: 20 }, (_, at) => `n${at}=${at}`),
    Array.from({ length: 8 }, (_, at) => `n${at + 12}=${at + 12}`).join('; '),
  ],
  [['a=1', `b=${'x'.repeat(4093)}`], `b=${'x'.repeat(4093)}`],
  [['a=1', `b=${'x'.repeat(4094)}`], 'a=1'],
  [['a=1', `b=${'x'.repeat(4050)}`], `a=1; b=${'x'.repeat(4050)}`],
  [['a=1', `b=${'x'.repeat(2000)}`, `c=${'x'.repeat(2091)}`], `c=${'x'.repeat(2091)}`],
];

describe('the cookies of a session', () => {
  const server = useFresh(async () => {
    const started = await startScriptedHttp('session');
    return { ...started, url: started.url.replace('/mcp', '/a/mcp') };
  });
  const opened = useFresh(() => openHttpUpstream({ url: server.url }));

  /** The next answer to a call sets these. */
  function setOnce(lines: readonly string[]): void {
    let left: readonly string[] = lines;
    server.answer('tools/call', (res, request) => {
      if (left.length > 0) res.setHeader('set-cookie', left);
      left = [];
      sendJson(res, toResult(request, { content: [] }));
    });
  }

  test.each(RULES)('RFC 6265 §5: of %j comes back %j', async (lines, back) => {
    const caller = sessionCaller();
    setOnce(lines);
    await callTool(opened.upstream, caller, 'any');
    await callTool(opened.upstream, caller, 'any');
    expect(lastCookie(server)).toBe(back);
    // Another replica has them from the store.
    const askElsewhere = async () => {
      await callTool(opened.openReplica(), caller, 'any');
      return lastCookie(server);
    };
    await expect.poll(askElsewhere).toBe(back);
    // Another session has none.
    await callTool(opened.upstream, sessionCaller(), 'any');
    expect(lastCookie(server)).toBeUndefined();
  });

  test('§18.3 too many are told of in the log, without their names and values', async () => {
    setOnce(Array.from({ length: 20 }, (_, at) => `hidden${at}=hidden`));
    await callTool(opened.upstream, sessionCaller(), 'any');
    const warnings = opened.lines.filter(({ msg }) => msg.includes('sets more cookies'));
    expect(warnings).toHaveLength(1);
    expect(JSON.stringify(opened.lines)).not.toContain('hidden');
  });

  test('§18.3 one of a megabyte ends the call alone that it came with', async () => {
    const caller = sessionCaller();
    setOnce([`a=${'x'.repeat(1_000_000)}`]);
    await expect(callTool(opened.upstream, caller, 'any')).rejects.toMatchObject({
      failure: 'invalid',
    });
    setOnce([]);
    await callTool(opened.upstream, caller, 'any');
    expect(lastCookie(server)).toBeUndefined();
  });

  test('§18.3 what initialize sets goes with all that is sent in the session, and with nothing else', async () => {
    const serverInfo = { name: 'raw', version: '1' };
    const capabilities = { tools: { listChanged: true }, logging: {} };
    server.answer('initialize', (res, request) => {
      res.setHeader('mcp-session-id', 'one').setHeader('set-cookie', 'a=1');
      sendJson(res, toResult(request, { protocolVersion: '2025-11-25', capabilities, serverInfo }));
    });
    server.answer('GET', (res) => void startEvents(res));
    const discover = { 'set-cookie': 'of=discover', 'content-type': 'application/json' };
    server.answer('server/discover', (res) => void res.writeHead(400, discover).end());
    const caller = sessionCaller();
    await callTool(opened.upstream, caller, 'any', {}, { logLevel: 'info' });
    const stop = opened.upstream.listen(caller, { listChanged() {}, resourceUpdated() {} });
    await expect.poll(() => server.count('GET')).toBe(1);
    stop();
    await opened.upstream.endSession(caller);
    const sent = server.received.map(({ http, headers, message }) => [
      message.method ?? http,
      headers.cookie,
    ]);
    expect(sent).toEqual([
      ['server/discover', undefined],
      ['initialize', undefined],
      ['notifications/initialized', 'a=1'],
      ['logging/setLevel', 'a=1'],
      ['tools/call', 'a=1'],
      ['GET', 'a=1'],
      ['DELETE', 'a=1'],
    ]);
  });

  test('§18.3 those of a session that is lost are not those of the one in its place', async () => {
    const caller = sessionCaller();
    setOnce(['a=1']);
    await callTool(opened.upstream, caller, 'any');
    let isLost = true;
    server.answer('tools/call', (res, request) => {
      if (isLost) res.writeHead(404, { 'set-cookie': 'b=2' }).end();
      else sendJson(res, toResult(request, { content: [] }));
      isLost = false;
    });
    await callTool(opened.upstream, caller, 'any');
    const sent = server.received.map(({ headers }) => headers.cookie);
    expect(sent.slice(-4)).toEqual(['a=1', undefined, undefined, undefined]);
  });

  test('§18.3 what the answer to DELETE sets brings back nothing to the store', async () => {
    const caller = sessionCaller();
    await callTool(opened.upstream, caller, 'any');
    const { length } = opened.written;
    server.answer('DELETE', (res) => void res.writeHead(202, { 'set-cookie': 'a=1' }).end());
    await opened.upstream.endSession(caller);
    await expect.poll(() => server.count('DELETE')).toBe(1);
    expect(opened.written.length).toBe(length);
  });

  test('§18.3 callers without a session share them for each user', async () => {
    const callAs = (sub: string) =>
      callTool(
        opened.upstream,
        statelessCaller({ user: { sub, claims: { sub }, token: sub } }),
        'any',
      );
    setOnce(['of=ada']);
    await callAs('ada');
    await callAs('bob');
    expect(lastCookie(server)).toBeUndefined();
    await callAs('ada');
    expect(lastCookie(server)).toBe('of=ada');
  });

  test('§18.3 "cookies": false keeps none', async () => {
    const { upstream } = closeAfterTest(
      await openHttpUpstream({ url: server.url, cookies: false }),
    );
    const caller = sessionCaller();
    setOnce(['a=1']);
    await callTool(upstream, caller, 'any');
    await callTool(upstream, caller, 'any');
    expect(lastCookie(server)).toBeUndefined();
  });
});

test('§18.3 one that has expired is sent no more', async () => {
  const clock = manualClock();
  const server = closeAfterTest(await startScriptedHttp('session'));
  server.answer('tools/call', (res, request) => {
    if (request.headers.cookie === undefined && server.count('tools/call') === 1)
      res.setHeader('set-cookie', 'a=1; Max-Age=60');
    sendJson(res, toResult(request, { content: [] }));
  });
  const { upstream } = closeAfterTest(await openHttpUpstream({ url: server.url }, { clock }));
  const caller = sessionCaller();
  await callTool(upstream, caller, 'any');
  clock.advance(59_000);
  await callTool(upstream, caller, 'any');
  expect(lastCookie(server)).toBe('a=1');
  clock.advance(1000);
  await callTool(upstream, caller, 'any');
  expect(lastCookie(server)).toBeUndefined();
});

test('§18.3 one that is Secure goes back over TLS', async () => {
  const { key, cert } = await issueCertificate('127.0.0.1');
  const server = closeAfterTest(await startScriptedHttp('session', { tls: { key, cert } }));
  server.answer('tools/call', (res, request) => {
    res.setHeader('set-cookie', 'a=1; Secure');
    sendJson(res, toResult(request, { content: [] }));
  });
  const { upstream } = closeAfterTest(await openHttpUpstream({ url: server.url, ca: cert }));
  const caller = sessionCaller();
  await callTool(upstream, caller, 'any');
  await callTool(upstream, caller, 'any');
  expect(lastCookie(server)).toBe('a=1');
});

test('§18.3 a stateless server gets none back', async () => {
  const server = closeAfterTest(await startScriptedHttp('stateless'));
  server.answer('tools/call', (res, request) => {
    res.setHeader('set-cookie', 'a=1');
    sendJson(res, toResult(request, { content: [] }));
  });
  const { upstream } = closeAfterTest(await openHttpUpstream({ url: server.url }));
  for (const caller of [sessionCaller(), statelessCaller()]) {
    await callTool(upstream, caller, 'any');
    await callTool(upstream, caller, 'any');
  }
  expect(server.received.filter(({ headers }) => headers.cookie !== undefined)).toEqual([]);
});

test('§18.3 HTTP+SSE: what its stream and its answers set goes with what it is told', async () => {
  const cookies: unknown[] = [];
  let write = (_text: string) => {};
  const server = closeAfterTest(
    await listenOnLoopback(
      (req, res) => {
        if (req.method === 'GET') {
          cookies.push(['GET', req.headers.cookie]);
          write = (event) => void res.write(event);
          res.setHeader('set-cookie', ['node=1; Path=/', 'elsewhere=1; Path=/sse']);
          res.writeHead(200, { 'content-type': 'text/event-stream' });
          write('event: endpoint\ndata: /messages?id=1\n\n');
          return;
        }
        let text = '';
        req
          .on('data', (chunk) => (text += chunk))
          .on('end', () => {
            const { id, method } = JSON.parse(text);
            cookies.push([method, req.headers.cookie]);
            res.setHeader('set-cookie', 'told=1').writeHead(202).end();
            const serverInfo = { name: 'sse', version: '1' };
            const result =
              method === 'initialize'
                ? { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo }
                : { content: [] };
            if (id !== undefined)
              write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
          });
      },
      0,
      '/sse',
    ),
  );
  const opened = closeAfterTest(await openHttpUpstream({ url: server.url, transport: 'sse' }));
  await callTool(opened.upstream, sessionCaller(), 'any');
  await callTool(opened.upstream, sessionCaller(), 'any');
  const once = [
    ['GET', undefined],
    ['initialize', 'node=1'],
    ['notifications/initialized', expect.stringMatching(/^node=1(; told=1)?$/)],
    ['tools/call', expect.stringMatching(/^node=1(; told=1)?$/)],
  ];
  expect(cookies).toEqual([...once, ...once]);
});

test('§18.3 cookies pass between neither a client and a server, nor a server and a client', async () => {
  const server = closeAfterTest(await startScriptedHttp('session'));
  for (const method of ['tools/list', 'tools/call'])
    server.answer(method, (res, request) => {
      res.setHeader('set-cookie', 'of=server');
      const tools = [{ name: 'any', inputSchema: { type: 'object' } }];
      sendJson(res, toResult(request, { tools, content: [] }));
    });
  const gateway = await startForTest({ file: { mcpServers: { s: server.url } } });
  const session = await gateway.open();
  for (let call = 0; call < 2; call += 1) {
    const { headers, status } = await gateway.rpc(
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 's__any' } },
      { session, headers: { cookie: 'of=client' } },
    );
    expect(status).toBe(200);
    expect(headers['set-cookie']).toBeUndefined();
  }
  const sent = server.received.flatMap(({ headers }) => headers.cookie ?? []);
  expect(new Set(sent)).toEqual(new Set(['of=server']));
});
