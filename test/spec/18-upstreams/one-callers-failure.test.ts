// What one caller comes to at a server, by whatever way of failing, changes nothing for another.
import { describe, expect, test } from 'vitest';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { type CatalogGateway, startForTest } from '../../support/upstreams/catalog-gateway.ts';
import {
  HTTP_WAYS,
  type HttpKind,
  startMisbehavingHttp,
} from '../../support/upstreams/misbehaving-http.ts';
import { scripted } from '../../support/upstreams/stdio-calls.ts';

const AUDIENCES = ['http://localhost:3000/mcp', 'https://wiki.example'];
/** Small, so that a giant answer is one soon; a call's time is the shortest that a file may have. */
const SETTINGS = { MAX_UPSTREAM_BYTES: '100000' };
const TIMEOUT = 1000;
/** Each failing call, then one of somebody else. */
const ROUNDS = 3;

interface User {
  readonly session: string;
  readonly token: string;
}

async function logIn(gateway: CatalogGateway, sub: string, aud = AUDIENCES): Promise<User> {
  const token = await gateway.issuer.sign({ sub, aud });
  return { token, session: await gateway.open({ token }) };
}

const call = (gateway: CatalogGateway, user: User, name: string, args: object = {}) =>
  gateway.rpc(
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
    user,
  );

const readText = (answer: {
  readonly json: { readonly result?: { content?: { text: string }[] } };
}) => answer.json.result?.content?.[0]?.text;

/** Calls, lists and readiness of a user who does nothing wrong. */
async function expectUnmoved(
  gateway: CatalogGateway,
  bob: User,
  name: string,
  args: object,
  text: string,
) {
  expect(readText(await call(gateway, bob, name, args))).toBe(text);
  expect(await gateway.listNames('tools/list', bob.session, bob.token)).toContain(name);
  const ready = await gateway.request({ path: '/health/ready' });
  expect(ready.status).toBe(200);
}

/** One line for each kind of failure, and the server is down for nobody. */
function expectFewLines(gateway: CatalogGateway): void {
  const told = gateway.log
    .filter(({ level }) => level === 'warn' || level === 'error')
    .map(({ msg, failure }) => `${msg.split(':')[0]} (${failure})`);
  expect(told).toEqual([...new Set(told)]);
  expect(told.filter((msg) => /^The MCP server \S+ is not available/.test(msg))).toEqual([]);
}

describe.each<HttpKind>(['session', 'stateless', 'sse'])('an HTTP server (%s)', (kind) => {
  test.each(HTTP_WAYS)('§18.4 that %s to one user is as ever to another', async (way) => {
    const server = closeAfterTest(await startMisbehavingHttp(kind));
    const type = kind === 'sse' ? { type: 'sse' } : {};
    const one = {
      url: server.url,
      ...type,
      required: true,
      timeout: TIMEOUT,
      auth: { type: 'identity' },
    };
    const gateway = await startForTest({ file: { mcpServers: { s: one } }, env: SETTINGS });
    const [ann, bob] = [await logIn(gateway, 'ann'), await logIn(gateway, 'bob')];
    const expectBob = () => expectUnmoved(gateway, bob, 's__t', {}, 'as ever');
    await expectBob();
    server.misbehave('ann', way);
    for (let round = 0; round < ROUNDS; round += 1) {
      const failing = call(gateway, ann, 's__t');
      await gateway.listNames('tools/list', ann.session, ann.token);
      await expectBob();
      const isList = way.startsWith('lists');
      expect(readText(await failing) === 'as ever').toBe(isList);
      await expectBob();
    }
    expectFewLines(gateway);
  });

  test('§18.6 a user whose token may not be forwarded takes the server from nobody', async () => {
    const server = closeAfterTest(await startMisbehavingHttp(kind));
    const type = kind === 'sse' ? { type: 'sse' } : {};
    const auth = { type: 'forward', audience: 'https://wiki.example' };
    const file = { mcpServers: { s: { url: server.url, ...type, required: true, auth } } };
    const gateway = await startForTest({ file });
    const bob = await logIn(gateway, 'bob');
    const ann = await logIn(gateway, 'ann', AUDIENCES.slice(0, 1));
    for (let round = 0; round < ROUNDS; round += 1) {
      expect(await gateway.listNames('tools/list', ann.session, ann.token)).toEqual([]);
      const { json } = await call(gateway, ann, 's__t');
      expect(JSON.stringify(json)).toContain('the token of this login was not made for it');
      await expectUnmoved(gateway, bob, 's__t', {}, 'as ever');
    }
    expect(server.count('ann')).toBe(0);
    expectFewLines(gateway);
  });
});

/** Tools of the scripted server. That a process crashes, or is ended for a giant line, ends the calls of its own user. */
const STDIO_WAYS: readonly (readonly [what: string, name: string, args: object])[] = [
  ['crashes', 'exit', {}],
  ['crashes in its answer', 'half', {}],
  ['does not answer', 'hang', {}],
  ['answers no result', 'malformed', {}],
  [
    'floods with notifications',
    'flood',
    {
      line: '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}',
    },
  ],
  ['floods with what is no message', 'flood', { line: 'Listening' }],
  ['writes a giant line', 'huge', { bytes: 1_000_000 }],
  ['asks nonsense', 'ask', { method: 'no/such', params: 'x' }],
  ['stops reading', 'stopReading', {}],
];

describe.each(['user', 'session'])('a program with isolation "%s"', (isolation) => {
  test.each(STDIO_WAYS)(
    '§18.4 that %s in the process of one user is as ever to another',
    async (_what, name, args) => {
      const file = {
        mcpServers: { s: { ...scripted(), isolation, required: true, timeout: TIMEOUT } },
      };
      const gateway = await startForTest({ file, env: SETTINGS });
      const [ann, bob] = [await logIn(gateway, 'ann'), await logIn(gateway, 'bob')];
      const expectBob = () =>
        expectUnmoved(gateway, bob, 's__echo', { value: 'as ever' }, 'as ever');
      await expectBob();
      for (let round = 0; round < ROUNDS; round += 1) {
        const failing = call(gateway, ann, `s__${name}`, args);
        await expectBob();
        await failing;
        await expectBob();
      }
      expectFewLines(gateway);
    },
  );
});
