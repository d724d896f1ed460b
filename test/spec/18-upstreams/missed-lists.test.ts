// §18.4: a first list does not wait for a slow server, and clients are told when that has said what it has.
import { describe, expect, test } from 'vitest';
import { type EventStream, openEvents } from '../../support/clients/event-stream.ts';
import { BOTH_TYPES } from '../../support/clients/session-client.ts';
import { stateless, statelessRequest } from '../../support/clients/stateless.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';
import { countSeconds } from '../../support/upstreams/as-seconds-pass.ts';
import { type CatalogGateway, startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

interface Started {
  readonly clock: ManualClock;
  readonly gateway: CatalogGateway;
  /** The slow server says what it has, to all who have asked. */
  answer(): void;
  readonly slow: Awaited<ReturnType<typeof serve>>;
}

const METHODS = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'];

interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly path?: string;
  readonly isPersonal?: boolean;
  readonly more?: object;
}

/** One server lists at once, the other when the test says so. */
async function start({
  env = {},
  path,
  isPersonal = false,
  more,
}: StartOptions = {}): Promise<Started> {
  const clock = manualClock();
  const waiting: (() => void)[] = [];
  const has = (name: string) => ({
    tools: [buildTool(name)],
    prompts: [{ name }],
    resources: [{ uri: `x://${name}`, name }],
    resourceTemplates: [{ uriTemplate: `x://${name}/{id}`, name }],
  });
  const listed = has('late');
  const slow = await serve({
    ...listed,
    answers: Object.fromEntries(
      METHODS.map((method) => [
        method,
        () =>
          new Promise((resolve) => {
            waiting.push(() => resolve({ result: listed }));
          }),
      ]),
    ),
  });
  const quick = await serve(has('t'));
  const auth = isPersonal ? { auth: { type: 'identity' } } : {};
  const gateway = await startForTest({
    file: { mcpServers: { slow: { url: slow.url, ...auth }, quick: quick.url }, ...more },
    clock,
    env,
    ...(path !== undefined && { view: path }),
  });
  await expect.poll(() => quick.count('resources/templates/list')).toBe(1);
  return {
    clock,
    gateway,
    slow,
    answer: () => {
      for (const resume of waiting.splice(0)) resume();
    },
  };
}

interface Client {
  ask(method: string, params?: object, accept?: string): Promise<EventStream>;
  /** Answered with JSON. */
  list(method: string, accept?: string): Promise<readonly string[]>;
  watch(): Promise<EventStream>;
}

async function openSession(
  { clock, gateway }: Started,
  { protocolVersion = '2025-06-18', sub = 'ada', path = '/mcp' } = {},
): Promise<Client> {
  const token = await gateway.issuer.sign({ sub });
  const port = await gateway.listen();
  const authorization = `Bearer ${token}`;
  const params = { ...INITIALIZE_REQUEST.params, protocolVersion };
  const opening = openEvents({
    port,
    path,
    headers: { authorization, accept: BOTH_TYPES },
    body: { ...INITIALIZE_REQUEST, params },
  });
  await countSeconds(clock, opening);
  const opened = await opening;
  await opened.text();
  const own = { authorization, 'mcp-session-id': String(opened.headers['mcp-session-id']) };
  const ask: Client['ask'] = (method, asked = {}, accept = BOTH_TYPES) =>
    openEvents({
      port,
      path,
      headers: { ...own, accept },
      body: { jsonrpc: '2.0', id: 1, method, params: asked },
    });
  return {
    ask,
    async list(method, accept) {
      const answer = await ask(method, {}, accept);
      expect(answer.isStream).toBe(false);
      const { result } = JSON.parse(await answer.text());
      const [items] = Object.values(result).filter(Array.isArray);
      return (items ?? []).map(({ name }) => name);
    },
    watch: () =>
      openEvents({ port, path, method: 'GET', headers: { ...own, accept: 'text/event-stream' } }),
  };
}

const CALL = ['tools/call', { name: 'quick__t' }] as const;
const changed = (list: string) => ({ method: `notifications/${list}/list_changed` });

describe('a session whose client takes streams', () => {
  test('§18.4 waits 5 s, and is told once in the answer to its next call', async () => {
    const started = await start();
    const client = await openSession(started);
    const listing = client.list('tools/list');
    expect(await countSeconds(started.clock, listing)).toBe(5);
    expect(await listing).toEqual(['quick__t']);
    // Nothing has come yet.
    expect((await client.ask(...CALL)).isStream).toBe(false);
    started.answer();
    await expect.poll(async () => (await client.ask('prompts/list')).isStream).toBe(true);
    expect(await client.list('tools/list')).toEqual(['slow__late', 'quick__t']);
    const after = await client.ask(...CALL);
    expect(after.isStream).toBe(false);
  });

  test('§18.4 is told in order: what has changed, then the result of the call', async () => {
    const started = await start();
    const client = await openSession(started);
    await countSeconds(started.clock, client.list('tools/list'));
    started.answer();
    let answer = await client.ask(...CALL);
    await expect
      .poll(async () => {
        if (!answer.isStream) answer = await client.ask(...CALL);
        return answer.isStream;
      })
      .toBe(true);
    expect(await answer.rest()).toMatchObject([
      changed('tools'),
      { id: 1, result: { content: [{ text: 'ran t' }] } },
    ]);
  });

  test.each([
    ['prompts/list', 'prompts'],
    ['resources/list', 'resources'],
    ['resources/templates/list', 'resources'],
  ])('§18.4 is told of %s alike', async (method, list) => {
    const started = await start();
    const client = await openSession(started);
    expect(await countSeconds(started.clock, client.list(method))).toBe(5);
    started.answer();
    let messages: readonly unknown[] = [];
    await expect
      .poll(async () => {
        const answer = await client.ask(...CALL);
        if (answer.isStream) messages = await answer.rest();
        return answer.isStream;
      })
      .toBe(true);
    expect(messages).toMatchObject([changed(list), { result: {} }]);
  });

  test.each([
    ['a server', 'slow', {}],
    ['a view', 'few', { views: { few: { tools: ['*'] } } }],
  ])('§18.4 is told alike at the path of %s', async (_what, path, more) => {
    const started = await start({ more });
    const client = await openSession(started, { path: `/mcp/${path}` });
    expect(await countSeconds(started.clock, client.list('tools/list'))).toBe(5);
    started.answer();
    await expect.poll(async () => (await client.ask('prompts/list')).isStream).toBe(true);
    expect((await client.list('tools/list')).some((name) => name.endsWith('late'))).toBe(true);
  });

  test('§18.4 finds what has come in a view that is searched', async () => {
    const started = await start({ more: { views: { few: { tools: ['*'], search: true } } } });
    const client = await openSession(started, { path: '/mcp/few' });
    expect(await countSeconds(started.clock, client.list('tools/list'))).toBe(5);
    const search = async () =>
      (
        await client.ask('tools/call', {
          name: 'search_tools',
          arguments: { query: 'late' },
        })
      ).text();
    // It is waited for once.
    expect(await countSeconds(started.clock, search())).toBe(0);
    started.answer();
    await expect.poll(search).toContain('slow__late');
  });

  test('§18.4 keeps the status of an error, and is told with the next result', async () => {
    const started = await start();
    const client = await openSession(started);
    await countSeconds(started.clock, client.list('tools/list'));
    started.answer();
    await expect.poll(() => started.gateway.listNames('tools/list')).toContain('slow__late');
    const refused = await client.ask('tools/call', { name: 'nobody' });
    expect(refused).toMatchObject({ isStream: false });
    expect(JSON.parse(await refused.text())).toHaveProperty('error');
    const answer = await client.ask(...CALL);
    expect(await answer.rest()).toMatchObject([changed('tools'), { result: {} }]);
  });

  test('§18.4 is told later where a call takes no stream', async () => {
    const started = await start();
    const client = await openSession(started);
    await countSeconds(started.clock, client.list('tools/list'));
    started.answer();
    await expect.poll(() => started.gateway.listNames('tools/list')).toContain('slow__late');
    const plain = await client.ask(...CALL, 'application/json');
    expect(plain.isStream).toBe(false);
    expect((await client.ask(...CALL)).isStream).toBe(true);
  });

  test('§18.4 is told on its own stream, where it has one, and not again', async () => {
    const started = await start({ env: { MCP_STREAMS: 'true' } });
    const client = await openSession(started);
    const stream = await client.watch();
    const json = 'application/json';
    // Who hears of changes there needs no other way.
    expect(await countSeconds(started.clock, client.list('tools/list', json))).toBe(5);
    expect(await client.list('tools/list')).toEqual(['quick__t']);
    started.answer();
    expect(await stream.next()).toMatchObject(changed('tools'));
    expect((await client.ask(...CALL)).isStream).toBe(false);
  });
});

describe('a client that cannot be told', () => {
  test.each([
    ['that takes JSON alone', '2025-06-18', 'application/json'],
    ['of 2024-11-05', '2024-11-05', BOTH_TYPES],
  ])('§18.4 waits 8 s (%s)', async (_what, protocolVersion, accept) => {
    const started = await start();
    const client = await openSession(started, { protocolVersion });
    const listing = client.list('tools/list', accept);
    expect(await countSeconds(started.clock, listing)).toBe(8);
    expect(await listing).toEqual(['quick__t']);
  });

  test('§18.4 gets what comes meanwhile', async () => {
    const started = await start();
    const client = await openSession(started);
    const listing = client.list('tools/list', 'application/json');
    await expect.poll(() => started.slow.count('tools/list')).toBe(1);
    for (let second = 0; second < 7; second += 1) started.clock.advance(1_000);
    started.answer();
    expect(await listing).toEqual(['slow__late', 'quick__t']);
  });
});

test('§18.4 a client without a session is told to ask again soon', async () => {
  const { clock, gateway, answer } = await start();
  const list = async () => (await stateless(gateway, 'tools/list')).json.result;
  const listing = list();
  expect(await countSeconds(clock, listing)).toBe(5);
  expect(await listing).toMatchObject({ tools: [{ name: 'quick__t' }], ttlMs: 1_000 });
  answer();
  await expect.poll(async () => (await list()).tools.length).toBe(2);
  expect((await list()).ttlMs).toBeGreaterThan(1_000);
});

describe('what one user waited for in vain', () => {
  test('§18.4 no other waits for, where all have the same list', async () => {
    const started = await start();
    const [ada, ben] = [await openSession(started), await openSession(started, { sub: 'ben' })];
    expect(await countSeconds(started.clock, ada.list('tools/list'))).toBe(5);
    expect(await countSeconds(started.clock, ben.list('tools/list'))).toBe(0);
  });

  test('§18.4 those who come together wait for it together', async () => {
    const started = await start();
    const [ada, ben] = [await openSession(started), await openSession(started, { sub: 'ben' })];
    const both = Promise.all([ada.list('tools/list'), ben.list('tools/list')]);
    expect(await countSeconds(started.clock, both)).toBe(5);
  });

  test('§18.4 is waited for a second where each has a list of their own', async () => {
    const started = await start({ isPersonal: true });
    const [ada, ben, cy] = [
      await openSession(started),
      await openSession(started, { sub: 'ben' }),
      await openSession(started, { sub: 'cy' }),
    ];
    expect(await countSeconds(started.clock, ada.list('tools/list'))).toBe(5);
    for (const other of [ben, cy]) {
      expect(await countSeconds(started.clock, other.list('tools/list'))).toBeLessThanOrEqual(1);
      expect(await countSeconds(started.clock, other.list('tools/list'))).toBe(0);
    }
    // All three are told when theirs have come.
    await expect.poll(() => started.slow.count('tools/list')).toBe(3);
    started.answer();
    for (const client of [ada, ben, cy]) {
      await expect
        .poll(async () => {
          // A list that changes twice in a second is told once.
          started.clock.advance(1_000);
          return (await client.ask(...CALL)).isStream;
        })
        .toBe(true);
      expect(await client.list('tools/list')).toContain('slow__late');
    }
  });

  test('§18.4 is told nobody else: another user’s list has not come', async () => {
    const started = await start({ isPersonal: true });
    const [ada, ben] = [await openSession(started), await openSession(started, { sub: 'ben' })];
    await countSeconds(started.clock, ada.list('tools/list'));
    started.answer();
    await countSeconds(started.clock, ben.list('tools/list'));
    await expect.poll(async () => (await ada.ask(...CALL)).isStream).toBe(true);
    expect((await ben.ask(...CALL)).isStream).toBe(false);
  });
});

test.each([
  ['a session', '2025-06-18'],
  ['the stateless era', '2026-07-28'],
])(
  '§18.4 a call of what a slow server may have waits for its list, and is made (%s)',
  async (_, revision) => {
    const started = await start();
    const { clock, gateway, answer, slow } = started;
    const client = await openSession(started);
    await countSeconds(clock, client.list('tools/list'));
    const { message, headers } = statelessRequest('tools/call', { name: 'slow__late' });
    const calling =
      revision === '2026-07-28'
        ? openEvents({
            port: await gateway.listen(),
            headers: {
              ...headers,
              authorization: `Bearer ${await gateway.issuer.sign()}`,
              accept: BOTH_TYPES,
            },
            body: message,
          })
        : client.ask('tools/call', { name: 'slow__late' });
    await new Promise((resolve) => setTimeout(resolve, 50));
    clock.advance(7_000);
    answer();
    const opened = await calling;
    const text = opened.isStream ? JSON.stringify(await opened.rest()) : await opened.text();
    expect(text).toContain('ran late');
    expect(slow.count('tools/call')).toBe(1);
  },
);

test('§18.4 LIST_WAIT_MS says how long a first list waits', async () => {
  const started = await start({ env: { LIST_WAIT_MS: '2000' } });
  const client = await openSession(started);
  expect(await countSeconds(started.clock, client.list('tools/list'))).toBe(2);
});
