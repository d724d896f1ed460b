// The first two doors, as they are on the wire in both eras: who is asked how, what stands in the list, and what a no or a silence
// comes to.
import { expect, test } from 'vitest';
import { CLIENT_CAPABILITIES } from '../../support/clients/stateless.ts';
import { connect, connectBy, DECLINE, readLink } from '../../support/connections/connect-steps.ts';
import { CONNECTING_CLIENTS } from '../../support/connections/connecting-clients.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { KEEPS_TO_MCP } from '../../support/connections/habits.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const MINUTE_MS = 60_000;
const ASKABLE_BY_URL = { [CLIENT_CAPABILITIES]: { elicitation: { url: {} } } };

interface StartOptions {
  readonly auth?: Readonly<Record<string, unknown>>;
  readonly file?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
}

async function start(habits = KEEPS_TO_MCP, { auth = {}, file = {}, env = {} }: StartOptions = {}) {
  const clock = manualClock(1_800_000_000_000);
  const server = closeAfterTest(await startProtectedServer({ habits, clock }));
  const gateway = closeAfterTest(
    await startConnectingGateway({
      clock,
      file,
      env,
      servers: { wiki: server.configure(auth) },
    }),
  );
  return { clock, server, gateway };
}

test('§24.3 door 1, stateless: input_required with an elicitation by URL that names the server; a second link within a minute is the same', async () => {
  const { gateway } = await start();
  const user = await gateway.logIn('ada');
  const ask = () => user.ask('tools/call', { name: 'wiki__whoami' }, ASKABLE_BY_URL);
  const { status, json } = await ask();
  expect(status).toBe(200);
  expect(json.result.resultType).toBe('input_required');
  const [request] = Object.values<{ method: string; params: Record<string, unknown> }>(
    json.result.inputRequests,
  );
  expect(request?.method).toBe('elicitation/create');
  expect(request?.params).toMatchObject({
    mode: 'url',
    url: expect.stringMatching(new RegExp(`^${gateway.baseUrl}/connections/wiki\\?request=`)),
    message: expect.stringContaining('wiki'),
  });
  const [again] = Object.values<{ params: { url: string } }>(
    (await ask()).json.result.inputRequests,
  );
  expect(again?.params.url).toBe(request?.params.url);
});

test('§24.3 door 2: the result says which server, why, the link, and to call again; it has no challenge of the server', async () => {
  const { gateway, server } = await start();
  const user = await gateway.logIn('ada');
  const { status, headers, json } = await user.ask('tools/call', { name: 'wiki__whoami' });
  expect([status, headers.get('www-authenticate'), json.result.isError]).toEqual([200, null, true]);
  const [{ text } = { text: '' }] = json.result.content;
  expect(text).toContain('wiki');
  expect(text).toMatch(/call .*again/i);
  expect(readLink(text)).toMatch(new RegExp(`^${gateway.baseUrl}/connections/wiki\\?request=`));
  expect(text).not.toContain(new URL(server.url).host);
});

test.for([
  ['declines the question', 'decline'],
  ['closes the question', 'cancel'],
] as const)(
  '§24.3 door 1: whoever %s gets an error result, and nothing is sent',
  async ([, action]) => {
    for (const row of CONNECTING_CLIENTS) {
      const { gateway, server } = await start();
      const client = await row.connect(gateway.mcpUrl, {
        person: 'ada',
        onUrl: async () => action,
      });
      const { isError } = await client.call('wiki__whoami');
      expect([row.title, isError]).toEqual([row.title, true]);
      expect(server.calls()).toEqual([]);
      await client.close();
    }
  },
);

test.for(CONNECTING_CLIENTS.map((row) => [row.title, row] as const))(
  '§24.3 door 1, client %s: whoever says “Not now” on the page ends the wait of the call',
  async ([, row]) => {
    const { gateway, server } = await start();
    const browser = gateway.createBrowser({ person: 'ada' });
    const client = await row.connect(gateway.mcpUrl, {
      person: 'ada',
      async onUrl({ url }) {
        void browser.open(url).then((page) => browser.press(page, DECLINE));
        return 'accept';
      },
    });
    expect((await client.call('wiki__whoami')).isError).toBe(true);
    expect(server.calls()).toEqual([]);
    await client.close();
  },
);

test.for(CONNECTING_CLIENTS.map((row) => [row.title, row] as const))(
  '§24.3 door 1, client %s: a person who never comes back ends the wait after five minutes; the link is good for ten, and the next call goes through',
  async ([, row]) => {
    const { clock, gateway } = await start();
    const browser = gateway.createBrowser({ person: 'ada', account: 'ada@work' });
    const links: string[] = [];
    const client = await row.connect(gateway.mcpUrl, {
      person: 'ada',
      async onUrl({ url }) {
        links.push(url);
        return 'accept';
      },
    });
    const began = clock.now();
    let isOver = false;
    const waiting = client.call('wiki__whoami').finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      if (!isOver && links.length > 0) clock.advance(5000);
    }
    expect((await waiting).isError).toBe(true);
    expect(clock.now() - began).toBeGreaterThan(4.9 * MINUTE_MS);
    expect(clock.now() - began).toBeLessThan(7 * MINUTE_MS);
    await connectBy(browser, links[0] ?? '');
    expect((await client.call('wiki__whoami')).text).toBe('ada@work');
    await client.close();
  },
);

test('§24.3 before a connection the server shows one tool, wiki__connect, which leads to the doors; after it, its own', async () => {
  const { gateway } = await start();
  const user = await gateway.logIn('ada');
  expect(await user.listToolNames()).toEqual(['wiki__connect']);
  const asked = await user.call('wiki__connect');
  const browser = gateway.createBrowser({ person: 'ada', account: 'ada@work' });
  await connectBy(browser, readLink(asked.text));
  expect(await user.listToolNames()).toEqual(['wiki__whoami', 'wiki__slow', 'wiki__write']);
  // Of another user nothing has changed.
  expect(await (await gateway.logIn('bob')).listToolNames()).toEqual(['wiki__connect']);
});

test('§24.3 a session that has a stream is told that the list has changed: of the person who connected, and of nobody else', async () => {
  const { gateway } = await start(KEEPS_TO_MCP, { env: { MCP_STREAMS: 'true' } });
  const [row] = CONNECTING_CLIENTS;
  const ada = await row?.connect(gateway.mcpUrl, { person: 'ada' });
  const bob = await row?.connect(gateway.mcpUrl, { person: 'bob' });
  await ada?.listToolNames();
  await bob?.listToolNames();
  const before = [ada?.countListChanges(), bob?.countListChanges()];
  await connect(gateway, gateway.createBrowser({ person: 'ada', account: 'a' }), 'wiki');
  await expect.poll(() => ada?.countListChanges()).toBeGreaterThan(0);
  expect(await ada?.listToolNames()).toEqual(['wiki__whoami', 'wiki__slow', 'wiki__write']);
  expect([before, bob?.countListChanges()]).toEqual([[0, 0], 0]);
  await ada?.close();
  await bob?.close();
});

test('§24.3 list anonymous: a server that lists to anybody shows its tools before one connects, and a call leads to the doors', async () => {
  const { gateway, server } = await start(
    { ...KEEPS_TO_MCP, listsToAnybody: true },
    { auth: { list: 'anonymous' } },
  );
  const user = await gateway.logIn('ada');
  await expect
    .poll(() => user.listToolNames())
    .toEqual(expect.arrayContaining(['wiki__whoami', 'wiki__slow', 'wiki__write']));
  expect(server.seen('mcp').every(({ headers }) => headers.authorization === undefined)).toBe(true);
  const refused = await user.call('wiki__whoami');
  expect(refused.isError).toBe(true);
  await connectBy(
    gateway.createBrowser({ person: 'ada', account: 'ada@work' }),
    readLink(refused.text),
  );
  expect((await user.call('wiki__whoami')).text).toBe('ada@work');
});

test('§24.3 rules hold before and after: who may see nothing of a server is not shown its connect tool, and cannot call it', async () => {
  const { gateway } = await start(KEEPS_TO_MCP, {
    file: { rules: [{ who: { claims: { sub: 'ada' } }, may: ['wiki__whoami'] }] },
  });
  const [ada, bob] = [await gateway.logIn('ada'), await gateway.logIn('bob')];
  expect(await ada.listToolNames()).toEqual(['wiki__connect']);
  expect(await bob.listToolNames()).toEqual([]);
  const { json } = await bob.ask('tools/call', { name: 'wiki__connect' });
  expect(JSON.stringify(json)).not.toContain('/connections/');
  const link = readLink((await ada.call('wiki__whoami')).text);
  await connectBy(gateway.createBrowser({ person: 'ada', account: 'ada@work' }), link);
  expect(await ada.listToolNames()).toEqual(['wiki__whoami']);
});

test('§24.4 what looks after a server never uses a token of a person: without calls, nothing is sent with one', async () => {
  const { clock, gateway, server } = await start();
  await connect(gateway, gateway.createBrowser({ person: 'ada', account: 'ada@work' }), 'wiki');
  const user = await gateway.logIn('ada');
  await user.call('wiki__whoami');
  const count = server.seen('mcp').filter(({ headers }) => headers.authorization).length;
  clock.advance(30 * MINUTE_MS);
  await new Promise((resolve) => setTimeout(resolve, 50));
  // That a session which nobody uses ends there is its own matter.
  const used = server
    .seen('mcp')
    .filter(({ headers, method }) => headers.authorization && method !== 'DELETE');
  expect(used.slice(count).map(({ method, rpcMethod }) => [method, rpcMethod])).toEqual([]);
});
