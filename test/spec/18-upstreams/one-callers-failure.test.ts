// What one caller comes to at a server, by whatever way of failing, changes nothing for another.
import { decodeJwt } from 'jose';
import { describe, expect, test } from 'vitest';
import { openConnection, postHead } from '../../support/gateway/manual-connection.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startUpstream } from '../../support/oauth/upstream.ts';
import { chooseCount } from '../../support/tools/long-run.ts';
import { type CatalogGateway, startForTest } from '../../support/upstreams/catalog-gateway.ts';
import {
  HTTP_WAYS,
  type HttpKind,
  startMisbehavingHttp,
} from '../../support/upstreams/misbehaving-http.ts';
import { scripted } from '../../support/upstreams/stdio-calls.ts';

const WIKI = 'https://wiki.example';
const GATEWAY = 'http://localhost:3000/mcp';
/** Small, so that a giant answer is one soon. */
const SMALL_ANSWERS = { MAX_UPSTREAM_BYTES: '100000' };
/**
 * The shortest that a file may have, in milliseconds: for servers that do not answer, and no others. Where a right
 * answer is waited for beside megabytes of somebody else's, it would measure the machine.
 */
const SHORT = { timeout: 1000 };
/** Failing calls at once, while somebody else calls. */
const CALLS = 3;

interface User {
  readonly session: string;
  readonly token: string;
}

/** What a user who does nothing wrong calls, and is answered. */
interface Call {
  readonly name: string;
  readonly args: object;
}

const HTTP_CALL: Call = { name: 's__t', args: {} };
const STDIO_CALL: Call = { name: 's__echo', args: { value: 'as ever' } };

async function logIn(gateway: CatalogGateway, sub: string, aud = [GATEWAY, WIKI]): Promise<User> {
  const token = await gateway.issuer.sign({ sub, aud });
  return { token, session: await gateway.open({ token }) };
}

const call = (gateway: CatalogGateway, user: User, { name, args }: Call) =>
  gateway.rpc(
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
    user,
  );

const callTogether = (gateway: CatalogGateway, user: User, one: Call) =>
  Promise.all(Array.from({ length: CALLS }, () => call(gateway, user, one)));

interface Answer {
  readonly json: { readonly result?: { readonly content?: readonly { text: string }[] } };
}
const readText = ({ json }: Answer) => json.result?.content?.[0]?.text;

/** Calls, lists and readiness. */
async function expectAsEver(gateway: CatalogGateway, user: User, one: Call): Promise<void> {
  const { json } = await call(gateway, user, one);
  // The whole answer: an error says what the other user was made to wait for.
  expect(json).toMatchObject({ result: { content: [{ text: 'as ever' }] } });
  expect(await gateway.listNames('tools/list', user.session, user.token)).toContain(one.name);
  const ready = await gateway.request({ path: '/health/ready' });
  expect(ready.status).toBe(200);
}

/** Each kind of failure is told once, and the server is down for nobody. */
function expectFewLines(gateway: CatalogGateway): void {
  const told = gateway.log
    .filter(({ level }) => level === 'warn' || level === 'error')
    .map(({ msg, failure }) => `${msg.split(':')[0]} (${failure})`);
  expect(told).toEqual([...new Set(told)]);
  expect(told.filter((msg) => /^The MCP server \S+ is not available/.test(msg))).toEqual([]);
}

/** Answers whose reader takes nothing of them, until the test ends. */
async function callWithoutReading(gateway: CatalogGateway, user: User, one: Call): Promise<void> {
  const params = { name: one.name, arguments: one.args };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const head = postHead({ path: '/mcp', ...user, length: body.length });
  const { socket } = await openConnection(await gateway.listen(), '');
  closeAfterTest({ close: () => socket.destroy() });
  socket.pause();
  socket.write((head + body).repeat(CALLS));
}

const KINDS: readonly HttpKind[] = ['session', 'stateless', 'sse'];

describe.each(KINDS)('an HTTP server (%s)', (kind) => {
  const type = kind === 'sse' ? { type: 'sse' } : {};

  async function startWith(members: object, env: Readonly<Record<string, string>> = {}) {
    const server = closeAfterTest(await startMisbehavingHttp(kind));
    const s = { url: server.url, ...type, required: true, ...members };
    return { server, gateway: await startForTest({ file: { mcpServers: { s } }, env }) };
  }

  // By hand each of them at one kind, in CI at all.
  const ways = HTTP_WAYS.filter(
    (_, at) => at % chooseCount(KINDS.length, 1) === chooseCount(KINDS.indexOf(kind), 0),
  );
  test.each(ways)('§18.4 that %s to one user is as ever to another', async (way) => {
    const { server, gateway } = await startWith(
      { auth: { type: 'identity' }, ...SHORT },
      SMALL_ANSWERS,
    );
    const [ann, bob] = [await logIn(gateway, 'ann'), await logIn(gateway, 'bob')];
    await expectAsEver(gateway, bob, HTTP_CALL);
    server.misbehave('ann', way);
    const failing = callTogether(gateway, ann, HTTP_CALL);
    const listing = gateway.listNames('tools/list', ann.session, ann.token);
    await expectAsEver(gateway, bob, HTTP_CALL);
    const answers = await failing;
    // Who could list before may still call where only lists are wrong.
    if (!way.startsWith('lists')) expect(answers.map(readText)).not.toContain('as ever');
    await listing;
    await expectAsEver(gateway, bob, HTTP_CALL);
    expectFewLines(gateway);
  });

  test('§18.4 whose answers one user does not read is as ever to another', async () => {
    const { server, gateway } = await startWith({ auth: { type: 'identity' } });
    const [ann, bob] = [await logIn(gateway, 'ann'), await logIn(gateway, 'bob')];
    server.misbehave('ann', 'answers at length');
    await callWithoutReading(gateway, ann, HTTP_CALL);
    await expect.poll(() => server.count('ann')).toBeGreaterThan(CALLS);
    await expectAsEver(gateway, bob, HTTP_CALL);
    expectFewLines(gateway);
  });

  test('§18.6 a user whose token may not be forwarded takes the server from nobody', async () => {
    const { server, gateway } = await startWith({ auth: { type: 'forward', audience: WIKI } });
    const bob = await logIn(gateway, 'bob');
    const ann = await logIn(gateway, 'ann', [GATEWAY]);
    expect(await gateway.listNames('tools/list', ann.session, ann.token)).toEqual([]);
    for (const { json } of await callTogether(gateway, ann, HTTP_CALL))
      expect(JSON.stringify(json)).toContain('the token of this login was not made for it');
    await expectAsEver(gateway, bob, HTTP_CALL);
    expect(server.count('ann')).toBe(0);
    expectFewLines(gateway);
  });

  test('§18.6 a user whose token the provider does not exchange takes the server from nobody', async () => {
    const provider = closeAfterTest(await startUpstream());
    const { server, gateway } = await startWith(
      { auth: { type: 'token-exchange', audience: WIKI } },
      {
        OAUTH_CLIENT_ID: 'gateway',
        OAUTH_CLIENT_SECRET: 'secret of the gateway',
        OAUTH_TOKEN_URL: `${provider.url.replace('127.0.0.1', 'localhost')}/token`,
      },
    );
    const bobs = await gateway.issuer.sign({ sub: 'bob', aud: WIKI });
    provider.answer((res) => {
      const { sub } = decodeJwt(provider.received.at(-1)?.form.get('subject_token') ?? '');
      const isAnn = sub === 'ann';
      const issued = {
        access_token: bobs,
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        token_type: 'Bearer',
        expires_in: 300,
      };
      res.writeHead(isAnn ? 400 : 200, { 'content-type': 'application/json' });
      res.end(JSON.stringify(isAnn ? { error: 'invalid_target' } : issued));
    });
    const bob = await logIn(gateway, 'bob');
    const ann = await logIn(gateway, 'ann');
    await expectAsEver(gateway, bob, HTTP_CALL);
    expect(await gateway.listNames('tools/list', ann.session, ann.token)).toEqual([]);
    for (const { json } of await callTogether(gateway, ann, HTTP_CALL))
      expect(JSON.stringify(json)).toContain('gives this login no access');
    await expectAsEver(gateway, bob, HTTP_CALL);
    expect(server.count('ann')).toBe(0);
    expectFewLines(gateway);
  });
});

interface StdioWay extends Call {
  readonly what: string;
  /** It ends the process, or fills its output: with `shared`, that is everybody's. */
  readonly spoilsProcess?: true;
}

const NOTIFICATION =
  '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}';

/** Tools of the scripted server. */
const STDIO_WAYS: readonly StdioWay[] = [
  { what: 'crashes', name: 's__exit', args: {}, spoilsProcess: true },
  { what: 'crashes in its answer', name: 's__half', args: {}, spoilsProcess: true },
  { what: 'does not answer', name: 's__hang', args: {} },
  { what: 'answers no result', name: 's__malformed', args: {} },
  {
    what: 'floods with notifications',
    name: 's__flood',
    args: { line: NOTIFICATION },
    spoilsProcess: true,
  },
  {
    what: 'floods with what is no message',
    name: 's__flood',
    args: { line: 'Listening' },
    spoilsProcess: true,
  },
  { what: 'writes a giant line', name: 's__huge', args: { bytes: 1_000_000 }, spoilsProcess: true },
  { what: 'asks nonsense', name: 's__ask', args: { method: 'no/such', params: 'x' } },
  { what: 'stops reading', name: 's__stopReading', args: {}, spoilsProcess: true },
];

const startStdio = (members: object, env: Readonly<Record<string, string>> = {}) =>
  startForTest({
    file: { mcpServers: { s: { ...scripted(), required: true, ...members } } },
    env,
  });

const SHARED_WAYS = STDIO_WAYS.filter(({ spoilsProcess }) => spoilsProcess === undefined);
/** By hand each of them at one isolation of two, in CI at both. */
const chooseWays = (rest: number) =>
  STDIO_WAYS.filter((_, at) => at % chooseCount(2, 1) === chooseCount(rest, 0));

describe.each([
  { isolation: 'shared', ways: SHARED_WAYS },
  { isolation: 'user', ways: chooseWays(0) },
  { isolation: 'session', ways: chooseWays(1) },
])('a program with isolation $isolation', ({ isolation, ways }) => {
  test.each(ways)('§18.4 that $what in the call of one user is as ever to another', async (way) => {
    const gateway = await startStdio({ isolation, ...SHORT }, SMALL_ANSWERS);
    const [ann, bob] = [await logIn(gateway, 'ann'), await logIn(gateway, 'bob')];
    await expectAsEver(gateway, bob, STDIO_CALL);
    const failing = callTogether(gateway, ann, way);
    await expectAsEver(gateway, bob, STDIO_CALL);
    await failing;
    await expectAsEver(gateway, bob, STDIO_CALL);
    expectFewLines(gateway);
  });
});

test.each(['shared', 'user', 'session'])(
  '§18.4 a program with isolation "%s" whose answers one user does not read is as ever to another',
  async (isolation) => {
    const gateway = await startStdio({ isolation });
    const [ann, bob] = [await logIn(gateway, 'ann'), await logIn(gateway, 'bob')];
    await callWithoutReading(gateway, ann, { name: 's__large', args: { bytes: 6_000_000 } });
    await expectAsEver(gateway, bob, STDIO_CALL);
    expectFewLines(gateway);
  },
);
