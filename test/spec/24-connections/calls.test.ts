// What a call, a list and a session at a server come to by whose connection there is, seen from outside: who is asked in which
// words, what rules and the lock say before and after, and that nobody meets what is another's.
import { expect, test } from 'vitest';
import { createLock } from '../../../src/lock/lock.ts';
import { EMPTY_LOCK_FILE } from '../../../src/lock/lock-file.ts';
import { CLIENT_CAPABILITIES } from '../../support/clients/stateless.ts';
import { connect, connectBy, readLink } from '../../support/connections/connect-steps.ts';
import { CONNECTING_CLIENTS, type OnUrl } from '../../support/connections/connecting-clients.ts';
import {
  type ConnectingGatewayOptions,
  startConnectingGateway,
} from '../../support/connections/connecting-gateway.ts';
import { KEEPS_TO_MCP } from '../../support/connections/habits.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { SECRET, withSecret } from '../../support/oauth/machine-clients.ts';

const ASKABLE_BY_URL = { [CLIENT_CAPABILITIES]: { elicitation: { url: {} } } };
const TOOLS = ['wiki__whoami', 'wiki__slow', 'wiki__write'];

async function start(options: Partial<ConnectingGatewayOptions> = {}) {
  const server = closeAfterTest(await startProtectedServer({ habits: KEEPS_TO_MCP }));
  const gateway = closeAfterTest(
    await startConnectingGateway({ servers: { wiki: server.configure() }, ...options }),
  );
  const browserOf = (person: string, account = `${person}@work`) =>
    gateway.createBrowser({ person, account });
  const connectAs = (person: string, account?: string) =>
    connect(gateway, browserOf(person, account), 'wiki');
  return { server, gateway, browserOf, connectAs };
}

test.for(CONNECTING_CLIENTS.map((row) => [row.title, row] as const))(
  '§24.3 door 1, client %s: the question says which server and why; where it has a session it is told that it is done with',
  async ([, row]) => {
    const { gateway, browserOf } = await start();
    const browser = browserOf('ada');
    const onUrl: OnUrl = async ({ url }) => {
      await connectBy(browser, url);
      return 'accept';
    };
    const client = closeAfterTest(await row.connect(gateway.mcpUrl, { person: 'ada', onUrl }));
    expect((await client.call('wiki__whoami')).text).toBe('ada@work');
    const [asked, ...others] = client.asked;
    expect(others).toEqual([]);
    expect(asked?.message).toContain('You need to log in to wiki first');
    const completed = row.era === 'session' ? [asked?.elicitationId] : [];
    await expect.poll(() => client.completed).toEqual(completed);
  },
);

test.for(CONNECTING_CLIENTS.map((row) => [row.title, row] as const))(
  '§24.4 door 1, client %s: a tool that wants more scopes asks for them by name, and the call goes on',
  async ([, row]) => {
    const { gateway, browserOf, connectAs, server } = await start();
    await connectAs('ada');
    const browser = browserOf('ada');
    const onUrl: OnUrl = async ({ url }) => {
      await connectBy(browser, url);
      return 'accept';
    };
    const client = closeAfterTest(await row.connect(gateway.mcpUrl, { person: 'ada', onUrl }));
    expect((await client.call('wiki__write')).text).toBe('written by ada@work');
    expect(client.asked.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^wiki requires more permissions: .*mcp:write/),
    ]);
    expect(server.seen('authorize').at(-1)?.query.get('scope')).toContain('mcp:write');
  },
);

test('§24.3 list anonymous: a server that lists to nobody without a login is shown as any other', async () => {
  const server = closeAfterTest(await startProtectedServer({ habits: KEEPS_TO_MCP }));
  const servers = { wiki: server.configure({ list: 'anonymous' }) };
  const gateway = closeAfterTest(await startConnectingGateway({ servers }));
  const user = await gateway.logIn('ada');
  expect(await user.listToolNames()).toEqual(['wiki__connect']);
  expect(readLink((await user.call('wiki__whoami')).text)).toContain('/connections/wiki');
});

test('§24.3 at the path of the server, the tools have its own names before and after', async () => {
  const { gateway, browserOf } = await start();
  const url = new URL(`${gateway.mcpUrl.href}/wiki`);
  const [row] = CONNECTING_CLIENTS;
  const client = await row?.connect(url, { person: 'ada' });
  expect(await client?.listToolNames()).toEqual(['connect']);
  const { text = '' } = (await client?.call('connect')) ?? {};
  expect(readLink((await client?.call('whoami'))?.text ?? '')).toBe(readLink(text));
  await connectBy(browserOf('ada'), readLink(text));
  expect(await client?.listToolNames()).toEqual(['whoami', 'slow', 'write']);
  expect((await client?.call('whoami'))?.text).toBe('ada@work');
  await client?.close();
});

test('§24.3 door 1: a client that takes no stream cannot be asked meanwhile: it gets -32042 with the address, and calls again', async () => {
  const { gateway, browserOf } = await start();
  const { accessToken } = await gateway.logIn('ada');
  const post = (message: object, headers: Readonly<Record<string, string>> = {}) =>
    fetch(gateway.mcpUrl, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        authorization: `Bearer ${accessToken}`,
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    });
  const opened = await post({
    id: 1,
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: { elicitation: { url: {} } },
      clientInfo: { name: 'plain', version: '1' },
    },
  });
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  await post({ method: 'notifications/initialized' }, session);
  const call = async () => {
    const params = { name: 'wiki__whoami', arguments: {} };
    return (await post({ id: 2, method: 'tools/call', params }, session)).json();
  };
  const { error } = (await call()) as {
    error: { code: number; data: { elicitations: readonly { url: string }[] } };
  };
  expect(error.code).toBe(-32042);
  expect(error.data.elicitations).toEqual([
    {
      mode: 'url',
      elicitationId: expect.any(String),
      url: expect.stringContaining(`${gateway.baseUrl}/connections/wiki?request=`),
      message: expect.stringContaining('wiki'),
    },
  ]);
  await connectBy(browserOf('ada'), error.data.elicitations[0]?.url ?? '');
  expect(await call()).toMatchObject({ result: { content: [{ text: 'ada@work' }] } });
});

test('§24.1 shared: one connection serves all people; before it, all are told that an operator makes it', async () => {
  const server = closeAfterTest(await startProtectedServer({ habits: KEEPS_TO_MCP }));
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: { wiki: server.configure({ owner: 'shared' }) },
      env: { ADMIN_GROUPS: 'operators' },
    }),
  );
  const people = [await gateway.logIn('ada'), await gateway.logIn('bob')];
  for (const user of people) {
    const { isError, text } = await user.call('wiki__whoami');
    expect([isError, text]).toEqual([
      true,
      expect.stringContaining('an operator of this service has to make'),
    ]);
    const { json } = await user.ask('tools/call', { name: 'wiki__whoami' }, ASKABLE_BY_URL);
    expect(json.result.isError).toBe(true);
  }
  const operator = gateway.createBrowser({
    person: 'olga',
    groups: 'operators',
    account: 'robot@work',
  });
  await connect(gateway, operator, 'wiki');
  for (const user of people) {
    expect(await user.listToolNames()).toEqual(TOOLS);
    expect((await user.call('wiki__whoami')).text).toBe('robot@work');
  }
});

test('§24.3 doors: what is no tool gets the same text as an error of JSON-RPC, and no challenge', async () => {
  const { gateway, server } = await start();
  const user = await gateway.logIn('ada');
  const tool = await user.call('wiki__whoami');
  const { status, headers, json } = await user.ask('prompts/get', { name: 'wiki__daily' });
  expect([status, headers.get('www-authenticate')]).toEqual([200, null]);
  expect(json.error).toMatchObject({ code: -32603, message: tool.text });
  expect(server.seen('mcp')).toEqual([]);
});

test('§24.3 doors: two people never get the same link, and a state that one was given is worth nothing to the other', async () => {
  const { gateway, connectAs } = await start();
  const [ada, bob] = [await gateway.logIn('ada'), await gateway.logIn('bob')];
  const links = [await ada.call('wiki__whoami'), await bob.call('wiki__whoami')];
  const [first = '', second = ''] = links.map(({ text }) => readLink(text));
  expect(new URL(first).pathname).toBe(new URL(second).pathname);
  expect(first).not.toBe(second);

  const call = { name: 'wiki__whoami', arguments: {} };
  const asked = await ada.ask('tools/call', call, ASKABLE_BY_URL);
  const { requestState } = asked.json.result;
  const inputResponses = { connect: { action: 'accept' } };
  await connectAs('ada');
  const retry = { ...call, requestState, inputResponses };
  const stolen = await bob.ask('tools/call', retry, ASKABLE_BY_URL);
  expect(stolen.json.error?.code).toBe(-32602);
  // Nor is it good for another call.
  const moved = await ada.ask('tools/call', { ...retry, name: 'wiki__write' }, ASKABLE_BY_URL);
  expect(moved.json.error?.code).toBe(-32602);
  const own = await ada.ask('tools/call', retry, ASKABLE_BY_URL);
  expect(own.json.result.content).toEqual([{ type: 'text', text: 'ada@work' }]);
});

test('§24.4 scopes, stateless: what a call wanted stays asked for by its link and its state, whatever is connected meanwhile at the page', async () => {
  const { gateway, browserOf, connectAs, server } = await start();
  await connectAs('ada');
  const user = await gateway.logIn('ada');
  const call = { name: 'wiki__write', arguments: {} };
  const ask = async (state: object = {}) => {
    const { json } = await user.ask('tools/call', { ...call, ...state }, ASKABLE_BY_URL);
    return json.result;
  };
  const findUrl = ({ inputRequests }: { inputRequests: object }): string =>
    Object.values(inputRequests)[0].params.url;
  const asked = await ask();
  // They are connected anew, without what the call needs: it is still not served, and its need is asked for again.
  await connectAs('ada');
  const { requestState } = asked;
  const inputResponses = { connect: { action: 'accept' } };
  const refused = await ask({ requestState, inputResponses });
  expect(JSON.stringify(refused)).toContain('mcp:write');

  const next = await ask();
  const waiting = ask({ requestState: next.requestState, inputResponses });
  await connectBy(browserOf('ada'), findUrl(next));
  expect((await waiting).content).toEqual([{ type: 'text', text: 'written by ada@work' }]);
  expect(server.seen('authorize').at(-1)?.query.get('scope')).toContain('mcp:write');
});

test('§24.3 connect: the tool can be called once connected, too, and says as whom', async () => {
  const { gateway, connectAs } = await start();
  const user = await gateway.logIn('ada');
  expect(readLink((await user.call('wiki__connect')).text)).toContain('/connections/wiki');
  await connectAs('ada');
  expect(await user.listToolNames()).toEqual(TOOLS);
  const { isError, text } = await user.call('wiki__connect');
  expect([isError, text]).toEqual([false, expect.stringMatching(/^Connected to wiki\b/)]);
});

const PATTERNS = [
  ['wiki__*', true],
  ['*', true],
  ['w*whoami', true],
  ['w?ki__whoami', true],
  ['wiki__', true],
  ['prompt:wiki__*', true],
  ['wiki', false],
  ['github__*', false],
  ['wikis__*', false],
  ['?', false],
  ['resource:*', false],
] as const;

test('§24.3 connect: shown to whom a rule that holds has a pattern that can match a name of the server', async () => {
  const rules = PATTERNS.map(([pattern], index) => ({
    who: { claims: { sub: `person-${index}` } },
    may: [pattern],
  }));
  const { gateway } = await start({ file: { rules } });
  for (const [index, [pattern, isShown]] of PATTERNS.entries()) {
    const user = await gateway.logIn(`person-${index}`);
    expect([pattern, await user.listToolNames()]).toEqual([
      pattern,
      isShown ? ['wiki__connect'] : [],
    ]);
    const { json } = await user.ask('tools/call', { name: 'wiki__connect', arguments: {} });
    expect([pattern, json.error?.code]).toEqual([pattern, isShown ? undefined : -32602]);
  }
});

test('§24.3 lock: before one connects the server shows its connect tool, afterwards only what the lock approves', async () => {
  const { gateway, connectAs, server } = await start({
    deps: { lock: createLock(EMPTY_LOCK_FILE) },
  });
  const user = await gateway.logIn('ada');
  expect(await user.listToolNames()).toEqual(['wiki__connect']);
  await connectAs('ada');
  expect(await user.listToolNames()).toEqual([]);
  const { json } = await user.ask('tools/call', { name: 'wiki__whoami', arguments: {} });
  expect(json.error?.code).toBe(-32602);
  expect(server.calls()).toEqual([]);
});

test('§24.3 lists: a session that has a stream is told when its user’s connection ends, and sees the connect tool again', async () => {
  const { gateway, connectAs, browserOf } = await start({ env: { MCP_STREAMS: 'true' } });
  await connectAs('ada');
  const [row] = CONNECTING_CLIENTS;
  const client = await row?.connect(gateway.mcpUrl, { person: 'ada' });
  expect(await client?.listToolNames()).toEqual(TOOLS);
  const before = client?.countListChanges() ?? 0;
  const browser = browserOf('ada');
  await browser.press(await browser.open(`${gateway.baseUrl}/connections`), /^Disconnect wiki$/);
  await expect.poll(() => client?.countListChanges()).toBeGreaterThan(before);
  expect(await client?.listToolNames()).toEqual(['wiki__connect']);
  await client?.close();
});

test('§24.4 sessions: within one session of a client, another account is another session at the server', async () => {
  const { gateway, connectAs, browserOf, server } = await start();
  const [row] = CONNECTING_CLIENTS;
  const client = await row?.connect(gateway.mcpUrl, { person: 'ada' });
  const sessionOfLastCall = () =>
    server
      .seen('mcp')
      .filter(({ rpcMethod }) => rpcMethod === 'tools/call')
      .at(-1)?.headers['mcp-session-id'];
  await connectAs('ada', 'ada@work');
  expect((await client?.call('wiki__whoami'))?.text).toBe('ada@work');
  const first = sessionOfLastCall();
  const browser = browserOf('ada');
  await browser.press(await browser.open(`${gateway.baseUrl}/connections`), /^Disconnect wiki$/);
  await connectAs('ada', 'ada@home');
  expect((await client?.call('wiki__whoami'))?.text).toBe('ada@home');
  expect([typeof first, typeof sessionOfLastCall()]).toEqual(['string', 'string']);
  expect(sessionOfLastCall()).not.toBe(first);
  await client?.close();
});

test('§24.4 a client that logs in as itself has no browser: it is told so, and nothing is sent', async () => {
  const { gateway, server } = await start({
    file: { rules: 'everyone', clients: [withSecret('robot')] },
  });
  const answer = await fetch(`${gateway.baseUrl}/oauth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`robot:${SECRET}`)}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  });
  const { access_token: token } = (await answer.json()) as { access_token: string };
  const ask = async (method: string, params: object) => {
    const sent = await fetch(gateway.mcpUrl, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...('name' in params && { 'mcp-name': String(params.name) }),
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method,
        params: {
          ...params,
          _meta: {
            'io.modelcontextprotocol/protocolVersion': '2026-07-28',
            'io.modelcontextprotocol/clientInfo': { name: 'robot', version: '1' },
            'io.modelcontextprotocol/clientCapabilities': {},
          },
        },
      }),
    });
    return JSON.stringify(await sent.json());
  };
  expect(await ask('tools/list', {})).toContain('"tools":[]');
  for (const name of ['wiki__whoami', 'wiki__connect']) {
    const said = await ask('tools/call', { name, arguments: {} });
    expect(said).toContain('a client that logs in as itself has none');
    expect(said).not.toContain('/connections/');
  }
  expect(server.seen('mcp')).toEqual([]);
});
