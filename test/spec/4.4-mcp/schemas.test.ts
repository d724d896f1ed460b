// Answers against the published schemas of their revision: results and errors of every method.
import { beforeAll, expect, test } from 'vitest';
import { createEveryFeatureCatalog } from '../../support/catalogs/every-feature-catalog.ts';
import { loadMcpSchemas, type McpSchemas } from '../../support/clients/mcp-schemas.ts';
import {
  openRevisionClient,
  REVISIONS,
  SESSION_REVISIONS,
} from '../../support/clients/revision-client.ts';
import { STATELESS } from '../../support/clients/stateless.ts';
import {
  INITIALIZE_REQUEST,
  type TestGateway,
  type TestResponse,
} from '../../support/gateway/gateway.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';
import { INSTALLATION_MS, installConformance } from '../../support/tools/conformance.ts';

type Which = 'rich' | 'builtIn';
type Params = Readonly<Record<string, unknown>>;
/** Method, and its params. */
type Row = readonly [string, Params];

const env = { MCP_STREAMS: 'true' };
const gateways: Readonly<Record<Which, TestGateway>> = {
  rich: useGateway({ env, deps: { catalog: createEveryFeatureCatalog().catalog } }),
  builtIn: useGateway({ env }),
};
let schemas: McpSchemas;
beforeAll(async () => {
  schemas = await loadMcpSchemas(await installConformance());
}, INSTALLATION_MS);

const tool = (name: string, args?: Params): Row => [
  'tools/call',
  { name, ...(args && { arguments: args }) },
];
const read = (uri: string): Row => ['resources/read', { uri }];
const prompt = (name: string, args?: Params): Row => [
  'prompts/get',
  { name, ...(args && { arguments: args }) },
];
const completion = (ref: Params, name: string, value: string): Row => [
  'completion/complete',
  { ref, argument: { name, value } },
];

const PROMPT_REF = { type: 'ref/prompt', name: 'every_kind' };
const TEMPLATE_REF = { type: 'ref/resource', uri: 'memo://of/{who}/{+path}' };

const RICH: readonly Row[] = [
  tool('echo', { text: 'Hi.' }),
  tool('structured'),
  tool('every_kind'),
  tool('fails'),
  tool('chatty'),
  prompt('plain'),
  prompt('every_kind', { colour: 'red', mood: 'good' }),
  read('memo://text'),
  read('memo://bytes'),
  read('memo://of/ada/a/b'),
  read('bytes://a'),
  completion(PROMPT_REF, 'colour', 'r'),
  completion(PROMPT_REF, 'mood', 'g'),
  completion(TEMPLATE_REF, 'who', 'a'),
];
const BUILT_IN: readonly Row[] = [
  tool('service_ping', { message: 'Hi.' }),
  tool('service_ping'),
  prompt('greeting', { name: 'Ada' }),
  prompt('greeting', { name: 'Ada', style: 'formal' }),
  prompt('user-context'),
  read('config://server'),
  read('user://profile'),
];
const SESSION_ONLY: readonly Row[] = [
  ['ping', {}],
  ['logging/setLevel', { level: 'warning' }],
  ['resources/subscribe', { uri: 'memo://watched' }],
  ['resources/unsubscribe', { uri: 'memo://watched' }],
];

interface Case {
  readonly which: Which;
  readonly revision: string;
  readonly method: string;
  readonly params: Params;
}

const casesOf = (which: Which, revisions: readonly string[], rows: readonly Row[]) =>
  rows.flatMap(([method, params]) =>
    revisions.map((revision): Case => ({ which, revision, method, params })),
  );

function expectFitting(revision: string, method: string, { json }: TestResponse): void {
  expect(schemas.responseProblems(revision, method, json)).toEqual([]);
}

test.each([
  ...casesOf('rich', REVISIONS, RICH),
  ...casesOf('rich', SESSION_REVISIONS, SESSION_ONLY),
  ...casesOf('rich', [STATELESS], [['server/discover', {}]]),
  ...casesOf('builtIn', REVISIONS, BUILT_IN),
  ...casesOf('builtIn', SESSION_REVISIONS, [['ping', {}]]),
  ...casesOf('builtIn', [STATELESS], [['server/discover', {}]]),
])(
  '§4.4 schemas: $which in $revision, $method $params',
  async ({ which, revision, method, params }) => {
    const answer = await (await openRevisionClient(gateways[which], revision)).ask(method, params);
    expect(answer.json).toHaveProperty('result');
    expectFitting(revision, method, answer);
  },
);

const LISTS = [
  ['tools/list', 'tools'],
  ['prompts/list', 'prompts'],
  ['resources/list', 'resources'],
  ['resources/templates/list', 'resourceTemplates'],
] as const;

test.each(
  REVISIONS.flatMap((revision) =>
    LISTS.flatMap(([method, member]) => [
      { revision, method, member, which: 'rich' as const },
      { revision, method, member, which: 'builtIn' as const },
    ]),
  ),
)('§4.4 schemas: $which in $revision, every page of $method', async (row) => {
  const { revision, method, member, which } = row;
  const { ask } = await openRevisionClient(gateways[which], revision);
  const names: string[] = [];
  let cursor: string | undefined;
  do {
    const answer = await ask(method, cursor === undefined ? {} : { cursor });
    expectFitting(revision, method, answer);
    const { result } = answer.json;
    names.push(...result[member].map(({ name }: { name: string }) => name));
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  expect(new Set(names).size).toBe(names.length);
  expect(names.length > 0).toBe(which === 'rich' || member !== 'resourceTemplates');
});

test.each(SESSION_REVISIONS)('§4.4 schemas: initialize of %s', async (protocolVersion) => {
  const params = { ...INITIALIZE_REQUEST.params, protocolVersion };
  for (const { rpc } of Object.values(gateways)) {
    expectFitting(protocolVersion, 'initialize', await rpc({ ...INITIALIZE_REQUEST, params }));
  }
});

test.each([
  [tool('asks'), ['form', 'model', 'folders']],
  [tool('asks', { only: 'form' }), ['form']],
])('§4.4 schemas: 2026-07-28 asks for input in answer to %j', async ([method, params], keys) => {
  const { ask } = await openRevisionClient(gateways.rich, STATELESS);
  const answer = await ask(method, params);
  expect(answer.json.result.resultType).toBe('input_required');
  expect(Object.keys(answer.json.result.inputRequests)).toEqual(keys);
  expectFitting(STATELESS, method, answer);
});

test.each(
  (
    [
      [tool('nobody'), -32_602],
      [prompt('nobody'), -32_602],
      [prompt('every_kind', { mood: 'bad' }), -32_602],
      [prompt('throws'), -32_603],
      [read('memo://nobody'), -32_602],
      [read('memo://broken'), -32_603],
      [read('memo://of/nobody/a'), -32_602],
      [['tools/list', { cursor: 'none' }], -32_602],
      [completion({ type: 'ref/prompt', name: 'nobody' }, 'colour', 'r'), -32_602],
      [['no/such/method', {}], -32_601],
    ] as const
  ).flatMap(([[method, params], code]) =>
    REVISIONS.map((revision) => ({ revision, method, params, code })),
  ),
)('§7 schemas: in $revision, $method $params is refused with $code', async (row) => {
  const { revision, method, params, code } = row;
  const answer = await (await openRevisionClient(gateways.rich, revision)).ask(method, params);
  expect(answer.json.error.code).toBe(code);
  expectFitting(revision, method, answer);
});

test.each(REVISIONS)(
  '§7 schemas: in %s a tool that fails is told of as the revision asks',
  async (revision) => {
    const { ask } = await openRevisionClient(gateways.rich, revision);
    const [method, params] = tool('throws');
    const answer = await ask(method, params);
    const { error, result } = answer.json;
    expect(revision >= '2025-11-25' ? result.isError : error.code).toBe(
      revision >= '2025-11-25' ? true : -32_603,
    );
    expectFitting(revision, method, answer);
  },
);

test.each([
  { why: 'another method in the header', headers: { 'mcp-method': 'ping' }, code: -32_020 },
  { why: 'another version', meta: 'v999.0.0', code: -32_022 },
  { why: 'a version of the session era', meta: '2025-11-25', code: -32_022 },
  { why: 'a version that is no string', meta: 1, code: -32_602 },
  { why: 'no capabilities', capabilities: null, code: -32_602 },
  { why: 'a client that cannot be asked', capabilities: {}, code: -32_021 },
])('§7 schemas: in 2026-07-28, $why is refused with $code', async (row) => {
  const { headers: changed, meta, capabilities, code } = row;
  const { request } = await openRevisionClient(gateways.rich, STATELESS);
  const { message, headers } = await request('tools/call', {
    name: 'asks',
    _meta: {
      ...(meta !== undefined && { 'io.modelcontextprotocol/protocolVersion': meta }),
      ...(capabilities !== undefined && {
        'io.modelcontextprotocol/clientCapabilities': capabilities,
      }),
    },
  });
  const version = meta === undefined ? {} : { 'mcp-protocol-version': String(meta) };
  const answer = await gateways.rich.rpc(message, {
    headers: { ...headers, ...version, ...changed },
  });
  expect(answer.json.error.code).toBe(code);
  expectFitting(STATELESS, 'tools/call', answer);
});

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

/** JSON-RPC 2.0 §5 has null for an id that is not known; MCP's schemas have no word for it. */
test.each(
  [
    { why: 'broken JSON', body: '{', headers: {}, code: -32_700 },
    { why: 'a batch', body: [LIST], headers: {}, code: -32_600 },
    { why: 'no JSON-RPC', body: { ...LIST, jsonrpc: '1.0' }, headers: {}, code: -32_600 },
    { why: 'an id of null', body: { ...LIST, id: null }, headers: {}, code: -32_600 },
    { why: 'no token', body: LIST, headers: { authorization: '' }, code: -32_001 },
    { why: 'a wrong token', body: LIST, headers: { authorization: 'Bearer x' }, code: -32_001 },
    { why: 'a foreign origin', body: LIST, headers: { origin: 'https://evil.example' }, code: 0 },
    { why: 'another type', body: LIST, headers: { 'content-type': 'text/plain' }, code: -32_000 },
    { why: 'too much', body: 'x'.repeat(2 ** 21), headers: {}, code: -32_000 },
    { why: 'no session', body: LIST, headers: {}, code: -32_000 },
    {
      why: 'an unknown session',
      body: LIST,
      headers: { 'mcp-session-id': '00000000-0000-4000-8000-000000000000' },
      code: -32_000,
    },
  ].flatMap((row) => REVISIONS.map((revision) => ({ ...row, revision }))),
)('§7 schemas: in $revision, $why is refused in the form of an error', async (row) => {
  const { revision, body, headers, code } = row;
  const answer = await gateways.rich.rpc(body, { headers });
  const { id, ...error } = answer.json;
  expect(answer.status).toBeGreaterThanOrEqual(400);
  expect([null, 1]).toContain(id);
  if (code !== 0) expect(error.error.code).toBe(code);
  expect(schemas.responseProblems(revision, 'tools/list', { ...error, id: id ?? 1 })).toEqual([]);
});
