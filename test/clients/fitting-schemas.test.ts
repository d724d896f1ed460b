// Whatever a server writes in place of a member, the official clients read the lists and the results that it is in, and so do those
// who hold them against the published schemas.
import {
  CallToolResultSchema as CallTool2,
  GetPromptResultSchema as GetPrompt2,
  ReadResourceResultSchema as ReadResource2,
} from '@modelcontextprotocol/core';
import {
  CallToolResultSchema as CallTool1,
  GetPromptResultSchema as GetPrompt1,
  ReadResourceResultSchema as ReadResource1,
} from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, expect, test } from 'vitest';
import { loadMcpSchemas, type McpSchemas } from '../support/clients/mcp-schemas.ts';
import type { OfficialClient } from '../support/clients/official-client.ts';
import { OFFICIAL_CLIENTS } from '../support/clients/official-clients.ts';
import { openRevisionClient, REVISIONS } from '../support/clients/revision-client.ts';
import { STATELESS } from '../support/clients/stateless.ts';
import { KINDS_OF_MISFITS, listMisfits, type Misfit } from '../support/fuzz/misfits.ts';
import { startService } from '../support/gateway/service.ts';
import { useShared } from '../support/lifetimes.ts';
import { INSTALLATION_MS, installConformance } from '../support/tools/conformance.ts';
import { chooseCount, LONG_MS } from '../support/tools/long-run.ts';
import { startCatalogGateway } from '../support/upstreams/catalog-gateway.ts';
import { readFile } from '../support/upstreams/gateway-file.ts';
import { buildTool, startListingServer } from '../support/upstreams/listing-server.ts';

const ICONS = [
  { src: 'https://a.example/i', mimeType: 'image/png', sizes: ['1x1'], theme: 'dark' },
];
const ANNOTATIONS = {
  audience: ['user', 'assistant'],
  priority: 0.5,
  lastModified: '2025-01-12T15:00:58Z',
};
const DESCRIBED = { title: 'T', description: 'D', icons: ICONS, _meta: { 'a.example/b': 1 } };
const SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: { a: { type: 'string' }, b: true },
  required: ['a'],
  additionalProperties: false,
};
const RESOURCE = { ...DESCRIBED, name: 'r', mimeType: 'text/plain', annotations: ANNOTATIONS };

const KINDS = {
  tools: {
    method: 'tools/list',
    definition: 'Tool',
    /** Without them there is no such entry. */
    needed: /^(name|inputSchema|inputSchema\.type)$/,
    entry: {
      ...DESCRIBED,
      name: 't',
      inputSchema: SCHEMA,
      outputSchema: SCHEMA,
      annotations: {
        title: 'T',
        readOnlyHint: true,
        destructiveHint: false,
        idempotentHint: true,
        openWorldHint: false,
      },
      execution: { taskSupport: 'optional' },
    },
  },
  prompts: {
    method: 'prompts/list',
    definition: 'Prompt',
    needed: /^(name|arguments|arguments\.0|arguments\.0\.name)$/,
    entry: {
      ...DESCRIBED,
      name: 'p',
      arguments: [{ name: 'a', title: 'A', description: 'D', required: true }],
    },
  },
  resources: {
    method: 'resources/list',
    definition: 'Resource',
    needed: /^(uri|name)$/,
    entry: { ...RESOURCE, uri: 'x://r', size: 3 },
  },
  resourceTemplates: {
    method: 'resources/templates/list',
    definition: 'ResourceTemplate',
    needed: /^(uriTemplate|name)$/,
    entry: { ...RESOURCE, uriTemplate: 'x://r/{a}' },
  },
} as const;

const LISTS = ['tools', 'prompts', 'resources', 'resourceTemplates'] as const;
const KEYS = {
  tools: 'name',
  prompts: 'name',
  resources: 'uri',
  resourceTemplates: 'uriTemplate',
} as const;

/** Each with a key of its own, but where that is what is wrong. */
const buildEntries = (list: (typeof LISTS)[number]) =>
  listMisfits(KINDS[list].entry)
    .map(({ path, value }, index) => ({
      path,
      key: list === 'tools' || list === 'prompts' ? `k${index}` : `x://r/k${index}`,
      entry: Object(value),
    }))
    .map(({ path, key, entry }) => ({
      path,
      key,
      entry: path === KEYS[list] ? entry : { ...entry, [KEYS[list]]: key },
    }));

const ENTRIES = Object.fromEntries(LISTS.map((list) => [list, buildEntries(list)]));
const entriesOf = (list: string) => ENTRIES[list] ?? [];

const WORDS = { annotations: ANNOTATIONS, _meta: { 'a.example/b': 1 } };
const CONTENT = [
  { type: 'text', text: 'text', ...WORDS },
  { type: 'image', data: 'AAEC', mimeType: 'image/png' },
  { type: 'audio', data: 'AAEC', mimeType: 'audio/mpeg' },
  {
    type: 'resource',
    resource: { uri: 'x://e', mimeType: 'text/plain', text: 'e', _meta: {} },
  },
  { type: 'resource', resource: { uri: 'x://f', mimeType: 'text/plain', blob: 'AAEC' } },
  { type: 'resource_link', ...RESOURCE, uri: 'x://l', size: 3 },
];
const META = { 'a.example/b': 1 };

const RESULTS = {
  'tools/call': listMisfits({
    content: CONTENT,
    structuredContent: { a: 1 },
    isError: false,
    _meta: META,
  }),
  'prompts/get': listMisfits({
    description: 'D',
    messages: CONTENT.map((content) => ({ role: 'user', content })),
    _meta: META,
  }).filter(({ path, kind }) => path !== 'messages' || Array.isArray(kind)),
  'resources/read': listMisfits({
    contents: [
      { uri: 'x://read', mimeType: 'text/plain', text: 't', _meta: META },
      { uri: 'x://read', mimeType: 'text/plain', blob: 'AAEC' },
    ],
    _meta: META,
  }).filter(({ path, kind }) => path !== 'contents' || (Array.isArray(kind) && kind.length === 0)),
} as const;
type Called = keyof typeof RESULTS;
const METHODS = ['tools/call', 'prompts/get', 'resources/read'] as const;

/** What the server answers next. */
let answer: unknown;

const server = useShared(() =>
  startListingServer({
    tools: [buildTool('call'), ...entriesOf('tools').map(({ entry }) => entry)],
    prompts: [{ name: 'get' }, ...entriesOf('prompts').map(({ entry }) => entry)],
    resources: [
      { uri: 'x://read', name: 'read' },
      ...entriesOf('resources').map(({ entry }) => entry),
    ],
    resourceTemplates: entriesOf('resourceTemplates').map(({ entry }) => entry),
    answers: Object.fromEntries(METHODS.map((method) => [method, () => ({ result: answer })])),
  }),
);

const LIMITS = { RATE_LIMIT_ENABLED: 'false' };

const service = useShared(async () =>
  startService({
    mode: 'broker',
    deps: {
      file: await readFile({ builtIn: false, mcpServers: { a: { url: server.url, prefix: '' } } }),
    },
    env: { MCP_STREAMS: 'true', ...LIMITS },
  }),
);
const gateway = useShared(() =>
  startCatalogGateway({
    file: { mcpServers: { a: { url: server.url, prefix: '' } } },
    env: LIMITS,
  }),
);

let schemas: McpSchemas;
const clients = new Map<string, OfficialClient>();

beforeAll(async () => {
  schemas = await loadMcpSchemas(await installConformance());
  for (const { title, connect } of OFFICIAL_CLIENTS) {
    clients.set(title, await connect(new URL(service.mcpUrl)));
  }
}, INSTALLATION_MS);

const clientOf = (title: string): OfficialClient => {
  const client = clients.get(title);
  if (client === undefined) throw new Error(`${title} is not connected.`);
  return client;
};

const LIST_BY: Readonly<
  Record<(typeof LISTS)[number], (client: OfficialClient) => Promise<object>>
> = {
  tools: (client) => client.listTools(),
  prompts: (client) => client.listPrompts(),
  resources: (client) => client.listResources(),
  resourceTemplates: (client) => client.listResourceTemplates(),
};

test.each(OFFICIAL_CLIENTS.flatMap(({ title }) => LISTS.map((list) => [title, list] as const)))(
  '§18.2 lists: the official client %s reads the %s of a server with any kind of value in any member',
  async (title, list) => {
    const result: Readonly<Record<string, unknown>> = { ...(await LIST_BY[list](clientOf(title))) };
    const { [list]: listed } = result;
    const keys = new Set(Array.isArray(listed) ? listed.map((one) => Object(one)[KEYS[list]]) : []);
    const missing = entriesOf(list).filter(
      ({ path, key }) => !KINDS[list].needed.test(path) && !keys.has(key),
    );
    expect(missing).toEqual([]);
  },
);

test.each(REVISIONS.flatMap((revision) => LISTS.map((list) => [revision, list] as const)))(
  '§18.2 lists: in %s, all that is listed of %s is what the published schema says',
  async (revision, list) => {
    const client = await openRevisionClient(gateway, revision);
    const { method, definition } = KINDS[list];
    const { json } = await client.ask(method);
    expect(json.result[list].length).toBeGreaterThan(100);
    for (const entry of json.result[list]) {
      expect(schemas.problems(revision, definition, entry), JSON.stringify(entry)).toEqual([]);
    }
  },
);

const PARAMS: Readonly<Record<Called, object>> = {
  'tools/call': { name: 'call', arguments: {} },
  'prompts/get': { name: 'get' },
  'resources/read': { uri: 'x://read' },
};
const LONG = 'x'.repeat(3000);

/** The same, so long that it is not parsed where it need not be. */
const withLongText = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value)
      .replaceAll('"text":"text"', `"text":"${LONG}"`)
      .replaceAll('"text":"t"', `"text":"${LONG}"`),
  );

const REVISION_NAMES: readonly string[] = REVISIONS;

/** Each is asked for in one revision, and of each member some in every one; CI asks for each in each. */
const isAskedIn = (revision: string, at: number): boolean =>
  (at + Math.floor(at / KINDS_OF_MISFITS)) % chooseCount(REVISIONS.length, 1) ===
  chooseCount(REVISION_NAMES.indexOf(revision), 0);

const forEachResult = async (
  revision: string,
  method: Called,
  check: (misfit: Misfit) => Promise<void>,
) => {
  for (const misfit of RESULTS[method].filter((_, at) => isAskedIn(revision, at))) {
    for (const value of [misfit.value, withLongText(misfit.value)]) {
      answer = value;
      await check(misfit);
    }
  }
};

const OFFICIAL = {
  'tools/call': [CallTool1, CallTool2],
  'prompts/get': [GetPrompt1, GetPrompt2],
  'resources/read': [ReadResource1, ReadResource2],
} as const satisfies Readonly<Record<Called, readonly unknown[]>>;

/** Clients 1.x speak no revision without sessions. */
function findOfficialProblems(
  revision: string,
  method: Called,
  result: unknown,
): readonly unknown[] {
  const [first, second] = OFFICIAL[method];
  const judges = revision === STATELESS ? [second] : [first, second];
  return judges.flatMap((judge) => judge.safeParse(result).error?.issues ?? []);
}

test.each(REVISIONS.flatMap((revision) => METHODS.map((method) => [revision, method] as const)))(
  '§18.3 results: in %s, whatever is answered to %s is what the schemas say, of the revision and of the official clients',
  { timeout: LONG_MS },
  async (revision, method) => {
    const client = await openRevisionClient(gateway, revision);
    await forEachResult(revision, method, async ({ path, kind }) => {
      const { json } = await client.ask(method, { ...PARAMS[method] });
      const problems = [
        ...schemas.responseProblems(revision, method, json),
        ...findOfficialProblems(revision, method, json.result),
      ];
      expect(problems, `${path} ${JSON.stringify(kind)}`).toEqual([]);
      expect(json.error).toBeUndefined();
    });
  },
);
