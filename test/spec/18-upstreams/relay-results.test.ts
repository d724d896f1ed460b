// Calls that go through to servers of both eras, and what comes back.
import { expect, test } from 'vitest';
import { lastOf, openClient } from '../../support/clients/session-client.ts';
import { callTool, SERVER_INFO, stateless } from '../../support/clients/stateless.ts';
import { useShared } from '../../support/lifetimes.ts';
import { sendJson, startRawServer } from '../../support/upstreams/raw-server.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';
import { startRelayServer1 } from '../../support/upstreams/relay-server-1.ts';
import { startRelayServer2 } from '../../support/upstreams/relay-server-2.ts';

const TRACE = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
};

const one = useShared(startRelayServer1);
const two = useShared(startRelayServer2);
const raw = useShared(() =>
  startRawServer((res, id) =>
    sendJson(res, {
      id,
      result: { ...RAW, _meta: { 'example.com/a': 1, [SERVER_INFO]: { name: 'mine' } } },
    }),
  ),
);
const gateway = useShared(() =>
  startRelayGateway({ servers: { one: one.url, two: two.url, raw: raw.url } }),
);

const RAW = {
  content: [
    { type: 'text', text: 'raw', 'x-part': 1 },
    { type: 'x-unknown', a: [1] },
  ],
  structuredContent: { a: null },
  'x-member': { deep: [true] },
};

/** Official clients refuse a result for one part of a type that they do not know. */
const READABLE = {
  ...RAW,
  content: [RAW.content[0], { type: 'text', text: JSON.stringify(RAW.content[1]) }],
};

test('§18.3 a result is passed on as it came, with members that nobody knows; content that nobody knows as text', async () => {
  const client = await openClient(gateway);
  const { result } = await client.ask('tools/call', { name: 'raw__any' });
  expect(result).toEqual({
    ...READABLE,
    _meta: { 'example.com/a': 1, [SERVER_INFO]: { name: 'mine' } },
  });
});

test('§18.3 in the stateless era it gets what that era adds', async () => {
  const { json } = await callTool(gateway, 'raw__any');
  expect(json.result).toMatchObject({ ...READABLE, resultType: 'complete' });
  expect(json.result._meta).toMatchObject({ 'example.com/a': 1 });
  expect(json.result._meta[SERVER_INFO]).not.toEqual({ name: 'mine' });
});

test('§18.3 what the stateless era adds does not reach a client of the session era', async () => {
  const client = await openClient(gateway);
  const { result } = await client.ask('tools/call', { name: 'two__echo' });
  expect(Object.keys(result)).toEqual(['content']);
});

test('§18.3 prompts and resources keep unknown members, too', async () => {
  const client = await openClient(gateway);
  const prompt = await client.ask('prompts/get', { name: 'one__plain' });
  expect(prompt.result).toEqual({
    messages: [{ role: 'user', content: { type: 'text', text: '"plain"' } }],
    'x-member': 1,
  });
  const resource = await client.ask('resources/read', { uri: 'test://a' });
  expect(resource.result).toEqual({ contents: [{ uri: 'test://a', text: 'read', 'x-part': 1 }] });
});

test('§18.3 how long a resource may be kept is passed on, but to nobody else behind a login', async () => {
  const { json } = await stateless(gateway, 'resources/read', { uri: 'test://cached' });
  expect(json.result).toMatchObject({ ttlMs: 5000, cacheScope: 'private' });
});

test('§18.3 of a server that does not say it, a resource may not be kept', async () => {
  const { json } = await stateless(gateway, 'resources/read', { uri: 'test://a' });
  expect(json.result).toMatchObject({ ttlMs: 0, cacheScope: 'private' });
});

test.each(['one', 'two'])(
  '§18.3 arguments and trace context reach the server %s',
  async (server) => {
    const client = await openClient(gateway);
    const params = { name: `${server}__echo`, arguments: { a: [1, { b: 'c' }] }, _meta: TRACE };
    const { result } = await client.ask('tools/call', params);
    const said = JSON.parse(result.content[0].text);
    expect(said.trace).toBe(TRACE.traceparent);
    if (server === 'one') expect(said.args).toEqual({ a: [1, { b: 'c' }] });
  },
);

test('§18.3 an error result stays one', async () => {
  const client = await openClient(gateway);
  const { result } = await client.ask('tools/call', { name: 'one__fails' });
  expect(result).toEqual({ content: [{ type: 'text', text: '"failed"' }], isError: true });
});

test.each([
  { method: 'tools/call', name: 'one__error' },
  { method: 'prompts/get', name: 'one__error' },
])(
  '§18.4 an error of the server to $method is passed on: code, message and data',
  async ({ method, name }) => {
    const expected = {
      code: -32099,
      message: expect.stringMatching('Not today'),
      data: { why: 'because' },
    };
    const client = await openClient(gateway);
    expect((await client.ask(method, { name })).error).toEqual(expected);
    expect((await stateless(gateway, method, { name })).json.error).toEqual(expected);
  },
);

test.each([
  { server: 'one', steps: [1, 2] },
  { server: 'two', steps: [1] },
])(
  '§18.3 progress and log messages of the server $server reach the client',
  async ({ server, steps }) => {
    const client = await openClient(gateway);
    const stream = await client.call(`${server}__tell`, {}, { progressToken: 'mine' });
    const messages = (await stream.rest()).map(
      ({ method, params, result }) => params ?? result ?? method,
    );
    expect(messages).toEqual([
      ...steps.flatMap((progress) => [
        { level: 'warning', logger: 'steps', data: { progress } },
        { progressToken: 'mine', progress, total: 2, message: `step ${progress}` },
      ]),
      { content: [{ type: 'text', text: '"told"' }] },
    ]);
  },
);

test('§18.3 a client that asked for no progress gets none, and none below its log level', async () => {
  const client = await openClient(gateway);
  await client.ask('logging/setLevel', { level: 'error' });
  const stream = await client.call('one__tell');
  expect(await lastOf(stream)).toMatchObject({ result: { content: [{ text: '"told"' }] } });
  expect(stream.isStream).toBe(false);
});

test('§18.3 a call that the client cancels is cancelled at the server', async () => {
  const client = await openClient(gateway);
  const waiting = new Promise((resolve) => one.events.once('waiting', resolve));
  const cancelled = new Promise((resolve) => one.events.once('cancelled', resolve));
  const stream = client.call('one__wait', {}, { id: 7 });
  await waiting;
  expect(await client.cancel(7)).toBe(202);
  await cancelled;
  expect((await lastOf(await stream)).error.data.reason).toBe('request_cancelled');
});
