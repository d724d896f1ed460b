// What a server says of its lists to the caller alone who changed them: the lists are everybody's.
import { expect, test } from 'vitest';
import { openClient } from '../../support/clients/session-client.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool } from '../../support/upstreams/listing-server.ts';
import {
  type ScriptedRequest,
  sendJson,
  startEvents,
  startScriptedHttp,
  toEvent,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const CHANGED = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };

/** Each call adds a tool, unless it is the one that adds none, and says so before its answer, to nobody else. */
async function serveGrowing(era: 'session' | 'stateless') {
  const server = closeAfterTest(await startScriptedHttp(era));
  const tools = [buildTool('grow'), buildTool('stay')];
  server.answer('tools/list', (res, request) => sendJson(res, toResult(request, { tools })));
  server.answer('tools/call', (res, request: ScriptedRequest) => {
    if (Object(request.message.params).name === 'grow')
      tools.push(buildTool(`grown-${tools.length}`));
    startEvents(res, CHANGED).end(toEvent(toResult(request, { content: [] })));
  });
  return server;
}

test.each(['session', 'stateless'] as const)(
  '§18.4 list_changed in an answer: the next list of anybody is the new one (%s era)',
  async (era) => {
    const server = await serveGrowing(era);
    const gateway = await startForTest({
      env: { MCP_STREAMS: 'true' },
      file: { mcpServers: { a: server.url } },
    });
    const [caller, other] = [await openClient(gateway), await openClient(gateway)];
    const stream = await other.watch();
    const before = ['a__grow', 'a__stay'];
    expect(await gateway.listNames('tools/list', other.session)).toEqual(before);
    await gateway.call(caller.session, 'tools/call', { name: 'a__grow' });
    expect(await stream.next()).toMatchObject(CHANGED);
    for (const { session } of [caller, other])
      expect(await gateway.listNames('tools/list', session)).toEqual([...before, 'a__grown-2']);
    stream.hangUp();
  },
);

test('§18.4 list_changed in answers: the list is fetched once a second at most, less often while it is the same, and nobody is told of that', async () => {
  const clock = manualClock();
  const server = await serveGrowing('session');
  const gateway = await startForTest({
    env: { MCP_STREAMS: 'true' },
    file: { mcpServers: { a: server.url } },
    clock,
  });
  const [caller, other] = [await openClient(gateway), await openClient(gateway)];
  const stream = await other.watch();
  await gateway.listNames('tools/list', other.session);
  const before = server.count('tools/list');
  for (let time = 0; time < 20; time += 1)
    await gateway.call(caller.session, 'tools/call', { name: 'a__stay' });
  await expect.poll(() => server.count('tools/list')).toBe(before + 1);
  clock.advance(1_000);
  await expect.poll(() => server.count('tools/list')).toBe(before + 2);
  // Twice as long after each time that it was the same.
  clock.advance(2_000);
  await gateway.call(caller.session, 'tools/call', { name: 'a__grow' });
  await expect.poll(() => server.count('tools/list')).toBe(before + 3);
  // The first that it hears of.
  expect(await stream.next()).toMatchObject(CHANGED);
  expect(await gateway.listNames('tools/list', other.session)).toContain('a__grown-2');
  stream.hangUp();
});

test('§18.4 list_changed in answers: while the list is fetched anew, nobody waits for it', async () => {
  const server = await serveGrowing('session');
  // Whoever waited would do so for ever.
  const gateway = await startForTest({
    file: { mcpServers: { a: server.url } },
    clock: manualClock(),
  });
  const [caller, other] = [await openClient(gateway), await openClient(gateway)];
  const before = await gateway.listNames('tools/list', other.session);
  // From now on it is asked for the list, and says nothing.
  server.answer('tools/list', () => {});
  const asked = server.count('tools/list');
  await gateway.call(caller.session, 'tools/call', { name: 'a__stay' });
  await expect.poll(() => server.count('tools/list')).toBe(asked + 1);
  expect(await gateway.listNames('tools/list', other.session)).toEqual(before);
  await gateway.call(other.session, 'tools/call', { name: 'a__stay' });
});
