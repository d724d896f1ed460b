// Answers without an end, of which the gateway needs only the status: without a length an answer ends with its connection.
import { expect, test } from 'vitest';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { callTool, sessionCaller } from '../../support/upstreams/requests.ts';
import { startScriptedHttp } from '../../support/upstreams/scripted-http.ts';

test('§18.3 a notification is accepted by the status of its answer, whose end nobody waits for', async () => {
  const clock = manualClock();
  const server = closeAfterTest(await startScriptedHttp('session'));
  let closed = 0;
  server.answer('notifications/initialized', ({ socket }) => {
    socket?.on('close', () => {
      closed += 1;
    });
    socket?.write('HTTP/1.1 202 Accepted\r\n\r\n');
  });
  const { upstream } = closeAfterTest(await openHttpUpstream({ url: server.url }, { clock }));
  expect(await callTool(upstream, sessionCaller(), 'any')).toEqual({ content: [] });
  expect(closed).toBe(0);
  clock.advance(1000);
  await expect.poll(() => closed).toBe(server.count('notifications/initialized'));
});

test.each([
  { to: 'notifications/initialized', status: '202 Accepted' },
  { to: 'tools/call', status: '500 Internal Server Error' },
])(
  '§18.4 an answer $status that goes on and on to $to: its connection is closed at 64 KiB',
  async ({ to, status }) => {
    const server = closeAfterTest(await startScriptedHttp('session'));
    const closed = new Promise<void>((resolve) => {
      server.answer(to, ({ socket }) => {
        socket?.on('close', resolve);
        socket?.write(`HTTP/1.1 ${status}\r\n\r\n${'x'.repeat(70_000)}`);
      });
    });
    const { upstream } = closeAfterTest(await openHttpUpstream({ url: server.url }));
    const called = callTool(upstream, sessionCaller(), 'any');
    if (to === 'tools/call') await expect(called).rejects.toThrow('it fails (500)');
    else expect(await called).toEqual({ content: [] });
    await closed;
  },
);
