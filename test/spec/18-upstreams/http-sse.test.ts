import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { listenOnLoopback } from '../../support/upstreams/listen.ts';
import { callTool, sessionCaller, statelessCaller } from '../../support/upstreams/requests.ts';
import { startSdk1Sse } from '../../support/upstreams/sdk-1-sse.ts';

const ECHO = { content: [{ type: 'text', text: 'x' }] };

const server = useFresh(startSdk1Sse);
const opened = useFresh(() => openHttpUpstream({ url: server.url, transport: 'sse' }));
const echo = (caller = sessionCaller()) => callTool(opened.upstream, caller, 'echo', { text: 'x' });

test('§18.3 HTTP+SSE: each session of a client has a connection, callers without one share it', async () => {
  const caller = sessionCaller();
  await Promise.all([echo(caller), echo(caller), echo(sessionCaller())]);
  expect(server.sessions()).toBe(2);
  await Promise.all([echo(statelessCaller()), echo(statelessCaller())]);
  expect(server.sessions()).toBe(3);
  await opened.upstream.endSession(caller);
  await expect.poll(server.sessions).toBe(2);
});

test('§18.3 HTTP+SSE: a stream that ends is opened anew by the next call', async () => {
  const caller = sessionCaller();
  await echo(caller);
  const waiting = expect(callTool(opened.upstream, caller, 'wait')).rejects.toMatchObject({
    failure: 'invalid',
  });
  const count = async () => JSON.stringify(await callTool(opened.upstream, caller, 'waits'));
  await expect.poll(count).toContain('\\"started\\":1');
  server.dropConnections();
  await waiting;
  expect(await echo(caller)).toEqual(ECHO);
});

test('§18.3 HTTP+SSE: a shared connection ends after 15 minutes without use, and not before its call', async () => {
  const clock = manualClock();
  const { upstream } = closeAfterTest(
    await openHttpUpstream({ url: server.url, transport: 'sse', timeoutMs: 3_600_000 }, { clock }),
  );
  const caller = statelessCaller();
  const signal = new AbortController();
  const waiting = callTool(upstream, caller, 'wait', {}, { signal: signal.signal });
  const count = async () => JSON.stringify(await callTool(upstream, caller, 'waits'));
  await expect.poll(count).toContain('\\"started\\":1');
  // Only its own time ends the call.
  for (let minute = 0; minute < 30; minute += 1) clock.advance(30_000);
  clock.advance(60_000);
  await new Promise(setImmediate);
  expect(server.sessions()).toBe(1);
  signal.abort();
  await expect(waiting).rejects.toMatchObject({ failure: 'aborted' });
  clock.advance(900_000);
  clock.advance(60_000);
  await expect.poll(server.sessions).toBe(0);
});

test.each([
  ['another origin', 'http://127.0.0.2:1/messages'],
  ['another scheme', 'file:///messages'],
])('§18.6 HTTP+SSE: %s for what the server is told is refused', async (_what, endpoint) => {
  const posted: unknown[] = [];
  const foreign = closeAfterTest(
    await listenOnLoopback((req, res) => {
      if (req.method === 'POST') posted.push(req.url);
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write(`event: endpoint\ndata: ${endpoint}\n\n`);
    }),
  );
  const { upstream } = closeAfterTest(
    await openHttpUpstream({ url: foreign.url, transport: 'sse' }),
  );
  await expect(callTool(upstream, sessionCaller(), 'any')).rejects.toMatchObject({
    failure: 'unavailable',
    message: 'it names an address at another origin for messages to it',
  });
  expect(posted).toEqual([]);
});

test('§18.4 HTTP+SSE: a server that is not there is not available', async () => {
  await server.close();
  await expect(echo()).rejects.toMatchObject({ failure: 'unavailable' });
  expect(opened.upstream.isUp).toBe(false);
});

test('§18.4 HTTP+SSE: a page in place of the stream is said to be no MCP', async () => {
  const site = closeAfterTest(
    await listenOnLoopback((_req, res) => {
      res.writeHead(200, { 'content-type': 'text/html' }).end('<html>');
    }),
  );
  const { upstream } = closeAfterTest(await openHttpUpstream({ url: site.url, transport: 'sse' }));
  await expect(callTool(upstream, sessionCaller(), 'any')).rejects.toMatchObject({
    message: expect.stringContaining('text/html, which is no MCP'),
  });
});

test('§18.4 HTTP+SSE: events that are no JSON, and answers to what nobody asked, end no call', async () => {
  let stream: ServerResponse | undefined;
  const say = (message: unknown) =>
    stream?.write(`data: ${typeof message === 'string' ? message : JSON.stringify(message)}\n\n`);
  const broken = closeAfterTest(
    await listenOnLoopback(async (req, res) => {
      if (req.method === 'GET') {
        stream = res.writeHead(200, { 'content-type': 'text/event-stream' });
        stream.write('event: endpoint\ndata: /post\n\n');
        return;
      }
      const { id, method } = JSON.parse(await text(req));
      res.writeHead(202).end();
      const serverInfo = { name: 'raw', version: '1' };
      const result = { protocolVersion: '2024-11-05', capabilities: {}, serverInfo };
      if (method === 'initialize') say({ jsonrpc: '2.0', id, result });
      if (method !== 'tools/call') return;
      for (const noJson of ['{"jsonrpc":', 'Listening', '[1,2]']) say(noJson);
      for (const other of [id + 1, `0${id}`, 'x']) say({ jsonrpc: '2.0', id: other, result: {} });
      say({ jsonrpc: '2.0', id, result: ECHO });
    }),
  );
  const { upstream, lines } = closeAfterTest(
    await openHttpUpstream({ url: broken.url, transport: 'sse' }),
  );
  const caller = sessionCaller();
  expect(await callTool(upstream, caller, 'any')).toEqual(ECHO);
  expect(await callTool(upstream, caller, 'any')).toEqual(ECHO);
  const told = lines.filter(({ level }) => level === 'warn').map(({ msg }) => msg);
  expect(told).toEqual([
    expect.stringContaining('no messages of MCP'),
    expect.stringContaining('sent an answer that no request asked for'),
  ]);
});
