// What there is to a session: capabilities by the catalogue, lists in pages, descriptions unchanged.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Catalog,
  createLocalCatalog,
  definePrompt,
  defineResource,
  defineResourceTemplate,
  defineTool,
  type LocalEntries,
} from '../../../../src/index.ts';
import {
  INITIALIZE_REQUEST,
  startGateway,
  type TestGateway,
} from '../../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../../support/lifetimes.ts';

const start = async (catalog?: Catalog, env: Readonly<Record<string, string>> = {}) =>
  closeAfterTest(await startGateway({ env, ...(catalog && { deps: { catalog } }) }));

const tool = (name: string) =>
  defineTool({
    name,
    description: `Tool ${name}.`,
    inputSchema: { type: 'object' },
    run: () => ({ content: [] }),
  });
const prompt = (name: string, complete?: () => readonly string[]) =>
  definePrompt({
    name,
    description: `Prompt ${name}.`,
    arguments: [{ name: 'a', description: 'A.', required: false, ...(complete && { complete }) }],
    get: () => ({ messages: [] }),
  });
const resource = (name: string, watchResource?: () => () => void) =>
  defineResource({
    uri: `x://${name}`,
    name,
    description: `Resource ${name}.`,
    mimeType: 'text/plain',
    ...(watchResource && { watch: watchResource }),
    read: () => ({ text: name }),
  });
const template = (name: string, complete?: Readonly<Record<string, () => readonly string[]>>) =>
  defineResourceTemplate({
    uriTemplate: `${name}://{id}`,
    name,
    description: `Template ${name}.`,
    ...(complete && { complete }),
    read: () => ({ text: name }),
  });
const watch = () => () => {};
const values = () => ['one'];

describe('capabilities', () => {
  const STREAMS = { MCP_STREAMS: 'true' };
  const ALL: LocalEntries = {
    tools: [tool('t')],
    prompts: [prompt('p', values)],
    resources: [resource('r', watch)],
    logging: true,
  };
  const EVERYTHING = { tools: {}, prompts: {}, resources: {}, completions: {}, logging: {} };

  test.each<{
    what: string;
    env?: Record<string, string>;
    entries?: LocalEntries;
    capabilities: object;
  }>([
    {
      what: 'the specification’s catalogue',
      capabilities: { tools: {}, prompts: {}, resources: {} },
    },
    {
      what: 'the specification’s catalogue with streams',
      env: STREAMS,
      capabilities: { tools: {}, prompts: {}, resources: {} },
    },
    { what: 'nothing', entries: {}, capabilities: {} },
    { what: 'tools', entries: { tools: [tool('t')] }, capabilities: { tools: {} } },
    { what: 'prompts', entries: { prompts: [prompt('p')] }, capabilities: { prompts: {} } },
    { what: 'resources', entries: { resources: [resource('r')] }, capabilities: { resources: {} } },
    {
      what: 'templates',
      entries: { resourceTemplates: [template('t')] },
      capabilities: { resources: {} },
    },
    {
      what: 'a prompt that completes',
      entries: { prompts: [prompt('p', values)] },
      capabilities: { prompts: {}, completions: {} },
    },
    {
      what: 'a template that completes',
      entries: { resourceTemplates: [template('t', { id: values })] },
      capabilities: { resources: {}, completions: {} },
    },
    {
      what: 'logging',
      entries: { tools: [tool('t')], logging: true },
      capabilities: { tools: {}, logging: {} },
    },
    { what: 'everything', entries: ALL, capabilities: EVERYTHING },
    {
      what: 'everything, with streams',
      env: STREAMS,
      entries: ALL,
      capabilities: { ...EVERYTHING, resources: { subscribe: true } },
    },
    {
      what: 'nothing to watch, with streams',
      env: STREAMS,
      entries: { resources: [resource('r')] },
      capabilities: { resources: {} },
    },
  ])('§4.4 of $what they are $capabilities', async ({ entries, env, capabilities }) => {
    const gateway = await start(entries && createLocalCatalog(entries), env);
    expect((await gateway.rpc(INITIALIZE_REQUEST)).json.result.capabilities).toEqual(capabilities);
  });

  test('§4.4 instructions are told where the catalogue has them', async () => {
    const instructions = 'Call t first.\nThen stop.';
    const with_ = await start(createLocalCatalog({ instructions }));
    expect((await with_.rpc(INITIALIZE_REQUEST)).json.result.instructions).toBe(instructions);
    expect((await (await start()).rpc(INITIALIZE_REQUEST)).json.result).not.toHaveProperty(
      'instructions',
    );
  });

  test.each([
    { lacks: 'tools', methods: ['tools/list', 'tools/call'] },
    { lacks: 'prompts', methods: ['prompts/list', 'prompts/get'] },
    {
      lacks: 'resources',
      methods: ['resources/list', 'resources/templates/list', 'resources/read'],
    },
    { lacks: 'logging', methods: ['logging/setLevel'] },
    { lacks: 'completions', methods: ['completion/complete'] },
    { lacks: 'subscriptions', methods: ['resources/subscribe', 'resources/unsubscribe'] },
  ])('§4.4 without $lacks, $methods are -32601', async ({ methods }) => {
    const gateway = await start(createLocalCatalog({}), STREAMS);
    const session = await gateway.open();
    for (const method of methods) {
      const params = { name: 'x', uri: 'x://r', level: 'info' };
      const { status, json } = await gateway.call(session, method, params);
      expect(status).toBe(200);
      expect(json.error).toMatchObject({ code: -32601, message: 'Method not found' });
      expect(json.error.data.details).toContain(method);
    }
  });

  test('§4.4 without MCP_STREAMS nobody subscribes: -32601', async () => {
    const gateway = await start(createLocalCatalog(ALL));
    const session = await gateway.open();
    const { json } = await gateway.call(session, 'resources/subscribe', { uri: 'x://r' });
    expect(json.error).toMatchObject({ code: -32601 });
  });
});

describe('lists in pages', () => {
  const names = ['ä/1', 'b', 'c', 'd', 'e', 'f', 'g'];
  const toolNames = ['t1', 't2', 't3', 't4', 't5', 't6', 't7'];
  const entries = {
    tools: toolNames.map(tool),
    prompts: names.map((name) => prompt(name)),
    resources: names.map((name) => resource(name)),
    resourceTemplates: ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => template(name)),
  };
  const LISTS = [
    { method: 'tools/list', member: 'tools' },
    { method: 'prompts/list', member: 'prompts' },
    { method: 'resources/list', member: 'resources' },
    { method: 'resources/templates/list', member: 'resourceTemplates' },
  ] as const;
  const paged = new Map<number, { gateway: TestGateway; session: string }>();

  beforeAll(async () => {
    for (const pageSize of [1, 3, 7, 250]) {
      const catalog = createLocalCatalog({ ...entries, pageSize });
      const gateway = await startGateway({ deps: { catalog } });
      paged.set(pageSize, { gateway, session: await gateway.open() });
    }
  });
  afterAll(async () => {
    for (const { gateway } of paged.values()) await gateway.close();
  });

  async function list(pageSize: number, method: string, cursor?: unknown) {
    const { gateway, session } = paged.get(pageSize) ?? expect.unreachable();
    const params = cursor === undefined ? undefined : { cursor };
    return (await gateway.call(session, method, params)).json;
  }

  test.each(
    LISTS.flatMap((one) => [
      { ...one, pageSize: 1, pages: [1, 1, 1, 1, 1, 1, 1] },
      { ...one, pageSize: 3, pages: [3, 3, 1] },
      { ...one, pageSize: 7, pages: [7] },
      { ...one, pageSize: 250, pages: [7] },
    ]),
  )('§4.4 $method in pages of $pageSize brings every entry once, in order', async (row) => {
    const { method, member, pageSize, pages } = row;
    const walked: { name: string }[][] = [];
    let cursor: string | undefined;
    do {
      const { result } = await list(pageSize, method, cursor);
      walked.push(result[member]);
      cursor = result.nextCursor;
    } while (cursor !== undefined && walked.length < 20);
    expect(walked.map(({ length }) => length)).toEqual(pages);
    const given = { tools: toolNames, prompts: names, resources: names }[String(member)];
    expect(walked.flat().map(({ name }) => name)).toEqual(
      given ?? entries.resourceTemplates.map(({ description }) => description.name),
    );
  });

  test.each(
    LISTS.flatMap(({ method }) =>
      ['nowhere', '', 'AAAA', '%00', 3, null, {}, ['x']].map((cursor) => ({ method, cursor })),
    ),
  )('§4.4 $method with the cursor $cursor is -32602', async ({ method, cursor }) => {
    const { error, id } = await list(3, method, cursor);
    expect(id).toBe(1);
    expect(error).toMatchObject({ code: -32602, message: 'Invalid params' });
    expect(error.data.details).toContain('cursor');
  });

  test('§4.4 a cursor of one list is none of another', async () => {
    const { result } = await list(3, 'tools/list');
    expect((await list(3, 'prompts/list', result.nextCursor)).error).toMatchObject({
      code: -32602,
    });
  });
});
