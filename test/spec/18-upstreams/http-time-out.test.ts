import { expect, test } from 'vitest';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { callTool, sessionCaller } from '../../support/upstreams/requests.ts';
import { sendJson, startScriptedHttp, toResult } from '../../support/upstreams/scripted-http.ts';

const TIMEOUT_MS = 5000;
const RESULT = { content: [{ type: 'text', text: 'in time' }] };

/** The time passes while the gateway does nothing: what somebody else's megabytes, or a busy machine, come to. */
async function startLateGateway(answers: boolean) {
  const clock = manualClock();
  const server = closeAfterTest(await startScriptedHttp('session'));
  server.answer('tools/call', (res, request) => {
    if (answers) sendJson(res, toResult(request, RESULT));
    setImmediate(() => clock.advance(TIMEOUT_MS));
  });
  const { upstream } = closeAfterTest(
    await openHttpUpstream({ url: server.url, timeoutMs: TIMEOUT_MS }, { clock }),
  );
  return callTool(upstream, sessionCaller(), 'any');
}

test('§18.4 an answer that has come in time counts, even if the gateway reads it later', async () => {
  expect(await startLateGateway(true)).toEqual(RESULT);
});

test('§18.4 a call to a server that has not answered by then ends', async () => {
  await expect(startLateGateway(false)).rejects.toMatchObject({
    failure: 'timeout',
    message: 'it did not answer within 5 s',
  });
});
