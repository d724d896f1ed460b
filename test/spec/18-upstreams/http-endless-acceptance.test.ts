// A server that accepts a notification with a status alone: without a length its answer ends with the connection, which it keeps.
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
