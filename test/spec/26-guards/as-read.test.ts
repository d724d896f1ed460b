// §26: a guard judges what the client reads: each name once, numbers as they were spelled, and values that it may copy.
import { expect, test } from 'vitest';
import { callTool, type Params, stateless } from '../../support/clients/stateless.ts';
import { writeGuard } from '../../support/guards/module-guard.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { startRawServer } from '../../support/upstreams/raw-server.ts';
import { sendJson, startScriptedHttp, toResult } from '../../support/upstreams/scripted-http.ts';

/** Its results are written by the test, byte by byte. */
const results = new Map<string, string>();
const raw = useShared(() =>
  startRawServer((res, id, { params }) => {
    const { it } = params.arguments as { it: string };
    res.writeHead(200, { 'content-type': 'application/json' });
    res.end(`{"jsonrpc":"2.0","id":${id},"result":${results.get(it)}}`);
  }),
);

const start = (guards: readonly object[]) =>
  startForTest({ file: { mcpServers: { raw: raw.url }, guards } });

const PASS = "return { decision: 'pass' };";
const SIZES = [10, 512, 2_048, 20_000, 300_000];
const LOST = '7205759403792793601';

const ERAS = [
  {
    era: 'session',
    ask: async (gateway: Awaited<ReturnType<typeof start>>, params: Params) =>
      (await gateway.call(await gateway.open(), 'tools/call', params)).text,
  },
  {
    era: 'stateless',
    ask: async (gateway: Awaited<ReturnType<typeof start>>, params: Params) =>
      (await stateless(gateway, 'tools/call', params)).text,
  },
] as const;

const ROWS = ERAS.flatMap(({ era, ask }) =>
  SIZES.flatMap((size) => ['1', LOST].map((number) => ({ era, ask, size, number }))),
);

test.each(ROWS)(
  '§26 $era era: of a member that is there twice in a result of $size characters only the one that was judged goes on, with $number',
  async ({ ask, size, number }) => {
    const gateway = await start([
      { name: 'told', on: ['tools/result'], use: await writeGuard(PASS) },
    ]);
    const say = (words: string) => `"content":[{"type":"text","text":"${words}"}]`;
    const more = `"structuredContent":{"n":${number},"a":{"b":"hidden","\\u0062":"seen"}}`;
    const it = `twice-${size}-${number}`;
    results.set(it, `{${say('hidden')},${more},${say(`seen${'x'.repeat(size)}`)}}`);
    const text = await ask(gateway, { name: 'raw__any', arguments: { it } });
    // Not the text itself: a failure would print all of it.
    expect({
      hasLast: text.includes('seenxx') && text.includes('"b":"seen"'),
      hasNumber: text.includes(`"n":${number}`),
      hasFirst: text.includes('hidden'),
    }).toEqual({ hasLast: true, hasNumber: true, hasFirst: false });
  },
);

test.each(SIZES.flatMap((size) => ['1', '1.0'].map((number) => ({ size, number }))))(
  '§26 of a resource of a stateless server, too, each member of $size characters goes on once, with $number, and is kept as long as it says',
  async ({ size, number }) => {
    const server = closeAfterTest(await startScriptedHttp('stateless'));
    server.answer('server/discover', (res, request) => {
      const discovered = { supportedVersions: ['2026-07-28'], capabilities: { resources: {} } };
      sendJson(res, toResult(request, { resultType: 'complete', ...discovered }));
    });
    server.answer('resources/list', (res, request) => {
      const resources = [{ name: 'a', uri: 'test://a' }];
      sendJson(res, toResult(request, { resultType: 'complete', resources }));
    });
    const say = (words: string) => `"contents":[{"uri":"test://a","text":"${words}"}]`;
    const kept = '"resultType":"complete","ttlMs":5000,"cacheScope":"private"';
    server.answer('resources/read', (res, { message }) =>
      sendJson(
        res,
        `{"jsonrpc":"2.0","id":${message.id},"result":{${kept},${say('hidden')},"n":${number},${say('x'.repeat(size))}}}`,
      ),
    );
    const gateway = await startForTest({
      file: {
        mcpServers: { it: server.url },
        guards: [{ name: 'told', on: ['resources/result'], use: await writeGuard(PASS) }],
      },
    });
    const { text, json } = await stateless(gateway, 'resources/read', { uri: 'test://a' });
    expect(json.result).toMatchObject({ ttlMs: 5000, cacheScope: 'private' });
    expect(json.result.contents[0].text).toHaveLength(size);
    expect(text.includes('hidden')).toBe(false);
    expect(text).toContain(`"n":${number}`);
  },
);

test.each(SIZES)(
  '§26.2 a module may copy what it is told of a result of %i characters, in every way that Node.js has',
  async (size) => {
    const use = await writeGuard(`
      const { MessageChannel, receiveMessageOnPort } = process.getBuiltinModule('node:worker_threads');
      const v8 = process.getBuiltinModule('node:v8');
      const { port1, port2 } = new MessageChannel();
      port1.postMessage(message);
      const posted = receiveMessageOnPort(port2).message;
      port1.close();
      const copies = [structuredClone(message), posted, v8.deserialize(v8.serialize(message))];
      const told = copies.map(({ value }) => value.content[0].text.length + ':' + value.structuredContent.n);
      return { decision: 'refuse', message: told.join(' ') };`);
    const gateway = await start([{ name: 'copies', on: ['tools/result'], use, onError: 'pass' }]);
    const it = `copied-${size}`;
    results.set(
      it,
      `{"content":[{"type":"text","text":"${'x'.repeat(size)}"}],"structuredContent":{"n":1}}`,
    );
    const { json } = await callTool(gateway, 'raw__any', { it });
    expect(json.result.content[0].text).toBe(Array(3).fill(`${size}:1`).join(' '));
  },
);

const say = (text: string) => JSON.stringify({ content: [{ type: 'text', text }] });
const SECRET = `ghp_${'aB3'.repeat(12)}`;
const MEMBERS = Array.from({ length: 100_000 }, (_, index) => [`a${index}`, index]);
const SECRETS = { builtIn: 'secrets', action: 'refuse' };

test.each([
  {
    what: 'a long text',
    use: SECRETS,
    long: say(`${'\\n%41&amp;'.repeat(200_000)}\\n${SECRET}`),
    words: 'github-token',
  },
  {
    what: 'an object of many members',
    use: SECRETS,
    long: JSON.stringify({
      content: [],
      structuredContent: { ...Object.fromEntries(MEMBERS), last: SECRET },
    }),
    words: 'github-token',
  },
  {
    what: 'an object of many members, whose size is measured,',
    use: { builtIn: 'size', maxBytes: 100_000 },
    long: JSON.stringify({ content: [], structuredContent: Object.fromEntries(MEMBERS) }),
    words: '100000 are allowed',
  },
])('§26.3 $what of one user holds up no other, and is judged to its end', async (row) => {
  const { use, long, words } = row;
  const gateway = await start([{ name: 'long', on: ['tools/result'], use, onError: 'pass' }]);
  results.set('long', long);
  results.set('short', say('nothing'));
  const answered: string[] = [];
  async function call(sub: string, it: string): Promise<string> {
    const token = await gateway.issuer.sign({ sub });
    const { json } = await callTool(gateway, 'raw__any', { it }, { token });
    answered.push(sub);
    return json.result.content[0].text;
  }
  await call('bob', 'short');
  const judged = call('ada', 'long');
  for (let calls = 0; calls < 5; calls += 1) await call('bob', 'short');
  expect(await judged).toContain(words);
  // One after the other, while the work goes on.
  expect(answered).toEqual([...Array(6).fill('bob'), 'ada']);
});
