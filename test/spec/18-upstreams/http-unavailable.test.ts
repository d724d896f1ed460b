import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { GATEWAY_CALLER } from '../../../src/mcp/upstream/upstream.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { createAvailability } from '../../../src/servers/http/availability.ts';
import { toConnectionError } from '../../../src/servers/http/failures.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { issueCertificate } from '../../support/upstreams/certificates.ts';
import { HTTP_DEFAULTS, openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { callTool, sessionCaller } from '../../support/upstreams/requests.ts';
import {
  type Respond,
  sendJson,
  startScriptedHttp,
  toError,
  toResult,
} from '../../support/upstreams/scripted-http.ts';
import { takeTurns } from '../../support/upstreams/turns.ts';

const caller = sessionCaller();
const RESULT = { content: [] };

async function openTo(
  given: Parameters<typeof openHttpUpstream>[0],
  deps?: Parameters<typeof openHttpUpstream>[1],
) {
  const opened = closeAfterTest(await openHttpUpstream(given, deps));
  const states: string[] = [];
  opened.upstream.onStateChange((isUp, reason) => void states.push(`${isUp}: ${reason}`));
  return { ...opened, states };
}

/** A port on which nothing listens. */
async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

const isDownLine = ({ msg }: { readonly msg: string }) => msg.includes('is not available');

describe('a server that is not there', () => {
  test('§18.4 its calls fail, one log line says why, and calls meanwhile do not look for it', async () => {
    const port = await findFreePort();
    const { upstream, lines, states } = await openTo({ url: `http://127.0.0.1:${port}/mcp` });
    for (let call = 0; call < 3; call += 1) {
      await expect(callTool(upstream, caller, 'any')).rejects.toMatchObject({
        failure: 'unavailable',
        message: 'it refuses connections',
      });
    }
    expect(upstream.isUp).toBe(false);
    expect(states).toEqual(['false: it refuses connections']);
    expect(lines.filter(isDownLine)).toHaveLength(1);
  });

  test('§18.4 it is looked for after 1, 2, 4 … 30 seconds, and calls work once it is found', async () => {
    const clock = manualClock();
    const port = await findFreePort();
    const { upstream, states } = await openTo({ url: `http://127.0.0.1:${port}/mcp` }, { clock });
    await expect(callTool(upstream, caller, 'any')).rejects.toMatchObject({
      failure: 'unavailable',
    });
    const server = closeAfterTest(await startScriptedHttp('session', { port }));
    await expect(callTool(upstream, caller, 'any')).rejects.toMatchObject({
      failure: 'unavailable',
    });
    expect(server.received).toEqual([]);
    clock.advance(1000);
    await expect.poll(() => upstream.isUp).toBe(true);
    expect(await callTool(upstream, caller, 'any')).toEqual({ content: [] });
    expect(states).toEqual(['false: it refuses connections', 'true: it answers']);
  });

  test('§18.4 probes come slower, up to one in 30 seconds', async () => {
    const clock = manualClock();
    const server = closeAfterTest(await startScriptedHttp('session'));
    server.answer('server/discover', (res) => void res.writeHead(503).end());
    const { upstream } = await openTo({ url: server.url }, { clock });
    await expect(upstream.describe(caller)).rejects.toMatchObject({ failure: 'interrupted' });
    const probes = () => server.count('server/discover') - 1;
    for (const [at, pauseMs] of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000].entries()) {
      clock.advance(pauseMs - 1);
      // What it could have sent is on its way by then.
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
      expect(probes()).toBe(at);
      clock.advance(1);
      await expect.poll(probes).toBe(at + 1);
      // The answer has been read, and the next pause has begun.
      for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
    }
  });

  test('§18.4 a server that takes the connection and says nothing is given up on', async () => {
    const sockets = new Set<Socket>();
    const silent = createServer((socket) => void sockets.add(socket.on('error', () => {})));
    await new Promise<void>((listening) => silent.listen(0, '127.0.0.1', listening));
    const { port } = silent.address() as AddressInfo;
    const { upstream } = await openTo({ url: `https://127.0.0.1:${port}/mcp` });
    await expect(callTool(upstream, caller, 'any')).rejects.toMatchObject({
      failure: 'unavailable',
      message: 'it does not answer',
    });
    for (const socket of sockets) socket.destroy();
    await new Promise((closed) => silent.close(closed));
  });

  test('§18.4 a server that was killed is noticed by the call that breaks', async () => {
    const server = await startScriptedHttp('session');
    const { upstream } = await openTo({ url: server.url });
    expect(await callTool(upstream, caller, 'any')).toEqual({ content: [] });
    await server.close();
    await expect(callTool(upstream, caller, 'any')).rejects.toMatchObject({
      failure: expect.stringMatching(/^(unavailable|interrupted)$/),
    });
    await expect.poll(() => upstream.isUp).toBe(false);
  });
});

const REFUSALS: readonly (readonly [what: string, respond: Respond, words: RegExp])[] = [
  [
    'a redirect',
    (res) => void res.writeHead(307, { location: 'http://127.0.0.2/x' }).end(),
    /redirects/,
  ],
  [
    '401',
    (res) => void res.writeHead(401, { 'www-authenticate': 'Bearer' }).end(),
    /refuses the credentials/,
  ],
  [
    '401 of a server with its own login',
    (res) =>
      void res
        .writeHead(401, { 'www-authenticate': 'Bearer resource_metadata="http://127.0.0.2/x"' })
        .end(),
    /log in to it \(401\): give it "auth": \{"type": "oauth"\} in the configuration file/,
  ],
  ['403', (res) => void res.writeHead(403).end(), /refuses the credentials/],
  [
    '404',
    (res) => void res.writeHead(404).end('nothing'),
    /^no MCP server answers at its address \(404\): check the path of its "url", which often is \/mcp$/,
  ],
  [
    'the page of an error',
    (res) => void res.writeHead(404, { 'content-type': 'text/html; charset=utf-8' }).end('<p>'),
    /^no MCP server answers at its address \(404, text\/html\)/,
  ],
  [
    '405',
    (res) => void res.writeHead(405, { 'content-type': '127.0.0.2 <secret>' }).end(),
    /^no MCP server answers at its address \(405\)/,
  ],
  [
    '413',
    (res) => void res.writeHead(413).end(),
    /longer than it, or a proxy in front of it, takes \(413\)/,
  ],
  ['500', (res) => void res.writeHead(500).end(), /fails \(500\)/],
  ['503', (res) => void res.writeHead(503).end(), /fails \(503\)/],
  [
    'an error to initialize',
    (res, request) => sendJson(res, toError(request, -32603, 'secret')),
    /refuses to begin/,
  ],
];

describe('a server that refuses the token in "headers"', () => {
  const refuseToken =
    /^it refuses the token in its "headers" \(401\): check that it is complete .*, is for this server, and has neither expired nor been revoked$/;
  const wantLogin: Respond = (res) =>
    void res.writeHead(401, { 'www-authenticate': 'Bearer resource_metadata="x"' }).end();
  const refuse: Respond = (res) => void res.writeHead(401).end();

  test.each([
    ['a token', { authorization: 'Bearer t' }, refuse, refuseToken],
    ['a key', { 'x-api-key': 'k' }, refuse, refuseToken],
    ['a token, and wants a login', { authorization: 'Bearer t' }, wantLogin, refuseToken],
    ['something else', { 'x-tenant': 'a' }, refuse, /refuses the credentials/],
    ['a token of a user', undefined, refuse, /refuses the credentials/],
  ])('§18.4 says so where it was sent %s', async (_what, headers, respond, words) => {
    const server = closeAfterTest(await startScriptedHttp('session'));
    server.answer('server/discover', respond);
    const auth = { type: 'forward', audience: 'a' } as const;
    const { upstream } = await openTo({
      url: server.url,
      ...(headers === undefined ? { auth, headers: { authorization: 'Bearer t' } } : { headers }),
    });
    await expect(upstream.describe(caller)).rejects.toThrow(words);
  });
});

describe('a server of which calls fail', () => {
  test('§18.4 that is there stays up, and is looked for ever less often', async () => {
    const clock = manualClock();
    const server = closeAfterTest(await startScriptedHttp('session'));
    server.answer('tools/call', (res) => void res.writeHead(504).end());
    const { upstream, lines, states } = await openTo({ url: server.url }, { clock });
    await upstream.describe(caller);
    const before = server.count('initialize');
    const looks = () => server.count('initialize') - before;
    const fail = () =>
      expect(callTool(upstream, caller, 'slow')).rejects.toMatchObject({ failure: 'interrupted' });
    await fail();
    await expect.poll(looks).toBe(1);
    for (const [index, pauseMs] of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000].entries()) {
      await fail();
      // The pause begins once the answer to the look has come, which is after it was asked.
      await takeTurns(500);
      clock.advance(pauseMs - 1);
      await fail();
      expect(looks()).toBe(1 + index);
      clock.advance(1);
      await expect.poll(looks).toBe(2 + index);
    }
    expect(upstream.isUp).toBe(true);
    expect(states).toEqual(['true: it answers']);
    expect(lines.filter(isDownLine)).toEqual([]);
  });

  test('§18.4 that gets too many requests by then is there all the same', async () => {
    const server = closeAfterTest(await startScriptedHttp('session'));
    const { upstream, states } = await openTo({ url: server.url });
    await upstream.describe(caller);
    const before = server.count('server/discover');
    server.answer('server/discover', (res) => void res.writeHead(429).end());
    server.answer('tools/call', (res) => void res.writeHead(503).end());
    await expect(callTool(upstream, caller, 'any')).rejects.toThrow();
    await expect.poll(() => server.count('server/discover')).toBe(before + 1);
    server.answer('tools/call', (res, request) => sendJson(res, toResult(request, RESULT)));
    for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
    expect(await callTool(upstream, caller, 'any')).toEqual(RESULT);
    expect(states).toEqual(['true: it answers']);
  });

  test('§18.4 that is there no longer is down once the gateway has looked for it', async () => {
    const server = closeAfterTest(await startScriptedHttp('session'));
    const { upstream } = await openTo({ url: server.url });
    await upstream.describe(caller);
    for (const method of ['tools/call', 'initialize', 'server/discover'])
      server.answer(method, (res) => void res.writeHead(503).end());
    await expect(callTool(upstream, caller, 'any')).rejects.toMatchObject({
      failure: 'interrupted',
    });
    await expect.poll(() => upstream.isUp).toBe(false);
  });
});

describe('a connection that fails', () => {
  /** A server that is up, of which the gateway's own look fails by the code `look`, if any. */
  function useAvailability(look?: string) {
    let looks = 0;
    const { log } = collectLog();
    const config = { ...HTTP_DEFAULTS, url: 'http://127.0.0.1:1/mcp' };
    const availability = createAvailability({ clock: systemClock, log }, config, async () => {
      looks += 1;
      if (look !== undefined) throw fail(look);
    });
    closeAfterTest(availability);
    availability.noteUp();
    return { availability, looks: () => looks };
  }
  const fail = (code: string) =>
    toConnectionError(Object.assign(new Error('connect'), { code }), 'unsent');

  test.each(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'CERT_HAS_EXPIRED'])(
    '§18.4 by %s says that the server is down',
    (code) => {
      const { availability } = useAvailability();
      availability.noteFailure(fail(code));
      expect(availability.state.isUp).toBe(false);
    },
  );

  test.each(['ETIMEDOUT', 'ERR_PROXY_REFUSED', 'EAI_AGAIN', 'ECONNRESET', 'EPROTO'])(
    '§18.4 by %s has the gateway look for itself',
    async (code) => {
      const there = useAvailability();
      there.availability.noteFailure(fail(code));
      expect(there.looks()).toBe(1);
      expect(there.availability.state.isUp).toBe(true);
      const gone = useAvailability(code);
      gone.availability.noteFailure(fail(code));
      await expect.poll(() => gone.availability.state.isUp).toBe(false);
    },
  );

  test.each(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL'])(
    '§18.4 by %s, which this machine lacks, says nothing about the server',
    (code) => {
      const { availability, looks } = useAvailability();
      availability.noteFailure(fail(code));
      expect(looks()).toBe(0);
      expect(availability.state.isUp).toBe(true);
    },
  );
});

describe('a server that refuses the gateway', () => {
  const server = useFresh(() => startScriptedHttp('session'));

  test.each(REFUSALS)(
    '§18.4 with %s: it is not available, in words without its own',
    async (_what, respond, words) => {
      server.answer('initialize', respond);
      const { upstream, states, lines } = await openTo({ url: server.url });
      const failure = await callTool(upstream, caller, 'any').catch((error: unknown) => error);
      expect(failure).toMatchObject({
        failure: 'unavailable',
        message: expect.stringMatching(words),
      });
      expect(String(failure)).not.toMatch(/127\.0\.0|secret/);
      expect(upstream.isUp).toBe(false);
      expect(states).toHaveLength(1);
      expect(lines.filter(isDownLine)).toHaveLength(1);
    },
  );

  test('§18.4 with a page: the log line says what it is, and what to check', async () => {
    for (const method of ['server/discover', 'initialize']) {
      server.answer(
        method,
        (res) =>
          void res.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<title>Hi'),
      );
    }
    const { upstream, lines } = await openTo({ url: server.url });
    await expect(upstream.describe(caller)).rejects.toThrow();
    expect(lines.filter(isDownLine).map(({ msg }) => msg)).toEqual([
      'The MCP server server is not available: it answered text/html, which is no MCP: check the path of its "url", which often is /mcp',
    ]);
  });

  test('§18.4 with JSON of another protocol: the log line says what to check', async () => {
    for (const method of ['server/discover', 'initialize']) {
      server.answer(
        method,
        (res) => void res.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}'),
      );
    }
    const { upstream, lines } = await openTo({ url: server.url });
    await expect(upstream.describe(caller)).rejects.toThrow();
    expect(lines.filter(isDownLine).map(({ msg }) => msg)).toEqual([
      'The MCP server server is not available: it answered JSON that is no MCP: check the path of its "url", which often is /mcp',
    ]);
  });

  test('§18.4 another reason than before is told, once', async () => {
    const clock = manualClock();
    server.answer('server/discover', (res) => void res.writeHead(503).end());
    const { upstream, lines, states } = await openTo({ url: server.url }, { clock });
    await expect(upstream.describe(caller)).rejects.toThrow();
    server.answer('server/discover', (res) => void res.writeHead(401).end());
    for (let probe = 2; probe < 4; probe += 1) {
      clock.advance(30_000);
      await expect.poll(() => server.count('server/discover')).toBe(probe);
      await expect(callTool(upstream, caller, 'any')).rejects.toThrow();
      for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
    }
    expect(lines.filter(isDownLine).map(({ msg }) => msg)).toEqual([
      expect.stringMatching(/\(503\)$/),
      expect.stringMatching(/refuses the credentials/),
    ]);
    await expect(callTool(upstream, caller, 'any')).rejects.toThrow(/refuses the credentials/);
    expect(states).toHaveLength(1);
  });

  test('§18.4 where credentials are those of users, one that fails for everybody stays down', async () => {
    const clock = manualClock();
    const auth = { type: 'forward', audience: 'a' } as const;
    const { upstream, states } = await openTo({ url: server.url, auth }, { clock });
    await upstream.describe(caller);
    server.answer('server/discover', (res) => void res.writeHead(503).end());
    server.answer('tools/call', (res) => void res.writeHead(503).end());
    await expect(callTool(upstream, caller, 'any')).rejects.toThrow();
    const before = server.count('server/discover');
    clock.advance(1000);
    await expect.poll(() => server.count('server/discover')).toBe(before + 1);
    for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
    expect(states).toEqual(['true: it answers', 'false: it fails (503)']);
    server.answer('server/discover', (res) => void res.writeHead(401).end());
    clock.advance(2000);
    await expect.poll(() => upstream.isUp).toBe(true);
  });

  test('§18.4 a redirect is not followed', async () => {
    const other = closeAfterTest(await startScriptedHttp('session'));
    const redirect: Respond = (res) => void res.writeHead(307, { location: other.url }).end();
    const { upstream } = await openTo({ url: server.url });
    await upstream.describe(caller);
    server.answer('tools/call', redirect);
    await expect(callTool(upstream, caller, 'any')).rejects.toThrow(/redirects/);
    expect(other.received).toEqual([]);
  });

  test.each([301, 302, 303, 307, 308])(
    '§18.4 the log names where %i leads, without what could be secret, and nobody else is told',
    async (status) => {
      const location = 'https://ada:hidden@new.example/v2/mcp?key=hidden#hidden';
      const redirect: Respond = (res) => void res.writeHead(status, { location }).end();
      server.answer('server/discover', redirect);
      const { upstream, lines, states } = await openTo({ url: server.url });
      const told = `it redirects to a different address (${status}), which is not followed: configure the address where it answers`;
      await expect(upstream.describe(caller)).rejects.toMatchObject({ message: told });
      expect(states).toEqual([`false: ${told}`]);
      expect(lines.filter(isDownLine).map(({ msg }) => msg)).toEqual([
        `The MCP server server is not available: it redirects to https://new.example/v2/mcp (${status}), which is not followed: write this address in the configuration file`,
      ]);
      expect(JSON.stringify(lines)).not.toContain('hidden');
    },
  );

  test.each([
    ['/v2/mcp?key=1', '/v2/mcp'],
    ['../mcp/', '/mcp/'],
  ])('§18.4 the log names the whole address of the Location %s', async (location, path) => {
    server.answer('server/discover', (res) => void res.writeHead(308, { location }).end());
    const { upstream, lines } = await openTo({ url: server.url });
    await expect(upstream.describe(caller)).rejects.toThrow(/redirects/);
    const address = `http://127.0.0.1:${server.port}${path}`;
    expect(lines.find(isDownLine)?.msg).toContain(`it redirects to ${address} (308)`);
  });

  test.each(['', 'http://[', 'mailto:ada@new.example'])(
    '§18.4 a Location that leads nowhere (%j) is not named',
    async (location) => {
      server.answer('server/discover', (res) => void res.writeHead(307, { location }).end());
      const { upstream, lines } = await openTo({ url: server.url });
      await expect(upstream.describe(caller)).rejects.toThrow(/redirects/);
      expect(lines.some(({ msg }) => msg.includes('write this address'))).toBe(false);
    },
  );

  test('§18.4 304 is said to be for caches', async () => {
    const words =
      'it answered 304, which is for caches: turn caching off in the proxy in front of it';
    server.answer('server/discover', (res) => {
      res.writeHead(304, { location: 'https://new.example/mcp' }).end();
    });
    const { upstream, lines } = await openTo({ url: server.url });
    await expect(upstream.describe(caller)).rejects.toThrow(words);
    expect(lines.find(isDownLine)?.msg).toBe(`The MCP server server is not available: ${words}`);
  });

  test('§18.4 initialize with a version that nobody knows', async () => {
    server.answer('initialize', (res, { message: { id } }) =>
      sendJson(res, { jsonrpc: '2.0', id, result: { protocolVersion: '2031-01-01' } }),
    );
    const { upstream } = await openTo({ url: server.url });
    await expect(upstream.describe(caller)).rejects.toThrow(/no version of MCP/);
  });

  test('§18.4 where credentials are those of users, a refusal concerns that user alone', async () => {
    const auth = { type: 'forward', audience: 'a' } as const;
    const { upstream } = await openTo(
      { url: server.url, auth },
      { getHeaders: async ({ user }) => ({ authorization: user?.sub ?? '' }) },
    );
    const respond: Respond = (res, request) =>
      request.headers.authorization === 'bob'
        ? void res.writeHead(401).end()
        : sendJson(res, { jsonrpc: '2.0', id: request.message.id, result: { content: [] } });
    await upstream.describe(caller);
    server.answer('tools/call', respond);
    const bob = sessionCaller({ user: { sub: 'bob', claims: {}, token: 't' } });
    await expect(callTool(upstream, bob, 'any')).rejects.toMatchObject({ failure: 'unavailable' });
    expect(await callTool(upstream, caller, 'any')).toEqual({ content: [] });
    expect(upstream.isUp).toBe(true);
  });

  test('§18.4 a 403 of one request is no state of the server', async () => {
    const { upstream } = await openTo({ url: server.url });
    await upstream.describe(GATEWAY_CALLER);
    server.answer('tools/call', (res) => void res.writeHead(403).end());
    await expect(callTool(upstream, caller, 'any')).rejects.toMatchObject({
      failure: 'unavailable',
    });
    expect(upstream.isUp).toBe(true);
  });
});

describe('a server with TLS', () => {
  test('§18.3 its certificate may be signed by the authority of the configuration', async () => {
    const tls = await issueCertificate('127.0.0.1');
    const server = closeAfterTest(await startScriptedHttp('session', { tls }));
    const { upstream } = await openTo({ url: server.url, ca: tls.cert });
    expect(await callTool(upstream, caller, 'any')).toEqual({ content: [] });
  });

  test.each([
    ['an unknown authority', '127.0.0.1', false],
    ['another host', 'other.example', true],
  ])(
    '§18.4 a certificate of %s is refused, and nothing is sent',
    async (_what, name, isTrusted) => {
      const tls = await issueCertificate(name);
      const server = closeAfterTest(await startScriptedHttp('session', { tls }));
      const { upstream } = await openTo({ url: server.url, ca: isTrusted ? tls.cert : undefined });
      await expect(callTool(upstream, caller, 'any')).rejects.toMatchObject({
        failure: 'unavailable',
        message: expect.stringMatching(/its certificate is refused/),
      });
      expect(server.received).toEqual([]);
    },
  );
});
