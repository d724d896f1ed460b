// Results as their servers wrote them, in whatever order the members of the response stand: clients get the same.
import { beforeEach, expect, test } from 'vitest';
import { addMembers, findWritten, surround } from '../../../src/platform/json.ts';
import { parseServerBytes } from '../../../src/servers/messages/server-message.ts';
import { SERVER_INFO, stateless } from '../../support/clients/stateless.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { type CatalogGateway, startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { startRawServer } from '../../support/upstreams/raw-server.ts';

/** Beyond the size from which on a result keeps its bytes. */
const LONG = 'ä'.repeat(5_000);
/** No double has this number. */
const NUMBER = '12345678901234567890.125';

const toResult = (text: string) =>
  `{"content": [{"type":"text","text":"${text}"}],\n "structuredContent":{"id":7,"sum":${NUMBER}}, "id":7}`;

const WRITTEN: readonly (readonly [
  order: string,
  write: (id: number, result: string) => string,
])[] = [
  ['version, id, result', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`],
  ['result, version, id', (id, result) => `{"result":${result},"jsonrpc":"2.0","id":${id}}`],
  ['version, result, id', (id, result) => `{"jsonrpc":"2.0","result":${result},"id":${id}}\n`],
  ['id, result, version', (id, result) => `{"id":${id},"result":${result},"jsonrpc":"2.0"}`],
  ['spaces', (id, result) => ` { "jsonrpc" : "2.0", "id" : ${id}, "result" : ${result} } `],
];

/** None is an answer to the call, though each begins or ends like one. */
const WRONG: readonly (readonly [what: string, write: (id: number, result: string) => string])[] = [
  ['another id', (id, result) => `{"jsonrpc":"2.0","id":${id + 1},"result":${result}}`],
  ['another id behind', (id, result) => `{"result":${result},"jsonrpc":"2.0","id":${id + 1}}`],
  ['a missing end', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result}`],
  ['one end too many', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result}}}`],
  ['two results', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result}}{}`],
  ['a list', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":[${result}]}`],
  [
    'an error beside it',
    (id, result) =>
      `{"jsonrpc":"2.0","id":${id},"result":${result},"error":{"code":1,"message":"x"}}`,
  ],
  ['an id that is no JSON', (id, result) => `{"jsonrpc":"2.0","id":0${id},"result":${result}}`],
];

let type = 'application/json';
let write: (id: number, result: string) => string;
let gateway: CatalogGateway;

beforeEach(async () => {
  type = 'application/json';
  const server = closeAfterTest(
    await startRawServer((res, id, { params }) => {
      const { text } = Object(params.arguments);
      res.writeHead(200, { 'content-type': type });
      res.end(write(id, toResult(text)));
    }),
  );
  gateway = await startForTest({ file: { mcpServers: { one: { url: server.url } } } });
});

async function call(sub: string, id: string | number, text: string) {
  const token = await gateway.issuer.sign({ sub });
  const session = await gateway.open({ token });
  const params = { name: 'one__any', arguments: { text } };
  return gateway.rpc({ jsonrpc: '2.0', id, method: 'tools/call', params }, { session, token });
}

test.each(WRITTEN)(
  '§18.3 results: a response with %s is passed on, short and long, with the id of its client',
  async (_order, order) => {
    write = order;
    for (const [text, id] of [
      [LONG, 'a "quoted" id'],
      ['short', 3],
    ] as const) {
      const { json } = await call('ann', id, text);
      expect(json).toEqual({ jsonrpc: '2.0', id, result: JSON.parse(toResult(text)) });
    }
  },
);

test.each([
  ['of 600 characters', 'ä'.repeat(500)],
  ['of some KiB', LONG],
  ['of 100 KiB', 'ä'.repeat(50_000)],
  ['of 900 KB', 'a'.repeat(900_000)],
])(
  '§18.3 results: one %s is passed on to the letter, with numbers that no double has',
  async (_size, text) => {
    write = WRITTEN[0]?.[1] ?? fail;
    const { text: body } = await call('ann', 1, text);
    expect(body === `{"jsonrpc":"2.0","result":${toResult(text)},"id":1}`).toBe(true);
  },
);

test('§18.3 results: so is one in an event of a stream', async () => {
  type = 'text/event-stream';
  const lines = (text: string) => text.replaceAll('\n', '\ndata: ');
  write = (id, result) =>
    `: hello\n\nevent: message\ndata: ${lines(`{"jsonrpc":"2.0","id":${id},"result":${result}}`)}\n\n`;
  const { text: body } = await call('ann', 'x', LONG);
  expect(body).toBe(`{"jsonrpc":"2.0","result":${toResult(LONG)},"id":"x"}`);
});

test.each([1, 2, 7, 33, 40, 8_000, 100_000])(
  '§18.3 results: one that comes in pieces of %i bytes is found in them',
  (size) => {
    const result = toResult('ä'.repeat(10_000));
    for (const [, order] of WRITTEN.slice(0, 3)) {
      const bytes = Buffer.from(order(7, result));
      const count = Math.ceil(bytes.length / size);
      const pieces = Array.from({ length: count }, (_, n) =>
        bytes.subarray(n * size, (n + 1) * size),
      );
      const parsed = parseServerBytes(pieces);
      const value = Object(parsed?.value);
      expect(value).toEqual({ jsonrpc: '2.0', id: 7, result: JSON.parse(result) });
      const written = findWritten(value.result) ?? [];
      const around = surround('<ä', written, '>');
      expect(String(Buffer.concat(toBytes(around)))).toBe(`<ä${result}>`);
      const added = addMembers(written, '"a":1', '"z":2') ?? fail();
      expect(String(Buffer.concat(toBytes(added)))).toBe(`{"a":1,${result.slice(1, -1)},"z":2}`);
    }
  },
);

const toBytes = (written: string | readonly Uint8Array[]) =>
  typeof written === 'string' ? [Buffer.from(written)] : written;

const ADDED = [
  ['nothing of its own', ''],
  ['meta of its own', ',"_meta":{"x/y":1}'],
  ['a type of its own', ',"resultType":"complete"'],
  ['times of its own', ',"ttlMs":5,"cacheScope":"public"'],
] as const;

test.each(ADDED)(
  '§18.3 results: a client of 2026-07-28 gets a long one that has %s, with what its revision adds',
  async (_what, own) => {
    write = (id, result) =>
      `{"jsonrpc":"2.0","id":${id},"result": ${result.slice(0, -1)}${own}}}`.replace(': {', ':{');
    const { json, text } = await stateless(
      gateway,
      'tools/call',
      { name: 'one__any', arguments: { text: LONG } },
      { id: 'i' },
    );
    const { _meta: meta, ...members } = JSON.parse(`${toResult(LONG).slice(0, -1)}${own}}`);
    // Those of the transport are not the server's word.
    if (own.includes('resultType')) delete members.resultType;
    expect(json).toEqual({
      jsonrpc: '2.0',
      id: 'i',
      result: {
        resultType: 'complete',
        ...members,
        _meta: { ...meta, [SERVER_INFO]: json.result._meta[SERVER_INFO] },
      },
    });
    if (own === '')
      expect(text).toContain(`{"resultType":"complete",${toResult(LONG).slice(1, -1)},`);
  },
);

test.each(['{}', '{ }', ' {"content":[]}'])(
  '§18.3 results: a client of 2026-07-28 gets %j with what its revision adds',
  async (result) => {
    const padding = ' '.repeat(5_000);
    write = (id) => `{"jsonrpc":"2.0","id":${id},"result":${padding}${result}${padding}}`;
    const params = { name: 'one__any', arguments: { text: '' } };
    const { json } = await stateless(gateway, 'tools/call', params);
    const { resultType, _meta, ...members } = json.result;
    expect(resultType).toBe('complete');
    // Without content clients would refuse it.
    expect(members).toEqual({ content: [], ...JSON.parse(result) });
  },
);

test.each(WRONG)(
  "§18.4 results: a long response with %s fails its call, and nobody else's",
  async (_what, wrong) => {
    write = wrong;
    const failed = await call('ann', 1, LONG);
    expect(failed.json.result).toMatchObject({ isError: true });
    write = WRITTEN[0]?.[1] ?? fail;
    const { json } = await call('bob', 2, LONG);
    expect(json.result).toEqual(JSON.parse(toResult(LONG)));
  },
);

const fail = () => expect.fail('There is no such order');
