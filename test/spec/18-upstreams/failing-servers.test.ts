// What clients see of servers that are down, wrong, or gone.
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { lastOf, openClient } from '../../support/clients/session-client.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import {
  type CatalogGateway,
  startForTest as start,
} from '../../support/upstreams/catalog-gateway.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';
import {
  buildTool,
  serveForTest as serve,
  startListingServer,
} from '../../support/upstreams/listing-server.ts';
import { ADA } from '../../support/upstreams/relay-retry.ts';
import { startRelayServer2 } from '../../support/upstreams/relay-server-2.ts';

const PATIENT = { timeout: 20_000 };

const LISTING = {
  tools: [buildTool('t')],
  prompts: [{ name: 'p' }],
  resources: [{ uri: 'x://a', name: 'a' }],
};

const call = async (gateway: CatalogGateway, session: string, method: string, params: object) =>
  (await gateway.call(session, method, params)).json;

test('§18.4 down: its tools are missing from lists, and answer what a model can read; then it is back', async () => {
  const server = await startListingServer(LISTING);
  const other = await serve({ tools: [buildTool('t')] });
  const gateway = await start({ file: { mcpServers: { a: server.url, other: other.url } } });
  const session = await gateway.open();
  expect(await gateway.listNames('tools/list', session)).toEqual(['a__t', 'other__t']);
  await gateway.listNames('prompts/list', session);
  await gateway.listNames('resources/list', session);
  await server.close();

  const callTool = () => call(gateway, session, 'tools/call', { name: 'a__t' });
  await expect.poll(callTool, PATIENT).toMatchObject({
    result: {
      isError: true,
      content: [{ type: 'text', text: expect.stringMatching(/^a is not available now/) }],
    },
  });
  await expect.poll(() => gateway.listNames('tools/list', session), PATIENT).toEqual(['other__t']);
  expect((await callTool()).result.isError).toBe(true);
  const unknown = await call(gateway, session, 'tools/call', { name: 'a__other' });
  expect(unknown.error.code).toBe(-32602);
  for (const [method, params] of [
    ['prompts/get', { name: 'a__p' }],
    ['resources/read', { uri: 'x://a' }],
  ] as const) {
    const { error } = await call(gateway, session, method, params);
    expect(error).toMatchObject({
      code: -32603,
      message: expect.stringMatching(/^a is not available now/),
    });
  }
  expect(await seriesOf(gateway, 'upstream_up', { server: 'a' })).toBe(0);
  expect(await seriesOf(gateway, 'upstream_up', { server: 'other' })).toBe(1);

  await serve({ ...LISTING, tools: [buildTool('new')] }, server.port);
  await expect
    .poll(() => gateway.listNames('tools/list', session), PATIENT)
    .toEqual(['a__new', 'other__t']);
});

test('§18.4 down: its names stay taken, so that no other server answers in its place', async () => {
  const first = await startListingServer({ tools: [buildTool('t')] });
  const second = await serve({ tools: [buildTool('t')] });
  const file = {
    mcpServers: {
      first: { url: first.url, prefix: '' },
      second: { url: second.url, prefix: '' },
    },
  };
  const gateway = await start({ file });
  const session = await gateway.open();
  expect(await gateway.listNames('tools/list', session)).toEqual(['t']);
  await first.close();
  await expect
    .poll(() => call(gateway, session, 'tools/call', { name: 't' }), PATIENT)
    .toMatchObject({ result: { isError: true } });
  await expect.poll(() => gateway.listNames('tools/list', session), PATIENT).toEqual([]);
  expect(second.count('tools/call')).toBe(0);
});

test('§18.4 down from the start: nothing waits for it', async () => {
  const gone = await startListingServer();
  await gone.close();
  const other = await serve({ tools: [buildTool('t')] });
  const gateway = await start({ file: { mcpServers: { gone: gone.url, other: other.url } } });
  const session = await gateway.open();
  expect(await gateway.listNames('tools/list', session)).toEqual(['other__t']);
  const { error } = await call(gateway, session, 'tools/call', { name: 'gone__t' });
  expect(error.message).toBe(
    'gone is not available now; try again in a moment. The reason: it refuses connections.',
  );
  expect(await seriesOf(gateway, 'mcp_tool_invocations_total', { tool: 'gone__t' })).toBe(0);
});

test('§18.4 down for long: sessions are opened at once, and nothing is left unhandled', async () => {
  const clock = manualClock();
  const gone = await startListingServer();
  await gone.close();
  const gateway = await start({ file: { mcpServers: { gone: gone.url } }, clock });
  await gateway.open();
  // The time that a first list is waited for.
  clock.advance(15_000);
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  expect(await gateway.listNames('tools/list', await gateway.open())).toEqual([]);
  await new Promise(setImmediate);
  expect(unhandled).toEqual([]);
});

test.each([
  ['tools/call', { name: 'a__t' }],
  ['prompts/get', { name: 'a__p' }],
  ['resources/read', { uri: 'x://a' }],
])(
  '§18.4 an error of the server passes on in %s with code, message and data',
  async (method, params) => {
    const error = { code: -31999, message: 'Own words', data: { own: [1] } };
    const server = await serve({ ...LISTING, answers: { [method]: () => ({ error }) } });
    const gateway = await start({ file: { mcpServers: { a: server.url } } });
    const answer = await call(gateway, await gateway.open(), method, params);
    expect(answer.error).toEqual(error);
  },
);

test.each([
  ['a list that is none', { result: { tools: 'x' } }],
  ['an error', { error: { code: -32603, message: 'broken' } }],
])('§18.4 a server that answers %s costs the others nothing', async (_what, answer) => {
  const wrong = await serve({ answers: { 'tools/list': () => answer } });
  const other = await serve({ tools: [buildTool('t')] });
  const gateway = await start({ file: { mcpServers: { wrong: wrong.url, other: other.url } } });
  expect(await gateway.listNames('tools/list')).toEqual(['other__t']);
});

test('§18.4 required: the gateway is ready while servers that must be up are, whatever the others do', async () => {
  const gone = await startListingServer();
  await gone.close();
  const needed = await serve();
  const file = (required: boolean) => ({
    mcpServers: {
      gone: { url: gone.url, required },
      needed: { url: needed.url, required: true },
    },
  });
  const gateway = await start({ file: file(false) });
  const checkReady = async () => (await gateway.request({ path: '/health/ready' })).json;
  await expect.poll(checkReady, PATIENT).toMatchObject({ status: 'ready' });
  await gateway.reload(file(true));
  await expect
    .poll(checkReady, PATIENT)
    .toMatchObject({ status: 'not_ready', checks: { servers: { status: 'unavailable' } } });
});

test('§18.4 required: a server that wants a token of each user is looked for at the start, too', async () => {
  const needed = await serve({ tools: [buildTool('t')] });
  const auth = { type: 'forward', audience: 'https://needed.example' };
  const gateway = await start({
    file: { mcpServers: { needed: { url: needed.url, auth, required: true } } },
  });
  const checkReady = async () => (await gateway.request({ path: '/health/ready' })).json;
  await expect.poll(checkReady, PATIENT).toMatchObject({ status: 'ready' });
});

test('§18.8 metrics: requests by server, method and status; no series by names of callers', async () => {
  const server = await serve(LISTING);
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  const session = await gateway.open();
  await call(gateway, session, 'tools/call', { name: 'a__t' });
  for (const name of ['a__x', 'a__y', 'b__z']) await call(gateway, session, 'tools/call', { name });
  const labels = { server: 'a', method: 'tools/call', status: 'success' };
  expect(await seriesOf(gateway, 'upstream_requests_total', labels)).toBe(1);
  expect(
    await seriesOf(gateway, 'upstream_request_duration_seconds_count', { method: 'tools/call' }),
  ).toBe(1);
  const { text } = await gateway.request({ path: '/metrics' });
  expect(text).not.toMatch(/a__[xy]|b__z/);
});

test('§18.1 reload: servers that are as before keep their sessions and lists', async () => {
  const same = await serve(LISTING);
  const changed = await serve(LISTING);
  const gone = await serve(LISTING);
  const added = await serve(LISTING);
  const gateway = await start({
    file: { mcpServers: { same: same.url, changed: changed.url, gone: gone.url } },
  });
  const session = await gateway.open();
  expect(await gateway.listNames('tools/list', session)).toEqual([
    'same__t',
    'changed__t',
    'gone__t',
  ]);
  await gateway.reload({
    mcpServers: {
      added: added.url,
      same: same.url,
      changed: { url: changed.url, prefix: 'other', timeout: 50_000 },
    },
  });
  expect(await gateway.listNames('tools/list', session)).toEqual([
    'added__t',
    'same__t',
    'other__t',
  ]);
  expect([same.count('tools/list'), changed.count('tools/list')]).toEqual([1, 2]);
  const paths = ['same', 'gone'].map((server) => `/mcp/${server}`);
  const authorization = `Bearer ${await gateway.issuer.sign()}`;
  const statuses = paths.map(
    async (path) =>
      (
        await gateway.request({
          method: 'POST',
          path,
          body: INITIALIZE_REQUEST,
          headers: { authorization },
        })
      ).status,
  );
  expect(await Promise.all(statuses)).toEqual([200, 404]);
  const { error } = await call(gateway, session, 'tools/call', { name: 'gone__t' });
  expect(error.code).toBe(-32602);
  const { text } = await gateway.request({ path: '/metrics' });
  expect(text).toMatch(/upstream_up\{server="changed"/);
  expect(text).not.toMatch(/upstream_up\{server="gone"/);
  await expect.poll(gone.openStreams, PATIENT).toBe(0);
  await expect.poll(same.openStreams, PATIENT).toBeGreaterThan(0);
});

test('§18.1 reload: a call to a server that went ends normally', async () => {
  let finish = (_outcome: object) => {};
  const outcome = new Promise((resolve) => {
    finish = resolve;
  });
  const server = await serve({ ...LISTING, answers: { 'tools/call': () => outcome } });
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  const session = await gateway.open();
  const calling = call(gateway, session, 'tools/call', { name: 'a__t' });
  await expect.poll(() => server.count('tools/call'), PATIENT).toBe(1);
  await gateway.reload({ mcpServers: {} });
  expect(await gateway.listNames('tools/list', session)).toEqual([]);
  finish({ result: { content: [{ type: 'text', text: 'done' }] } });
  expect((await calling).result.content[0].text).toBe('done');
});

test('§18.1 reload: a server that only has another prefix and other tools keeps its connection', async () => {
  const server = await serve({ ...LISTING, tools: [buildTool('t'), buildTool('u')] });
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  const session = await gateway.open();
  expect(await gateway.listNames('tools/list', session)).toEqual(['a__t', 'a__u']);
  const tools = { exclude: ['t'] };
  await gateway.reload({ mcpServers: { a: { url: server.url, prefix: 'b', tools } } });
  expect(await gateway.listNames('tools/list', session)).toEqual(['b__u']);
  expect(server.count('tools/list')).toBe(1);
  const { error } = await call(gateway, session, 'tools/call', { name: 'b__t' });
  expect(error.code).toBe(-32602);
});

test('§18.1 reload: a call that waits for the list of a server that is replaced gets its answer', async () => {
  const silence = new Promise(() => {});
  const server = await serve({ ...LISTING, answers: { 'tools/list': () => silence } });
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  const session = await gateway.open();
  const calling = call(gateway, session, 'tools/call', { name: 'a__t' });
  // Once these are answered, the call waits.
  for (let n = 0; n < 3; n += 1) await call(gateway, session, 'ping', {});
  await expect.poll(() => server.count('tools/list'), PATIENT).toBe(1);
  server.listing.answers = {};
  await gateway.reload({ mcpServers: { a: { url: server.url, timeout: 50_000 } } });
  expect((await calling).result.content[0].text).toBe('ran t');
});

test('§18.1 reload: a server that asks, and has gone, gets the answer of its client all the same', async () => {
  const server = closeAfterTest(await startRelayServer2());
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  const client = await openClient(gateway, { capabilities: { elicitation: {} } });
  const stream = await client.call('a__ask');
  const { id } = await stream.next();
  await gateway.reload({ mcpServers: {} });
  await client.answer(id, ADA);
  const { result } = await lastOf(stream);
  expect(JSON.parse(result.content[0].text)).toMatchObject({ inputResponses: { who: ADA } });
});

test('§18.1 a gateway that cannot be made of its servers leaves its folder to the next one', async () => {
  const { path: dataDir } = closeAfterTest(await createTemporaryFolder());
  const config = loadConfig({ AUTH_REQUIRED: 'false', DATA_DIR: dataDir });
  const file = await readFile({ mcpServers: { a: { url: 'http://127.0.0.1:1' } } });
  const servers = file.servers.map((server) => ({ ...server, url: 'nonsense' }));
  await expect(createGateway(config, { file: { ...file, servers } })).rejects.toThrow();
  closeAfterTest(await createGateway(config, { file }));
});
