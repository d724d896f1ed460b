// MCP 2026-07-28: what a catalogue does not offer is not there, and what its authors say is sent.
import { describe, expect, test } from 'vitest';
import {
  createLocalCatalog,
  definePrompt,
  defineResource,
  defineResourceTemplate,
  defineTool,
  type LocalEntries,
} from '../../../../src/index.ts';
import { SERVER_INFO, stateless } from '../../../support/clients/stateless.ts';
import { startGateway, type TestGateway } from '../../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../../support/lifetimes.ts';

describe('catalogues other than the default', () => {
  let gateway: TestGateway;
  const serve = async (entries: LocalEntries) => {
    gateway = closeAfterTest(
      await startGateway({ deps: { catalog: createLocalCatalog(entries) } }),
    );
  };

  const tool = defineTool({
    name: 'throws',
    description: '',
    inputSchema: { type: 'object' },
    run() {
      throw new Error('the disk is full');
    },
  });
  const another = defineTool({
    name: 'another',
    description: '',
    inputSchema: { type: 'object' },
    run: () => ({ content: [] }),
  });
  const completing = definePrompt({
    name: 'prompt',
    description: '',
    arguments: [{ name: 'a', description: '', required: false, complete: () => ['one', 'two'] }],
    get: () => ({ messages: [] }),
  });
  const resource = defineResource({
    uri: 'test://it',
    name: 'it',
    description: '',
    mimeType: 'text/plain',
    read: () => ({ text: '' }),
    watch: () => () => {},
  });
  const template = defineResourceTemplate({
    uriTemplate: 'test://{id}',
    name: 'them',
    description: '',
    read: ({ id }) => ({ text: String(id) }),
  });

  const METHODS = {
    tools: ['tools/list', 'tools/call'],
    prompts: ['prompts/list', 'prompts/get'],
    resources: ['resources/list', 'resources/templates/list', 'resources/read'],
    completions: ['completion/complete'],
  };

  test.each<{ entries: LocalEntries; offered: string[]; capabilities: object }>([
    { entries: {}, offered: [], capabilities: {} },
    { entries: { tools: [tool] }, offered: ['tools'], capabilities: { tools: {} } },
    {
      entries: { prompts: [completing] },
      offered: ['prompts', 'completions'],
      capabilities: { prompts: {}, completions: {} },
    },
    // Subscriptions only with MCP_STREAMS=true.
    { entries: { resources: [resource] }, offered: ['resources'], capabilities: { resources: {} } },
    {
      entries: { resourceTemplates: [template] },
      offered: ['resources'],
      capabilities: { resources: {} },
    },
    { entries: { logging: true }, offered: [], capabilities: { logging: {} } },
  ])('§15 with $offered: $capabilities, and the rest is 404', async (row) => {
    await serve(row.entries);
    const { json } = await stateless(gateway, 'server/discover');
    expect(json.result.capabilities).toEqual(row.capabilities);
    for (const [offer, methods] of Object.entries(METHODS)) {
      for (const method of methods) {
        const { status, json: answer } = await stateless(gateway, method);
        expect(answer.error?.code === -32601).toBe(!row.offered.includes(offer));
        expect(status).toBe(row.offered.includes(offer) ? 200 : 404);
      }
    }
  });

  test('§15 server/discover carries the instructions, where there are any', async () => {
    await serve({ instructions: 'Ask throws first.' });
    const { json } = await stateless(gateway, 'server/discover');
    expect(json.result.instructions).toBe('Ask throws first.');
  });

  test('§15 lists come in pages, each of them with how long it holds', async () => {
    await serve({ prompts: [completing], tools: [tool, another], pageSize: 1 });
    const first = (await stateless(gateway, 'tools/list')).json.result;
    expect(first.tools).toMatchObject([{ name: 'throws' }]);
    const last = (await stateless(gateway, 'tools/list', { cursor: first.nextCursor })).json.result;
    expect(last.tools).toMatchObject([{ name: 'another' }]);
    expect(last.nextCursor).toBeUndefined();
    for (const { ttlMs, cacheScope } of [first, last]) {
      expect(ttlMs).toBeGreaterThanOrEqual(0);
      expect(cacheScope).toBe('public');
    }
  });

  test('§15 a tool that throws: a result with isError and a reference', async () => {
    await serve({ tools: [tool] });
    const { status, json } = await stateless(
      gateway,
      'tools/call',
      { name: 'throws' },
      { id: 'x' },
    );
    expect(status).toBe(200);
    expect(json).toMatchObject({
      jsonrpc: '2.0',
      result: {
        resultType: 'complete',
        isError: true,
        content: [
          { type: 'text', text: expect.stringMatching(/^throws failed; reference [0-9a-f]{8}\.$/) },
        ],
      },
      id: 'x',
    });
    const [, reference] = /reference (\w+)/.exec(json.result.content[0].text) ?? [];
    expect(gateway.log.findLast(({ error }) => error === 'tool_failed')).toMatchObject({
      cause: 'the disk is full',
      reference,
    });
  });

  test('§15 completion/complete is complete and not to be kept', async () => {
    await serve({ prompts: [completing] });
    const { json } = await stateless(gateway, 'completion/complete', {
      ref: { type: 'ref/prompt', name: 'prompt' },
      argument: { name: 'a', value: '' },
    });
    expect(json.result).toEqual({
      resultType: 'complete',
      completion: { values: ['one', 'two'], total: 2, hasMore: false },
      _meta: { [SERVER_INFO]: expect.objectContaining({ name: 'postern' }) },
    });
  });

  test('§2.7 what a resource says of its keeping is sent, silence means not at all', async () => {
    const base = { description: '', mimeType: 'text/plain', read: () => ({ text: '' }) };
    await serve({
      resources: [
        defineResource({ ...base, uri: 'a:said', name: 'a', cache: { ttlMs: 5, scope: 'public' } }),
        defineResource({ ...base, uri: 'a:silent', name: 'b' }),
      ],
      resourceTemplates: [template],
    });
    const read = async (uri: string) =>
      (await stateless(gateway, 'resources/read', { uri })).json.result;
    expect(await read('a:said')).toMatchObject({ ttlMs: 5, cacheScope: 'public' });
    expect(await read('a:silent')).toMatchObject({ ttlMs: 0, cacheScope: 'private' });
    expect(await read('test://one')).toMatchObject({ ttlMs: 0, cacheScope: 'private' });
    expect((await read('a:said')).contents).toEqual([
      { uri: 'a:said', mimeType: 'text/plain', text: '' },
    ]);
  });
});
