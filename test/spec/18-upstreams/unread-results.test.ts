// Long results in which the gateway has nothing to look at go on as bytes, unparsed; what it does look at, it finds.
import { beforeEach, expect, test } from 'vitest';
import { changeUnread, findUnread } from '../../../src/mcp/upstream/unread-result.ts';
import { findText } from '../../../src/platform/noted-json.ts';
import { parseServerBytes } from '../../../src/servers/messages/server-message.ts';
import { SERVER_INFO, stateless } from '../../support/clients/stateless.ts';
import { INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { type CatalogGateway, startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { startRawServer } from '../../support/upstreams/raw-server.ts';

const LONG = `say \\"hello\\" \\\\ \\u20ac {[,:]} ${'ä'.repeat(20_000)}`;
const CONTENT = `"content":[{"type":"text","text":"${LONG}"}]`;
/** No double has this number. */
const RESULT = `{${CONTENT}, "structuredContent":{"sum":12345678901234567890.125,"empty":{},"list":[]}}`;

const respond = (id: number, result: string) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`;

const parse = (result: string) =>
  Object(parseServerBytes([Buffer.from(respond(1, result))])?.value);

let gateway: CatalogGateway;
let write: (id: number, params: Readonly<Record<string, unknown>>) => string | Buffer;

beforeEach(async () => {
  const server = closeAfterTest(
    await startRawServer((res, id, { params }) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      res.end(write(id, params));
    }),
  );
  write = (id) => respond(id, RESULT);
  gateway = await startForTest({ file: { mcpServers: { one: { url: server.url } } } });
});

async function call(sub = 'ann', version = '2025-11-25', headers = {}) {
  const token = await gateway.issuer.sign({ sub });
  const begin = structuredClone(INITIALIZE_REQUEST);
  Object.assign(begin.params, { protocolVersion: version });
  const opened = await gateway.rpc(begin, { token });
  const session = opened.headers['mcp-session-id'] ?? '';
  const params = { name: 'one__any', arguments: {}, _meta: { progressToken: 1 } };
  return gateway.rpc(
    { jsonrpc: '2.0', id: 'i', method: 'tools/call', params },
    { session, token, headers: { 'mcp-protocol-version': version, ...headers } },
  );
}

test('§18.3 results: a long one is unread, and reaches its client to the letter', async () => {
  expect(findUnread(parse(RESULT).result)).toBeDefined();
  const { text } = await call();
  expect(text).toBe(`{"jsonrpc":"2.0","result":${RESULT},"id":"i"}`);
});

test('§18.3 results: one of 2 KiB is unread, too, and reaches its client to the letter', async () => {
  const result = RESULT.replace('ä'.repeat(20_000), 'ä'.repeat(1024));
  expect(findUnread(parse(result).result)).toBeDefined();
  expect({ ...parse(result).result }).toEqual(JSON.parse(result));
  write = (id) => respond(id, result);
  const { text } = await call();
  expect(text).toBe(`{"jsonrpc":"2.0","result":${result},"id":"i"}`);
});

test('§18.3 results: one that is unread is read where somebody asks, or copies it', () => {
  const { result } = parse(`{"isError":true,${RESULT.slice(1)}`);
  const whole = { isError: true, ...JSON.parse(RESULT) };
  expect(Object.keys(result)).toEqual(Object.keys(whole));
  expect(result.isError).toBe(true);
  expect('content' in result).toBe(true);
  expect(result.cache).toBeUndefined();
  expect({ ...result }).toEqual(whole);
  expect(JSON.stringify(result)).toBe(JSON.stringify(whole));
  expect(result).toEqual(whole);
});

test.each([
  ['a link', `"content":[{"type":"resource_link","uri":"a:b","name":"l"}]`],
  ['a link that is spelled another way', `"content":[{"type":"\\u0072esource_link","uri":"a:b"}]`],
  ['an embedded resource', `"content":[{"type": "resource","resource":{"uri":"a:b","text":""}}]`],
  ['a type of result that asks', `"resultType":"input_required"`],
  ['a type of result that is spelled another way', `"resultType":"\\u0063omplete"`],
  ['a member that is spelled another way', `"result\\u0054ype":"complete"`],
  ['a member twice', `"a":1,"a":2`],
  ['the gateway’s own member', `"cache":1`],
  ['lines', `"a":\n1`],
])('§18.3 results: a long one with %s is read', (_what, member) => {
  const { result } = parse(`{${member},"x":"${LONG}"}`);
  expect(findUnread(result)).toBeUndefined();
  expect(result).toEqual(JSON.parse(`{${member},"x":"${LONG}"}`));
});

const INFO = `"${SERVER_INFO}":{"name":"server of its own","version":"1"}`;

test.each([
  ['first', `{"resultType":"complete",${CONTENT},"n":1.0}`, `{${CONTENT},"n":1.0}`],
  ['last', `{${CONTENT}, "n":1.0,"resultType": "complete" }`, `{${CONTENT},"n":1.0}`],
  ['in the middle', `{"n":1.0 ,"resultType":"complete",${CONTENT}}`, `{"n":1.0,${CONTENT}}`],
  ['beside its name', `{"_meta":{${INFO}},"resultType":"complete",${CONTENT}}`, `{${CONTENT}}`],
  [
    'beside its name and others',
    `{${CONTENT},"_meta":{"a":1.0,${INFO},"b":[]},"resultType":"complete"}`,
    `{${CONTENT},"_meta":{"a":1.0,"b":[]}}`,
  ],
  [
    'beside what others say',
    `{"resultType":"complete","_meta":{"a": 1.0},${CONTENT}}`,
    `{"_meta":{"a": 1.0},${CONTENT}}`,
  ],
])(
  '§18.3 results: a long one with its type %s is unread, and clients get the rest to the letter',
  async (_where, given, expected) => {
    for (const length of [20_000, 1024]) {
      const shrink = (json: string) => json.replace('ä'.repeat(20_000), 'ä'.repeat(length));
      expect(findUnread(parse(shrink(given)).result)).toBeDefined();
      write = (id) => respond(id, shrink(given));
      const { text } = await call();
      expect(text).toBe(`{"jsonrpc":"2.0","result":${shrink(expected)},"id":"i"}`);
      const current = await stateless(gateway, 'tools/call', { name: 'one__any', arguments: {} });
      const { _meta: meta, ...members } = JSON.parse(shrink(expected));
      expect(current.json.result).toEqual({
        resultType: 'complete',
        ...members,
        _meta: { ...meta, [SERVER_INFO]: current.json.result._meta[SERVER_INFO] },
      });
      expect(current.json.result._meta[SERVER_INFO].name).not.toBe('server of its own');
      expect(current.text).toContain(shrink(CONTENT));
      expect(current.text.match(/1\.0/g)?.length).toBe(shrink(expected).match(/1\.0/g)?.length);
    }
  },
);

test.each([
  ['its type', `{"resultType":"complete"${' '.repeat(3000)}}`],
  [
    'its type and name',
    `{"resultType":"complete","_meta":{${INFO.replace('"1"', `"${'1'.repeat(3000)}"`)}}}`,
  ],
])(
  '§18.3 results: of a long one with only %s nothing is left, and what is missing is said',
  async (_what, result) => {
    write = (id) => respond(id, result);
    const { json } = await call();
    expect(json.result).toEqual({ content: [] });
  },
);

test.each([
  ['prompts/get', { name: 'one__any' }],
  ['resources/read', { uri: 'one+a:b' }],
])(
  '§18.3 results: a long one of %s without what that method needs is refused',
  async (method, params) => {
    write = (id) => respond(id, `{"resultType":"complete",${CONTENT}}`);
    const answer = await stateless(gateway, method, params);
    expect(answer.json.result).toBeUndefined();
    expect(answer.json.error).toBeDefined();
  },
);

test('§18.3 results: one goes on with its own bytes, whatever is read between', () => {
  const take = (letter: string, length: number) => {
    const text = `{"isError":true,"resultType":"complete","content":[{"type":"text","text":"${letter.repeat(length)}"}]}`;
    return Object(parseServerBytes(cut(respond(1, text), 3000))?.value).result;
  };
  for (const length of [4000, 40_000]) {
    const ann = take('a', length);
    const bob = take('1', length);
    for (const [result, letter] of [
      [ann, 'a'],
      [bob, '1'],
    ] as const) {
      const changed = changeUnread(result, new Set(['resultType']), undefined, {});
      expect(changed.isError).toBe(true);
      expect(findText(changed)).toBe(
        `{"isError":true,"content":[{"type":"text","text":"${letter.repeat(length)}"}]}`,
      );
    }
  }
});

/** As a body comes in. */
function cut(text: string, length: number): readonly Buffer[] {
  const bytes = Buffer.from(text);
  const count = Math.ceil(bytes.length / length);
  return Array.from({ length: count }, (_, n) => bytes.subarray(n * length, (n + 1) * length));
}

const ROWS = Array.from({ length: 2000 }, (_, n) => ({ id: n, name: `"${n}"`, tags: ['ä', ''] }));

test.each([
  ['JSON within a text', { content: [{ type: 'text', text: JSON.stringify(ROWS) }] }],
  ['many small values', { content: [], structuredContent: { rows: ROWS } }],
  ['a megabyte', { content: [{ type: 'text', text: 'large ä\n'.repeat(2 ** 17) }] }],
])('§18.3 results: one with %s is unread, in whatever pieces it came', (_what, result) => {
  const text = respond(1, JSON.stringify(result));
  for (const length of [65_536, 10_007, text.length * 2]) {
    const response = Object(parseServerBytes(cut(text, length))?.value);
    // Others take the place of its bytes before somebody asks.
    expect(
      findUnread(Object(parseServerBytes(cut(respond(2, RESULT), 999))?.value).result),
    ).toBeDefined();
    expect(findUnread(response.result)).toBeDefined();
    expect(response.result).toEqual(result);
  }
});

test('§18.3 results: one with more values than a response may have is refused, however short they are', () => {
  const respondWith = (count: number) =>
    parseServerBytes([Buffer.from(respond(1, `{"a":[${'1,'.repeat(count)}1]}`))]);
  expect(respondWith(450_000)).toBeDefined();
  expect(respondWith(500_000)).toBeUndefined();
});

test('§18.3 results: a client of an older revision, a stateless one, and a stream get all of a long one', async () => {
  const whole = JSON.parse(RESULT);
  const older = await call('ann', '2025-03-26');
  expect(older.json.result).toEqual(whole);
  const current = await stateless(gateway, 'tools/call', { name: 'one__any', arguments: {} });
  expect(current.json.result).toEqual({
    resultType: 'complete',
    ...whole,
    _meta: { [SERVER_INFO]: current.json.result._meta[SERVER_INFO] },
  });
  expect(current.text).toContain(RESULT.slice(1, -1));
  const streamed = await call('ann', '2025-11-25', {
    accept: 'application/json, text/event-stream',
  });
  expect(streamed.json.result).toEqual(whole);
});

test('§18.3 results: a long one that tells of an error is one', async () => {
  await call();
  expect(await countFailures()).toBe(0);
  write = (id) => respond(id, `{${CONTENT},"isError":true}`);
  await call();
  expect(await countFailures()).toBe(1);
});

const countFailures = () => seriesOf(gateway, 'mcp_tool_invocations_total', { status: 'error' });

/** Each is wrong where nothing was parsed: the parser has to say so. */
const WRONG: readonly (readonly [what: string, result: string | Buffer])[] = [
  ['a missing brace', `{${CONTENT}`],
  ['a brace too many', `{${CONTENT}}}`],
  ['another bracket', `{"content":[{"type":"text","text":"${LONG}"]}]}`],
  ['no comma', `{${CONTENT} "a":1}`],
  ['a comma too many', `{${CONTENT},}`],
  ['no value', `{${CONTENT},"a":}`],
  ['no colon', `{${CONTENT},"a" 1}`],
  ['a name without quotes', `{${CONTENT},a:1}`],
  ['a number that is none', `{${CONTENT},"a":01}`],
  ['a word that is none', `{${CONTENT},"a":undefined}`],
  ['a string without end', `{"a":"${LONG}`],
  ['a string that ends in a backslash', `{"a":"${LONG}\\"}`],
  ['line feeds in a string', `{"a":"${LONG}\n"}`],
  [
    'bytes that are no text',
    Buffer.concat([Buffer.from(`{"a":"${LONG}`), Buffer.from([0xff]), Buffer.from('"}')]),
  ],
];

test.each(WRONG)(
  "§18.4 results: a long one with %s fails its call, and nobody else's",
  async (_what, result) => {
    write = (id) =>
      Buffer.concat(
        [`{"jsonrpc":"2.0","id":${id},"result":`, result, '}'].map((part) => Buffer.from(part)),
      );
    const { json } = await call();
    expect(json.result).toMatchObject({ isError: true });
    write = (id) => respond(id, RESULT);
    const other = await call('bob');
    expect(other.json.result).toEqual(JSON.parse(RESULT));
  },
);

test('§18.3 results: another message cannot stand in a long result', async () => {
  write = (id) =>
    respond(id, `{${CONTENT}},"id":"x","error":{"code":1,"message":"m"},"more":{"a":1}`);
  const { json } = await call();
  expect(json).toMatchObject({ id: 'i' });
  expect(json.result?.content?.[0]?.text ?? '').not.toContain('ä');
});
