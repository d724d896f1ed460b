// §18.3: what servers log outside of calls.
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { createLocalCatalog } from '../../../src/index.ts';
import { createLock } from '../../../src/lock/lock.ts';
import { computeFingerprint } from '../../../src/lock/lock-file.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { openStore } from '../../../src/store/open.ts';
import { type EventStream, openEvents } from '../../support/clients/event-stream.ts';
import { openClient, type SessionClient } from '../../support/clients/session-client.ts';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { manualClock, readAsTimePasses } from '../../support/gateway/clock.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { closeAfterTest, useFresh, useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import {
  type CatalogGatewayOptions,
  startForTest,
} from '../../support/upstreams/catalog-gateway.ts';
import {
  buildTool,
  type Listing,
  serveForTest as serve,
} from '../../support/upstreams/listing-server.ts';
import {
  sendJson,
  startEvents,
  startScriptedHttp,
  toResult,
} from '../../support/upstreams/scripted-http.ts';
import { startSdk1Http } from '../../support/upstreams/sdk-1-http.ts';

const PATIENT = { timeout: 20_000 };
const MESSAGE = 'notifications/message';

const start = (file: object, options: Partial<CatalogGatewayOptions> = {}) =>
  startForTest({ ...options, file, env: { MCP_STREAMS: 'true', ...options.env } });

/** Of what a server says on the stream of a client's session this is told soon: what came before has been read. */
const COMPLETE = 'notifications/elicitation/complete';
const COMPLETED = { elicitationId: 'e-1' };
const OPENING_PAGES = { capabilities: { elicitation: { url: {} } } };
/** Its user has to open a page first: of that alone a session is told that it is done. */
const failFirst = () => ({
  error: { code: -32042, message: 'Open it.', data: { elicitations: [COMPLETED] } },
});

const info = (data: unknown) => ({ level: 'info', data }) as const;
const logged = (params: object) => ({ jsonrpc: '2.0', method: MESSAGE, params });

/** Lists change while servers start, and when the file does. */
async function nextLog(stream: EventStream): Promise<unknown> {
  for (;;) {
    const message = await stream.next();
    if (!message?.method.endsWith('list_changed')) return message;
  }
}

/** It logs to all of its streams, those of clients and that of the gateway. */
const serveLogging = (more: Partial<Listing> = {}) =>
  serve({ tools: [buildTool('t')], capabilities: { tools: {}, logging: {} }, ...more });

describe('a server by SDK 1', () => {
  const server = useFresh(startSdk1Http);
  const file = () => ({ mcpServers: { a: server.url } });

  /** The session at the server that is the client's own. */
  async function findOwnSession(client: SessionClient): Promise<string> {
    await client.ask('tools/list');
    const before = server.received.length;
    await client.ask('tools/call', { name: 'a__echo', arguments: { text: 'x' } });
    const asked = server.received.slice(before).map(({ headers }) => headers['mcp-session-id']);
    return String(asked.at(-1));
  }

  /** Opens the client's stream, and waits for that of its session at the server. */
  async function watch(client: SessionClient, session: string): Promise<EventStream> {
    const stream = await client.watch();
    await expect.poll(() => server.isStreaming(session), PATIENT).toBe(true);
    return stream;
  }

  test('§18.3 log messages outside of a call reach the stream of the session that they belong to', async () => {
    const client = await openClient(await start(file()));
    const session = await findOwnSession(client);
    const stream = await watch(client, session);
    const params = { level: 'warning', logger: 'index', data: { files: 3 } } as const;
    await server.log(session, params);
    expect(await nextLog(stream)).toEqual(logged(params));
    stream.hangUp();
  });

  test('§18.3 log messages of one session reach no other, of the same user or of another', async () => {
    const gateway = await start(file());
    const ann = await gateway.issuer.sign({ sub: 'ann' });
    const bob = await gateway.issuer.sign({ sub: 'bob' });
    const sessions: string[] = [];
    const streams: EventStream[] = [];
    for (const token of [ann, ann, bob]) {
      const client = await openClient(gateway, { token });
      const session = await findOwnSession(client);
      sessions.push(session);
      streams.push(await watch(client, session));
    }
    expect(new Set(sessions).size).toBe(3);
    for (const session of sessions) await server.log(session, info(session));
    for (const [at, stream] of streams.entries()) {
      expect(await nextLog(stream)).toEqual(logged(info(sessions[at])));
      stream.hangUp();
    }
  });

  test('§18.3 while one call is under way log messages are part of its answer, with two of the stream', async () => {
    const client = await openClient(await start(file()));
    const session = await findOwnSession(client);
    const stream = await watch(client, session);
    const first = client.call('a__wait', {}, { id: 'first' });
    await expect.poll(server.begunWaits, PATIENT).toBe(1);
    await server.log(session, info('one'));
    expect(await (await first).next()).toEqual(logged(info('one')));
    const second = client.call('a__wait', {}, { id: 'second' });
    await expect.poll(server.begunWaits, PATIENT).toBe(2);
    await server.log(session, info('two'));
    expect(await nextLog(stream)).toEqual(logged(info('two')));
    await client.cancel('first');
    await client.cancel('second');
    await second;
    stream.hangUp();
  });

  describe('with two replicas', () => {
    const redis = useShared(startRedis);

    test('§18.3 log messages reach the stream at whichever replica it is, from the level on that was set at any', async () => {
      const clock = manualClock();
      const here = await start(file(), { env: { REDIS_URL: redis.url } });
      const env = { REDIS_URL: redis.url, OIDC_ISSUER: here.issuer.url };
      const there = await start(file(), { env, clock });
      const client = await openClient(here);
      const session = await findOwnSession(client);
      const stream = await watch(await client.at(there), session);
      await server.log(session, info('from the other replica'));
      expect(await nextLog(stream)).toEqual(logged(info('from the other replica')));
      expect((await client.ask('logging/setLevel', { level: 'error' })).result).toEqual({});
      clock.advance(1_000);
      await server.log(session, info('too little'));
      await server.log(session, { level: 'error', data: 'broken' });
      expect(await nextLog(stream)).toEqual(logged({ level: 'error', data: 'broken' }));
      stream.hangUp();
    });
  });
});

test('§18.3 a stream for log messages is opened only at servers that log', async () => {
  const logs = await serveLogging();
  const silent = await serve({ tools: [buildTool('t')], capabilities: { tools: {} } });
  const clock = manualClock();
  const gateway = await start({ mcpServers: { logs: logs.url, silent: silent.url } }, { clock });
  const client = await openClient(gateway);
  await client.ask('tools/list');
  const stream = await client.watch();
  await expect.poll(logs.openStreams, PATIENT).toBe(2);
  expect(silent.openStreams()).toBe(1);
  logs.notify(MESSAGE, info('here'));
  expect(await nextLog(stream)).toEqual(logged(info('here')));
  stream.hangUp();
  await expect.poll(readAsTimePasses(clock, logs.openStreams), PATIENT).toBe(1);
});

test('§18.3 log messages reach the stream of a session at /mcp/<server>', async () => {
  const server = await serveLogging();
  const rules = [{ who: 'everyone', may: ['a__t'] }];
  const gateway = await start({ mcpServers: { a: server.url }, rules }, { view: 'a' });
  const token = await gateway.issuer.sign();
  const session = await gateway.open({ token });
  await gateway.listNames('tools/list', session, token);
  const stream = await openEvents({
    port: await gateway.listen(),
    method: 'GET',
    path: '/mcp/a',
    headers: {
      authorization: `Bearer ${token}`,
      'mcp-session-id': session,
      accept: 'text/event-stream',
    },
  });
  await expect.poll(server.openStreams, PATIENT).toBe(2);
  server.notify(MESSAGE, info('here'));
  expect(await nextLog(stream)).toEqual(logged(info('here')));
  stream.hangUp();
});

test('§18.3 log messages of a server that keeps no sessions reach nobody: they may be anybody’s', async () => {
  const server = closeAfterTest(await startScriptedHttp('session'));
  const streams: ServerResponse[] = [];
  const capabilities = { tools: { listChanged: true }, logging: {} };
  server.answer('initialize', (res, request) =>
    sendJson(res, toResult(request, { protocolVersion: '2025-11-25', capabilities })),
  );
  server.answer('tools/list', (res, request) =>
    sendJson(res, toResult(request, { tools: [buildTool('t')] })),
  );
  server.answer('GET', (res) => void streams.push(startEvents(res)));
  const other = await serveLogging();
  server.answer('tools/call', (res, request) =>
    sendJson(res, { jsonrpc: '2.0', id: request.message.id, ...failFirst() }),
  );
  const gateway = await start({ mcpServers: { a: server.url, b: other.url } });
  const client = await openClient(gateway, OPENING_PAGES);
  await client.ask('tools/call', { name: 'a__t' });
  const stream = await client.watch();
  await expect.poll(() => streams.length, PATIENT).toBe(2);
  await expect.poll(other.openStreams, PATIENT).toBe(2);
  for (const one of streams) {
    one.write(`data: ${JSON.stringify(logged(info('whose?')))}\n\n`);
    const completed = { jsonrpc: '2.0', method: COMPLETE, params: COMPLETED };
    one.write(`data: ${JSON.stringify(completed)}\n\n`);
  }
  expect(await nextLog(stream)).toMatchObject({ method: COMPLETE });
  other.notify(MESSAGE, info('the first'));
  expect(await nextLog(stream)).toEqual(logged(info('the first')));
  stream.hangUp();
});

test('§18.3 clients without sessions hear no log messages outside of calls', async () => {
  const server = await serve({
    tools: [buildTool('t')],
    resources: [{ uri: 'x://a', name: 'a' }],
    capabilities: { tools: {}, resources: { subscribe: true }, logging: {} },
  });
  const gateway = await start({ mcpServers: { a: server.url } });
  const notifications = { resourceSubscriptions: ['x://a'] };
  const { message, headers } = statelessRequest('subscriptions/listen', { notifications });
  const stream = await openEvents({
    port: await gateway.listen(),
    headers: {
      ...headers,
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${await gateway.issuer.sign()}`,
    },
    body: message,
  });
  expect(await stream.next()).toMatchObject({ params: { notifications } });
  await expect.poll(() => server.count('resources/subscribe'), PATIENT).toBe(1);
  await expect.poll(server.openStreams, PATIENT).toBe(2);
  server.notify(MESSAGE, info('whose?'));
  server.notify('notifications/resources/updated', { uri: 'x://a' });
  expect(await nextLog(stream)).toMatchObject({ method: 'notifications/resources/updated' });
  stream.hangUp();
});

describe('levels', () => {
  async function startListening() {
    const clock = manualClock();
    const server = await serveLogging();
    const gateway = await start({ mcpServers: { a: server.url } }, { clock });
    const client = await openClient(gateway);
    await client.ask('tools/list');
    const stream = await client.watch();
    await expect.poll(server.openStreams, PATIENT).toBe(2);
    return {
      client,
      stream,
      log: (level: string, data: unknown = level) => server.notify(MESSAGE, { level, data }),
      async setLevel(level: string) {
        expect((await client.ask('logging/setLevel', { level })).result).toEqual({});
        clock.advance(1_000);
      },
    };
  }

  test('§18.3 log messages outside of calls: from info on, until the client says another level', async () => {
    const { stream, log, setLevel } = await startListening();
    log('debug');
    log('info');
    expect(await nextLog(stream)).toEqual(logged(info('info')));
    await setLevel('debug');
    log('debug');
    expect(await nextLog(stream)).toEqual(logged({ level: 'debug', data: 'debug' }));
    await setLevel('error');
    log('warning');
    log('critical');
    expect(await nextLog(stream)).toEqual(logged({ level: 'critical', data: 'critical' }));
    stream.hangUp();
  });

  test('§18.3 log messages outside of calls: what is none is dropped', async () => {
    const { stream, log } = await startListening();
    log('loud');
    log('info', 'the first that is one');
    expect(await nextLog(stream)).toEqual(logged(info('the first that is one')));
    stream.hangUp();
  });
});

test('§18.5 rules: whoever may see nothing of a server hears none of its log messages', async () => {
  const [a, b] = [await serveLogging(), await serveLogging()];
  const mcpServers = { a: a.url, b: b.url };
  const toFile = (who: unknown) => ({
    mcpServers,
    rules: [
      { who, may: ['a__*'] },
      { who: 'everyone', may: ['b__*'] },
    ],
  });
  const gateway = await start(toFile({ groups: ['dev'] }));
  const watch = async (claims: Readonly<Record<string, unknown>>) => {
    const client = await openClient(gateway, { token: await gateway.issuer.sign(claims) });
    await client.ask('tools/list');
    return client.watch();
  };
  const ann = await watch({ sub: 'ann', groups: ['dev'] });
  const bob = await watch({ sub: 'bob', groups: [] });
  for (const { openStreams } of [a, b]) await expect.poll(openStreams, PATIENT).toBe(3);
  const log = (what: string) => {
    a.notify(MESSAGE, info(`a ${what}`));
  };
  /** What comes of the other server shows that nothing came before. */
  const expectSilence = async (stream: EventStream, what: string) => {
    b.notify(MESSAGE, info(`b ${what}`));
    expect(await nextLog(stream)).toEqual(logged(info(`b ${what}`)));
  };
  log('one');
  expect(await nextLog(ann)).toEqual(logged(info('a one')));
  await expectSilence(bob, 'one');
  expect(await nextLog(ann)).toEqual(logged(info('b one')));

  await gateway.reload(toFile('everyone'));
  log('two');
  expect(await nextLog(bob)).toEqual(logged(info('a two')));
  expect(await nextLog(ann)).toEqual(logged(info('a two')));

  await gateway.reload(toFile({ groups: ['dev'] }));
  log('three');
  expect(await nextLog(ann)).toEqual(logged(info('a three')));
  await expectSilence(bob, 'three');
  for (const stream of [ann, bob]) stream.hangUp();
});

const NOTHING_APPROVED = {
  instructions: undefined,
  skills: new Map(),
  prompts: new Map(),
  tools: new Map(),
};

function approveTool(tool: { readonly name: string }) {
  const fingerprint = computeFingerprint('tool', tool);
  if (fingerprint === undefined) throw new Error('cannot be approved');
  return { ...NOTHING_APPROVED, tools: new Map([[tool.name, [fingerprint]]]) };
}

test.each([
  { rules: [{ who: 'everyone', may: ['a__*', 'b__*'] }], by: 'that rules give' },
  { rules: undefined, by: 'there is, without rules' },
])(
  '§18.7 the lock: where it hides all of a server $by, nobody hears its log messages',
  async ({ rules }) => {
    const [a, b] = [await serveLogging(), await serveLogging()];
    const gateway = await start(
      {
        mcpServers: { a: a.url, b: b.url },
        ...(rules && { rules }),
      },
      {
        lock: createLock({
          servers: new Map([
            ['a', NOTHING_APPROVED],
            ['b', approveTool(buildTool('t'))],
          ]),
        }),
      },
    );
    const client = await openClient(gateway);
    expect(await gateway.listNames('tools/list')).toEqual(['b__t']);
    const stream = await client.watch();
    for (const { openStreams } of [a, b])
      await expect.poll(openStreams, PATIENT).toBeGreaterThan(1);
    a.notify(MESSAGE, info('a'));
    b.notify(MESSAGE, info('b'));
    expect(await nextLog(stream)).toEqual(logged(info('b')));
    stream.hangUp();
  },
);

test('§18.4 log messages outside of calls are dropped while the store cannot say the level, and it is asked once a second', async () => {
  const clock = manualClock();
  const server = await serveLogging({ answers: { 'tools/call': failFirst } });
  const folder = closeAfterTest(await createTemporaryFolder());
  const config = loadConfig({ AUTH_REQUIRED: 'false', DATA_DIR: folder.path });
  const store = await openStore(config, { clock: systemClock, log: collectLog().log });
  let isDown = false;
  let lookups = 0;
  const gateway = await start(
    { mcpServers: { a: server.url } },
    {
      clock,
      deps: {
        store: {
          ...store,
          async admitRequest(windows, access) {
            // Requests of clients are counted in windows.
            if (windows.length === 0) lookups += 1;
            if (windows.length === 0 && isDown) throw new Error('The store is down.');
            return store.admitRequest(windows, access);
          },
        },
      },
    },
  );
  const client = await openClient(gateway, OPENING_PAGES);
  await client.ask('tools/call', { name: 'a__t' });
  const stream = await client.watch();
  await expect.poll(server.openStreams, PATIENT).toBe(2);
  isDown = true;
  lookups = 0;
  for (let at = 0; at < 50; at += 1) server.notify(MESSAGE, info('lost'));
  server.notify(COMPLETE, COMPLETED);
  expect(await nextLog(stream)).toMatchObject({ method: COMPLETE });
  expect(lookups).toBe(1);
  isDown = false;
  clock.advance(1_000);
  for (let at = 0; at < 50; at += 1) server.notify(MESSAGE, info(at));
  for (let at = 0; at < 50; at += 1) expect(await nextLog(stream)).toEqual(logged(info(at)));
  expect(lookups).toBe(2);
  stream.hangUp();
});

test('§18.4 log messages outside of calls: 1,000 a second are passed on, in their order', async () => {
  const clock = manualClock();
  const server = await serveLogging();
  const gateway = await start({ mcpServers: { a: server.url } }, { clock });
  const client = await openClient(gateway);
  await client.ask('tools/list');
  const stream = await client.watch();
  await expect.poll(server.openStreams, PATIENT).toBe(2);
  const heard: unknown[] = [];
  const reading = (async () => {
    while (heard.length < 2500) {
      const message = await stream.next();
      if (message.method === MESSAGE) heard.push(message.params.data);
    }
  })();
  for (let at = 0; at < 2500; at += 1) server.notify(MESSAGE, info(at));
  for (const count of [1000, 2000]) {
    await expect.poll(() => heard.length, PATIENT).toBe(count);
    clock.advance(1_000);
  }
  await reading;
  expect(heard).toEqual(Array.from({ length: 2500 }, (_, at) => at));
  stream.hangUp();
});

test('§18.4 log messages outside of calls push nothing else out of the stream of a slow client', async () => {
  type Listener = Parameters<NonNullable<ReturnType<typeof createLocalCatalog>['listen']>>[1];
  let listener: Listener | undefined;
  const builtIn = {
    ...createLocalCatalog({}),
    listen(_caller: unknown, given: Listener) {
      listener = given;
      return () => {};
    },
  };
  const gateway = await start({ mcpServers: {} }, { builtIn });
  const client = await openClient(gateway);
  const stream = await client.watch();
  const data = 'x'.repeat(1_000);
  listener?.logged?.(info('first'));
  expect(await nextLog(stream)).toEqual(logged(info('first')));
  // In one turn of the event loop nobody reads.
  for (let at = 0; at < 1_000; at += 1) listener?.logged?.(info(data));
  listener?.listChanged('prompts');
  let logs = 0;
  for (;;) {
    const { method } = await stream.next();
    if (method === 'notifications/prompts/list_changed') break;
    logs += 1;
  }
  expect(logs).toBeGreaterThan(100);
  expect(logs).toBeLessThan(140);
  stream.hangUp();
});
