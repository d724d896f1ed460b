// Servers that are gone, silent or wrong: what callers get, and what operators read.
import { expect, test } from 'vitest';
import { openClient } from '../../support/clients/session-client.ts';
import { callTool, sendToolCall } from '../../support/clients/stateless.ts';
import { advanceSlowly, manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { type RawAnswer, sendJson, startRawServer } from '../../support/upstreams/raw-server.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';
import { startRelayServer1 } from '../../support/upstreams/relay-server-1.ts';

const MINUTE_MS = 60_000;

const textOf = ({ json }: Awaited<ReturnType<typeof callTool>>): string =>
  json.result.content[0].text;

test('§18.4 a server that is gone: the model reads so, and others are not touched', async () => {
  const gone = await startRelayServer1();
  const there = closeAfterTest(await startRelayServer1());
  const gateway = closeAfterTest(
    await startRelayGateway({ servers: { github: gone.url, there: there.url } }),
  );
  expect(textOf(await callTool(gateway, 'github__echo'))).toBe('{"args":{}}');
  await gone.close();
  const response = await callTool(gateway, 'github__echo');
  expect(response.json.result).toMatchObject({ isError: true });
  expect(textOf(response)).toMatch(/^github is not available now; try again in a moment\./);
  expect(textOf(response)).not.toContain('127.0.0.1');
  expect(textOf(await callTool(gateway, 'there__echo'))).toBe('{"args":{}}');
});

test('§18.4 prompts and resources have no error results: the same is a JSON-RPC error', async () => {
  const gone = await startRelayServer1();
  const gateway = closeAfterTest(await startRelayGateway({ servers: { github: gone.url } }));
  const client = await openClient(gateway);
  await client.ask('resources/list');
  await gone.close();
  const error = { code: -32603, message: expect.stringMatching(/^github is not available now;/) };
  expect((await client.ask('prompts/get', { name: 'github__plain' })).error).toEqual(error);
  expect((await client.ask('resources/read', { uri: 'test://a' })).error).toEqual(error);
});

test('§18.4 failures of one kind are one line a minute', async () => {
  const gone = await startRelayServer1();
  const clock = manualClock();
  const gateway = closeAfterTest(await startRelayGateway({ servers: { github: gone.url }, clock }));
  await callTool(gateway, 'github__echo');
  await gone.close();
  const callSeveral = async () => {
    for (let call = 0; call < 5; call += 1) await callTool(gateway, 'github__echo');
  };
  await callSeveral();
  const lines = () => gateway.log.filter(({ msg }) => /^A call to github failed/.test(String(msg)));
  expect(lines()).toHaveLength(1);
  expect(lines()[0]).toMatchObject({
    level: 'warn',
    server: 'github',
    failure: 'unavailable',
    msg: expect.stringMatching(/Check that it runs/),
  });
  clock.advance(MINUTE_MS);
  await callSeveral();
  expect(lines()).toHaveLength(2);
});

test('§18.3 a call without progress ends after the time-out, and the server is told', async () => {
  const server = closeAfterTest(await startRelayServer1());
  const clock = manualClock();
  const gateway = closeAfterTest(
    await startRelayGateway({ servers: { one: server.url }, clock, timeoutMs: MINUTE_MS }),
  );
  const waiting = new Promise((resolve) => server.events.once('waiting', resolve));
  const cancelled = new Promise((resolve) => server.events.once('cancelled', resolve));
  const call = callTool(gateway, 'one__wait');
  await waiting;
  clock.advance(MINUTE_MS);
  const response = await call;
  expect(response.json.result.isError).toBe(true);
  expect(textOf(response)).toMatch(/^one did not answer in time/);
  await cancelled;
});

test('§18.3 a call whose client leaves is cancelled at the server, and is nothing for an operator to look at', async () => {
  const server = closeAfterTest(await startRelayServer1());
  const gateway = closeAfterTest(await startRelayGateway({ servers: { one: server.url } }));
  const waiting = new Promise((resolve) => server.events.once('waiting', resolve));
  const cancelled = new Promise((resolve) => server.events.once('cancelled', resolve));
  const call = await sendToolCall(gateway, 'one__wait');
  call.on('error', () => {});
  await waiting;
  call.destroy();
  await cancelled;
  await expect.poll(() => gateway.log.map(({ error }) => error)).toContain('request_cancelled');
  expect(gateway.log.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
});

test('§18.3 progress gives a call its whole time again', async () => {
  const server = closeAfterTest(await startRelayServer1());
  const clock = manualClock();
  const gateway = closeAfterTest(
    await startRelayGateway({ servers: { one: server.url }, clock, timeoutMs: MINUTE_MS }),
  );
  const client = await openClient(gateway);
  const nextWait = () => new Promise((resolve) => server.events.once('waiting', resolve));
  let waiting = nextWait();
  const answer = client.call('one__steps', { steps: 3 }, { progressToken: 1 });
  await waiting;
  for (let step = 1; step <= 3; step += 1) {
    await advanceSlowly(clock, MINUTE_MS - 1000);
    waiting = nextWait();
    server.events.emit('step');
    await waiting;
    // It has to be read before the time goes on.
    const stream = await answer;
    expect((await stream.next()).method).toBe('notifications/message');
    expect((await stream.next()).params.progress).toBe(step);
  }
  await advanceSlowly(clock, MINUTE_MS - 1000);
  server.events.emit('step');
  const stream = await answer;
  expect((await stream.next()).result.content[0].text).toBe('"stepped"');
});

const JSON_TYPE = { 'content-type': 'application/json' };

test.each<{ what: string; answer: RawAnswer }>([
  { what: 'no JSON', answer: (res) => res.writeHead(200, JSON_TYPE).end('<html>') },
  { what: "another call's id", answer: (res) => sendJson(res, { id: 999, result: {} }) },
  {
    what: 'half a message',
    answer(res) {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write('data: {"jsonrpc":"2.0",');
      setImmediate(() => res.destroy());
    },
  },
])(
  '§18.4 a server that answers $what: an error result, and one line in the log',
  async ({ answer }) => {
    const wrong = closeAfterTest(await startRawServer(answer));
    const gateway = closeAfterTest(await startRelayGateway({ servers: { wrong: wrong.url } }));
    const response = await callTool(gateway, 'wrong__any');
    expect(response.json.result.isError).toBe(true);
    expect(textOf(response)).toMatch(/^wrong gave no valid answer: /);
    await callTool(gateway, 'wrong__any');
    const lines = gateway.log.filter(({ msg }) => /^A call to wrong failed/.test(String(msg)));
    expect(lines).toMatchObject([{ level: 'warn', failure: 'invalid', method: 'tools/call' }]);
  },
);

test('§18.3 a kind of result that this version does not know is a clear error', async () => {
  const newer = closeAfterTest(
    await startRawServer((res, id) => sendJson(res, { id, result: { resultType: 'x-newer' } })),
  );
  const gateway = closeAfterTest(await startRelayGateway({ servers: { newer: newer.url } }));
  const response = await callTool(gateway, 'newer__any');
  expect(response.json.result.isError).toBe(true);
  expect(textOf(response)).toMatch(/^newer answered with a kind of result/);
});
