// §18.4: a request that cannot be sent at all concerns nobody else.
import { expect, test } from 'vitest';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startProxy } from '../../support/oauth/proxy.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { callTool, sessionCaller } from '../../support/upstreams/requests.ts';
import { startScriptedHttp } from '../../support/upstreams/scripted-http.ts';

/** The header is for the proxy: a request that brings its own is refused at once. */
const UNSENDABLE = { 'proxy-authorization': 'Basic bWU6bXk=' };

test('§18.4 a header that a proxy may not be sent fails the calls that have it, and no other', async () => {
  const server = closeAfterTest(await startScriptedHttp('session'));
  const proxy = closeAfterTest(await startProxy());
  proxy.lead('server.example:80', server.port);
  const unlucky = sessionCaller();
  const { upstream } = closeAfterTest(
    await openHttpUpstream(
      { url: 'http://server.example/mcp' },
      {
        outbound: { httpProxy: proxy.url, httpsProxy: undefined, noProxy: [] },
        getHeaders: (caller) => (caller.sessionId === unlucky.sessionId ? UNSENDABLE : {}),
      },
    ),
  );
  const lucky = sessionCaller();
  await expect(callTool(upstream, lucky, 'any')).resolves.toBeDefined();
  await expect(callTool(upstream, unlucky, 'any')).rejects.toMatchObject({
    failure: 'unavailable',
  });
  // At the end of the turn, where several are under way.
  const both = await Promise.allSettled([
    callTool(upstream, lucky, 'any'),
    callTool(upstream, unlucky, 'any'),
    callTool(upstream, lucky, 'any'),
  ]);
  expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(upstream.isUp).toBe(true);
});
