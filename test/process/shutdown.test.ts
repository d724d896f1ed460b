// §17: SIGTERM and SIGINT finish what is in flight, and nothing more.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { INITIALIZE_REQUEST } from '../support/gateway/gateway.ts';
import { endPosterns, type RunningPostern, startPostern } from '../support/gateway/process.ts';
import { checkSession, isRefused, openSession, postHalf } from '../support/gateway/process-http.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { startUpstream } from '../support/oauth/upstream.ts';

const ANONYMOUS = { AUTH_REQUIRED: 'false' } as const;
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

afterEach(endPosterns);

/** Sends the signal, and waits until nobody can connect any more. */
async function stopAccepting(postern: RunningPostern, signal: NodeJS.Signals): Promise<void> {
  postern.kill(signal);
  await expect.poll(() => isRefused(postern.port), { timeout: 10_000 }).toBe(true);
  expect(postern.hasEnded).toBe(false);
}

test.each(SIGNALS)('§17 shutdown: %s ends an idle service with exit code 0', async (signal) => {
  const postern = await startPostern(ANONYMOUS);
  postern.kill(signal);
  expect(await postern.ended).toEqual({ code: 0, signal: null });
  expect(postern.log().map(({ level }) => level)).not.toContain('error');
  expect(postern.stderr).toBe('');
});

test.each(SIGNALS)(
  '§17 shutdown: a call whose body is half sent is answered after %s',
  async (signal) => {
    const postern = await startPostern(ANONYMOUS);
    const call = await postHalf(postern.port, '/mcp', INITIALIZE_REQUEST);
    await stopAccepting(postern, signal);
    const answer = await call.finish();
    expect(answer.status).toBe(200);
    expect(answer.headers.connection).toBe('close');
    expect(JSON.parse(answer.text).result.serverInfo.name).toBe('postern');
    expect(await postern.ended).toEqual({ code: 0, signal: null });
  },
);

test('§17 shutdown: what was answered while draining is in the store', async () => {
  const postern = await startPostern(ANONYMOUS);
  const call = await postHalf(postern.port, '/mcp', INITIALIZE_REQUEST);
  await stopAccepting(postern, 'SIGTERM');
  const session = String((await call.finish()).headers['mcp-session-id']);
  await postern.ended;
  const next = await startPostern({ ...ANONYMOUS, DATA_DIR: postern.dataDir });
  expect(await checkSession(next.url, { session })).toBe(200);
});

test('§17 shutdown: a call that waits for a slow provider gets its answer', async () => {
  const upstream = closeAfterTest(await startUpstream());
  const held: ServerResponse[] = [];
  upstream.answer((res) => void held.push(res));
  const postern = await startPostern({
    ...ANONYMOUS,
    OIDC_ISSUER: upstream.url,
    OAUTH_TOKEN_URL: `${upstream.url}/token`,
  });
  const token = fetch(`${postern.url}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'r', client_id: 'c' }),
  });
  await expect.poll(() => held.length, { timeout: 10_000 }).toBe(1);
  await stopAccepting(postern, 'SIGTERM');
  held[0]?.writeHead(200, { 'Content-Type': 'application/json' }).end('{"access_token":"a"}');
  const answer = await token;
  expect(answer.status).toBe(200);
  expect(answer.headers.get('connection')).toBe('close');
  expect(await answer.json()).toEqual({ access_token: 'a' });
  expect(await postern.ended).toEqual({ code: 0, signal: null });
});

test('§17 shutdown: an idle connection is closed and holds nothing up', async () => {
  const postern = await startPostern(ANONYMOUS);
  const socket = connect(postern.port, '127.0.0.1');
  socket.write('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const [head] = (await once(socket, 'data')) as [Buffer];
  expect(head.toString()).toMatch(/^HTTP\/1\.1 200 /);
  const closed = once(socket, 'close');
  const before = performance.now();
  postern.kill('SIGTERM');
  await closed;
  expect(await postern.ended).toEqual({ code: 0, signal: null });
  // Well below the 10 s for what is busy.
  expect(performance.now() - before).toBeLessThan(8000);
});

test('§17 shutdown: a call whose body never ends is given up, and the exit code is 0', {
  timeout: 60_000,
}, async () => {
  const postern = await startPostern(ANONYMOUS);
  const call = await postHalf(postern.port, '/mcp', INITIALIZE_REQUEST);
  await stopAccepting(postern, 'SIGTERM');
  // Too slow by then.
  expect((await call.answer()).status).toBe(408);
  expect(await postern.ended).toEqual({ code: 0, signal: null });
});

test('§3.1 shutdown: no session ends by it', async () => {
  const first = await startPostern(ANONYMOUS);
  const session = await openSession(first.url);
  first.kill('SIGTERM');
  await first.ended;
  const second = await startPostern({ ...ANONYMOUS, DATA_DIR: first.dataDir });
  expect(await checkSession(second.url, { session })).toBe(200);
});

test.each([
  { what: 'says nothing', sent: '' },
  { what: 'sent half a head', sent: 'POST /mcp HTTP/1.1\r\nHo' },
  { what: 'sent half a second head', sent: 'GET /health HTTP/1.1\r\nHost: x\r\n\r\nPOST /m' },
])('§17 shutdown: a connection that $what holds nothing up', async ({ sent }) => {
  const postern = await startPostern(ANONYMOUS);
  const socket = connect(postern.port, '127.0.0.1');
  socket.on('error', () => {});
  socket.resume();
  await once(socket, 'connect');
  socket.write(sent);
  // The service has accepted it before this later one.
  expect((await fetch(`${postern.url}/health`)).status).toBe(200);
  const before = performance.now();
  postern.kill('SIGTERM');
  expect(await postern.ended).toEqual({ code: 0, signal: null });
  // Well below the 10 s for what is busy.
  expect(performance.now() - before).toBeLessThan(8000);
});
