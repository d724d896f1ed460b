// §33: every member of the published schemas goes through the gateway, between servers and clients of either era.
import { readFile, realpath } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { createEveryMember, type Value } from '../../support/clients/every-member.ts';
import { findPublishedSchemas } from '../../support/clients/published-schemas.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { INSTALLATION_MS, installConformance } from '../../support/tools/conformance.ts';
import { startCatalogGateway } from '../../support/upstreams/catalog-gateway.ts';
import {
  type ScriptedHttp,
  sendJson,
  startScriptedHttp,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

type Era = 'session' | 'stateless';

const ERAS = ['session', 'stateless'] as const;
const REVISIONS = { session: '2025-11-25', stateless: '2026-07-28' } as const;

/** What a JSON Schema has, which the schema of MCP leaves open. */
const INPUT = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  title: 'What is wanted',
  properties: {
    city: { type: 'string', description: 'Where', enum: ['Bern'], 'x-mcp-header': 'City' },
    deep: { anyOf: [{ $ref: '#/$defs/d' }, { type: 'array', items: { type: 'number' } }] },
  },
  required: ['city'],
  additionalProperties: false,
  $defs: { d: { const: null } },
  examples: [{ city: 'Bern' }],
  'x-unknown': [1],
};
const OUTPUT = {
  ...INPUT,
  properties: { degrees: { type: 'number', default: 0.5 } },
  required: [],
};

const REPLACEMENTS = {
  'Tool.inputSchema': [INPUT, { type: 'object' }],
  'Tool.outputSchema': [OUTPUT],
  // Official clients take no other form of it.
  'Annotations.lastModified': ['2025-01-12T15:00:58Z'],
  // A question is another test's.
  'CallToolResult.resultType': ['complete'],
  'GetPromptResult.resultType': ['complete'],
  'ReadResourceResult.resultType': ['complete'],
  'CompleteResult.resultType': ['complete'],
  'GetPromptRequestParams.arguments': [{ a: 'b' }],
  'CompleteRequestParams.context': [{ arguments: { c: 'd' } }],
  // The bound of the schema is that of the number of values.
  'ReadResourceResult.ttlMs': [5000],
  'CompleteResult.completion': [
    { values: ['a', 'b'], total: 3, hasMore: true },
    { values: [], hasMore: false },
  ],
};

const schemas = useShared(async () => {
  const { script } = await installConformance();
  const published = findPublishedSchemas(await readFile(await realpath(script), 'utf8'));
  return {
    of(era: Era) {
      const schema = published.get(REVISIONS[era]);
      if (schema === undefined) throw new Error(`There is no schema of ${REVISIONS[era]}`);
      return createEveryMember(schema, REPLACEMENTS);
    },
    close: async () => {},
  };
}, INSTALLATION_MS);

// What the server has: a list for each kind, and an answer for each result.

interface Served {
  readonly tools: readonly Value[];
  readonly prompts: readonly Value[];
  readonly resources: readonly Value[];
  readonly resourceTemplates: readonly Value[];
  readonly results: Readonly<Record<string, readonly Value[]>>;
}

/**
 * Each has a name of its own; what is called by it gets the result of that number, so that there are at least as many as
 * `results`.
 */
const number = (
  items: readonly Value[],
  key: string,
  toName: (index: number) => string,
  results: readonly Value[] = [],
) =>
  Array.from({ length: Math.max(items.length, results.length) }, (_, index) => ({
    ...items[index % items.length],
    [key]: toName(index),
  }));

function serve(era: Era): Served {
  const { list } = schemas.of(era);
  const [called, got, read] = [
    list('CallToolResult'),
    list('GetPromptResult'),
    list('ReadResourceResult'),
  ];
  return {
    tools: number(list('Tool'), 'name', (index) => `t${index}`, called),
    prompts: number(list('Prompt'), 'name', (index) => `p${index}`, got),
    resources: number(list('Resource'), 'uri', (index) => `test://r/${index}`, read),
    resourceTemplates: number(
      list('ResourceTemplate'),
      'uriTemplate',
      (index) => `test://t${index}/{a}`,
    ),
    results: {
      'tools/call': called,
      'prompts/get': got,
      'resources/read': read,
      'completion/complete': list('CompleteResult'),
    },
  };
}

const LISTS = {
  'tools/list': 'tools',
  'prompts/list': 'prompts',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
} as const;

const CAPABILITIES = { tools: {}, prompts: {}, resources: {}, completions: {} };

/** Of `t12`, `p12`, `test://r/12` and the argument of a completion. */
const findNumber = (text: unknown): number => Number(/\d+$/.exec(String(text))?.[0]);

async function startServer(era: Era, served: Served): Promise<ScriptedHttp> {
  const server = await startScriptedHttp(era);
  const complete = era === 'stateless' ? { resultType: 'complete' } : {};
  const cached = era === 'stateless' ? { ttlMs: 60_000, cacheScope: 'public' } : {};
  server.answer(era === 'stateless' ? 'server/discover' : 'initialize', (res, request) => {
    res.setHeader('mcp-session-id', 's');
    const versions = { protocolVersion: '2025-11-25', supportedVersions: ['2026-07-28'] };
    const serverInfo = { name: 'raw', version: '1' };
    sendJson(
      res,
      toResult(request, { ...complete, ...versions, capabilities: CAPABILITIES, serverInfo }),
    );
  });
  for (const [method, member] of Object.entries(LISTS))
    server.answer(method, (res, request) =>
      sendJson(res, toResult(request, { ...complete, ...cached, [member]: served[member] })),
    );
  for (const [method, results] of Object.entries(served.results))
    server.answer(method, (res, request) => {
      const { name, uri, argument } = Object(request.message.params);
      const result = results[findNumber(argument?.value ?? name ?? uri)];
      sendJson(res, toResult(request, { ...result }));
    });
  return server;
}

// What clients see.

type Ask = (method: string, params: Value) => Promise<Value>;

/** The same server behind `/mcp` and at its own path. */
async function startPair(serverEra: Era) {
  const served = serve(serverEra);
  const server = closeAfterTest(await startServer(serverEra, served));
  const gateway = closeAfterTest(
    await startCatalogGateway({
      file: { mcpServers: { it: { url: server.url, era: serverEra, prefix: '' } } },
      env: { AUTH_REQUIRED: 'false' },
    }),
  );
  return { served, server, gateway };
}

type Pair = Awaited<ReturnType<typeof startPair>>;

async function openAsk({ gateway }: Pair, clientEra: Era): Promise<Ask> {
  if (clientEra === 'stateless')
    return async (method, { _meta: meta, ...params }) =>
      (await stateless(gateway, method, params, { meta: Object(meta) })).json.result;
  const client = await openClient(gateway);
  return async (method, params) => (await client.ask(method, params)).result;
}

const PAIRS = ERAS.flatMap((server) => ERAS.map((client) => ({ server, client })));

/** What belongs to the way between a server of the stateless era and its client, and who wrote it. */
const WIRE = ['resultType', 'ttlMs', 'cacheScope'] as const;
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';

/** A result as the other side of the gateway has it. */
function omitWire(result: Value): Value {
  const { [SERVER_INFO]: _, ...meta } = Object(result._meta);
  const rest: Record<string, unknown> = { ...result, _meta: meta };
  for (const name of WIRE) delete rest[name];
  return rest;
}

/** §33: what a client of the session era cannot be told otherwise. */
function toSession(result: Value): Value {
  const { structuredContent, ...others } = result;
  const isObject = typeof structuredContent === 'object' && structuredContent !== null;
  return isObject && !Array.isArray(structuredContent) ? result : others;
}

const hasEvery = (definition: string, era: Era, value: Value | undefined): void =>
  expect(Object.keys(value ?? {})).toEqual(
    expect.arrayContaining([...schemas.of(era).listMembers(definition)]),
  );

describe.each(PAIRS)('a server of the $server era, a client of the $client era', (eras) => {
  test.each([
    ['tools/list', 'Tool'],
    ['prompts/list', 'Prompt'],
    ['resources/list', 'Resource'],
    ['resources/templates/list', 'ResourceTemplate'],
  ] as const)('§33 round trip: %s has every member of a %s', async (method, definition) => {
    const pair = await startPair(eras.server);
    const ask = await openAsk(pair, eras.client);
    const expected = pair.served[LISTS[method]];
    hasEvery(definition, eras.server, expected[0]);
    const result = await ask(method, {});
    expect(result[LISTS[method]]).toEqual(expected);
    expect(result).not.toHaveProperty('nextCursor');
  });

  test.each([
    ['tools/call', 'CallToolResult', (index: number) => ({ name: `t${index}`, arguments: {} })],
    ['prompts/get', 'GetPromptResult', (index: number) => ({ name: `p${index}`, arguments: {} })],
    ['resources/read', 'ReadResourceResult', (index: number) => ({ uri: `test://r/${index}` })],
    [
      'completion/complete',
      'CompleteResult',
      (index: number) => ({
        ref: { type: 'ref/prompt', name: 'p0' },
        argument: { name: 'a', value: String(index) },
      }),
    ],
  ] as const)(
    '§33 round trip: the result of %s has every member of a %s',
    async (method, definition, toParams) => {
      const pair = await startPair(eras.server);
      const ask = await openAsk(pair, eras.client);
      const results = pair.served.results[method] ?? [];
      hasEvery(definition, eras.server, results[0]);
      for (const [index, result] of results.entries()) {
        const received = await ask(method, toParams(index));
        const expected = omitWire(result);
        expect(omitWire(received), `${method} ${index}`).toEqual(
          eras.client === 'session' && method === 'tools/call' ? toSession(expected) : expected,
        );
      }
    },
  );

  test.each([
    ['tools/call', 'CallToolRequestParams', { name: 't0' }],
    ['prompts/get', 'GetPromptRequestParams', { name: 'p0' }],
    ['resources/read', 'ReadResourceRequestParams', { uri: 'test://r/0' }],
    ['completion/complete', 'CompleteRequestParams', { ref: { type: 'ref/prompt', name: 'p0' } }],
  ] as const)(
    '§33 round trip: the server of %s gets every member of %s',
    async (method, definition, names) => {
      const pair = await startPair(eras.server);
      const ask = await openAsk(pair, eras.client);
      const [request = {}] = schemas.of(eras.client).list(definition);
      const own = Object.entries({ ...request, ...names }).filter(([name]) => !ASKED.has(name));
      const { _meta: _, ...params }: Value = Object.fromEntries(own);
      await ask(method, { ...params, _meta: META });
      const sent = pair.server.received.findLast(({ message }) => message.method === method);
      const { _meta: meta, ...received } = Object(sent?.message.params);
      expect(received).toEqual(params);
      expect(meta).toMatchObject(META);
    },
  );
});

/** A client asks for them in its own era only. */
const ASKED: ReadonlySet<string> = new Set(['task', 'inputResponses', 'requestState']);

const META = { 'com.example/open': { deep: [1, null, { text: 'ä' }] } };

test('§33 what one era alone has stands in docs/protocol.md', async () => {
  const text = await readFile(new URL('../../../docs/protocol.md', import.meta.url), 'utf8');
  const [, section = ''] = text.split('## Between the eras\n');
  const [told = ''] = section.split('\n## ');
  const [session, both] = [schemas.of('session'), schemas.of('stateless')];
  const DEFINITIONS = [
    ...['Tool', 'Prompt', 'PromptArgument', 'Resource', 'ResourceTemplate', 'ResourceLink'],
    ...['TextContent', 'ImageContent', 'AudioContent', 'EmbeddedResource', 'Annotations', 'Icon'],
    ...['ToolAnnotations', 'TextResourceContents', 'BlobResourceContents', 'PromptMessage'],
    ...['CallToolResult', 'GetPromptResult', 'ReadResourceResult', 'CompleteResult'],
    ...['ListToolsResult', 'CallToolRequestParams', 'GetPromptRequestParams'],
    ...['ReadResourceRequestParams', 'CompleteRequestParams', 'ElicitRequestFormParams'],
    ...['ElicitRequestURLParams', 'ElicitResult', 'ListRootsResult'],
  ];
  const different = DEFINITIONS.flatMap((name) => {
    const [one, other] = [session.listMembers(name), both.listMembers(name)];
    return [
      ...one.filter((member) => !other.includes(member)),
      ...other.filter((member) => !one.includes(member)),
    ];
  });
  expect(different).toEqual(expect.arrayContaining(['execution', 'resultType']));
  for (const member of new Set(different)) expect(told).toContain(`\`${member}\``);
});
