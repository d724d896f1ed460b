// Tools, prompts and resources of an author's own, by the public API.
import { inspect } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import {
  createLocalCatalog,
  DefinitionError,
  definePrompt,
  defineResource,
  defineTool,
  requireUser,
  ToolError,
} from '../../../src/index.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const SECRET = 'a stack or a secret nobody may see';
const hangUp = { awaited: false, heard: false, signals: new Set<AbortSignal>() };

const catalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'add',
      description: 'Adds.',
      inputSchema: {
        type: 'object',
        properties: { a: { type: 'number' }, b: { type: 'number' } },
        required: ['a', 'b'],
        additionalProperties: false,
      },
      // Typed from the schema: a and b are numbers.
      run: ({ a, b }) => ({ content: [{ type: 'text', text: String(a + b) }] }),
    }),
    defineTool({
      name: 'refuses',
      description: 'Fails as expected.',
      inputSchema: { type: 'object' },
      run: () => ({ content: [{ type: 'text', text: 'out of stock' }], isError: true }),
    }),
    defineTool({
      name: 'throws',
      description: 'Fails unexpectedly.',
      inputSchema: { type: 'object' },
      run: () => {
        throw new Error('the warehouse is on fire');
      },
    }),
    defineTool({
      name: 'rejects',
      description: 'Fails unexpectedly and later.',
      inputSchema: { type: 'object' },
      run: () => Promise.reject('no error object'),
    }),
    defineTool({
      name: 'tells',
      description: 'Fails for a reason that the model should know.',
      inputSchema: { type: 'object' },
      run: () => {
        throw new ToolError('There is no shelf 7. Shelves are 1 to 6.');
      },
    }),
    defineTool({
      name: 'pretends',
      description: 'Fails by an error of somebody else, who calls it as the gateway does.',
      inputSchema: { type: 'object' },
      run() {
        throw Object.assign(new Error('postgres://user:secret@db'), { name: 'ToolError' });
      },
    }),
    defineTool({
      name: 'rambles',
      description: 'Tells more than any model can read.',
      inputSchema: { type: 'object' },
      run() {
        throw new ToolError('x'.repeat(1_000_000));
      },
    }),
    defineTool({
      name: 'mine',
      description: 'Needs a user.',
      inputSchema: { type: 'object' },
      run: (_args, context) => ({
        content: [{ type: 'text', text: requireUser(context).sub }],
      }),
    }),
    defineTool({
      name: 'apart',
      description: 'Takes its context apart, and uses the parts later.',
      inputSchema: { type: 'object' },
      async run(_args, { user, client, signal, log, progress, ask, disconnect, providerToken }) {
        await Promise.resolve();
        log('error', 'said');
        progress(1);
        disconnect();
        const refusal = await ask({ roots: { method: 'roots/list', params: {} } }).catch(String);
        const isOwnToken = user !== undefined && (await providerToken()) === user.token;
        const text = JSON.stringify({ isOwnToken, client, isAborted: signal.aborted, refusal });
        return { content: [{ type: 'text', text }] };
      },
    }),
    defineTool({
      name: 'shows',
      description: 'Shows all of its context that can be looked at.',
      inputSchema: { type: 'object' },
      run: (_args, context) => ({
        content: [{ type: 'text', text: inspect(context, { depth: 9, showHidden: true }) }],
      }),
    }),
    defineTool({
      name: 'embeds',
      description: 'Returns a resource and an image.',
      inputSchema: { type: 'object' },
      run: (_args, { progress }) => {
        progress(1, 2, 'half way');
        return {
          content: [
            { type: 'image', data: 'AAAA', mimeType: 'image/png' },
            { type: 'resource', resource: { uri: 'x://1', name: 'One', text: 'text' } },
          ],
        };
      },
    }),
    defineTool({
      name: 'waits',
      description: 'Waits until the caller hangs up.',
      inputSchema: { type: 'object' },
      run: (_args, context) =>
        new Promise((resolve) => {
          hangUp.awaited = true;
          hangUp.signals.add(context.signal).add(context.signal);
          context.signal.addEventListener('abort', () => {
            hangUp.heard = true;
            resolve({ content: [] });
          });
        }),
    }),
  ],
  prompts: [
    definePrompt({
      name: 'broken',
      description: 'Throws.',
      arguments: [],
      get: () => {
        throw new Error(SECRET);
      },
    }),
  ],
  resources: [
    defineResource({
      uri: 'blob://1',
      name: 'Blob',
      description: 'Bytes.',
      mimeType: 'application/octet-stream',
      read: () => ({ blob: 'AAEC' }),
    }),
  ],
});

const gateway = useGateway({ deps: { catalog } });
let session: string;
beforeAll(async () => {
  session = await gateway.open();
});

const callTool = (name: string, args: object = {}) =>
  gateway.call(session, 'tools/call', { name, arguments: args });

test('§2.4 a tool of one’s own gets arguments that fit its schema', async () => {
  const answer = await callTool('add', { a: 2, b: 3 });
  expect(answer.json.result).toEqual({ content: [{ type: 'text', text: '5' }] });
  const refused = await callTool('add', { a: 2 });
  expect(refused.json.result).toMatchObject({ isError: true });
  expect(refused.json.result.content[0].text).toContain('arguments/b');
});

test('§4.4 an expected failure is a result with isError', async () => {
  const { status, json } = await callTool('refuses');
  expect(status).toBe(200);
  expect(json.result).toEqual({ content: [{ type: 'text', text: 'out of stock' }], isError: true });
});

async function openVersion(protocolVersion: string): Promise<string> {
  const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } };
  const { headers } = await gateway.rpc({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  return String(headers['mcp-session-id']);
}

const FAILURES = [
  { name: 'throws', cause: 'the warehouse is on fire' },
  { name: 'rejects', cause: 'no error object' },
];

/** The log has what was thrown, under the reference that the caller got. */
function expectLogged(name: string, cause: string, said: string) {
  const [, reference] = new RegExp(`^${name} failed; reference ([0-9a-f]{8})\\.$`).exec(said) ?? [];
  expect(reference).toBeDefined();
  expect(gateway.log.findLast(({ error }) => error === 'tool_failed')).toMatchObject({
    level: 'error',
    msg: 'Failed.',
    rpc: 'tools/call',
    of: name,
    cause,
    reference,
  });
}

test.each(FAILURES)(
  '§4.4 a tool that fails ($name) gives a result with isError and a reference',
  async (row) => {
    const { status, json, text } = await callTool(row.name);
    expect(status).toBe(200);
    expect(json).toEqual({
      jsonrpc: '2.0',
      result: { content: [{ type: 'text', text: expect.any(String) }], isError: true },
      id: 1,
    });
    expect(text).not.toContain('.ts:');
    expect(text).not.toContain(row.cause);
    expectLogged(row.name, row.cause, json.result.content[0].text);
  },
);

test.each(FAILURES)(
  '§4.4 before 2025-11-25 a tool that fails ($name) is -32603, with the reference',
  async (row) => {
    const older = await openVersion('2025-06-18');
    const params = { name: row.name, arguments: {} };
    const { status, json, text } = await gateway.call(older, 'tools/call', params);
    expect(status).toBe(200);
    expect(json).toEqual({
      jsonrpc: '2.0',
      error: {
        code: -32603,
        message: 'Tool execution failed',
        data: { details: expect.any(String) },
      },
      id: 1,
    });
    expect(text).not.toContain(row.cause);
    expectLogged(row.name, row.cause, json.error.data.details);
  },
);

test.each(['2025-11-25', '2025-06-18', '2024-11-05'])(
  '§4.4 the message of a ToolError is for the model (%s)',
  async (protocolVersion) => {
    const own = await openVersion(protocolVersion);
    const before = gateway.log.length;
    const { json } = await gateway.call(own, 'tools/call', { name: 'tells', arguments: {} });
    expect(json.result).toEqual({
      content: [{ type: 'text', text: 'There is no shelf 7. Shelves are 1 to 6.' }],
      isError: true,
    });
    expect(gateway.log.slice(before).filter(({ level }) => level === 'error')).toEqual([]);
  },
);

test('§4.4 only a ToolError of the gateway tells its message, and no more of it than 10,000 characters', async () => {
  const own = await openVersion('2025-11-25');
  const read = async (name: string) =>
    (await gateway.call(own, 'tools/call', { name, arguments: {} })).json.result.content[0].text;
  expect(await read('pretends')).toMatch(/^pretends failed; reference \w+\.$/);
  expect(await read('rambles')).toBe('x'.repeat(10_000));
});

test('§7.1 an unexpected failure of a prompt is -32603 without its message, which is logged', async () => {
  const { json, text } = await gateway.call(session, 'prompts/get', { name: 'broken' });
  expect(json.error).toMatchObject({ code: -32603, message: 'Internal error' });
  expect(text).not.toContain(SECRET);
  const line = gateway.log.find(({ cause }) => cause === SECRET);
  expect(line).toMatchObject({ rpc: 'prompts/get', of: 'broken' });
  expect(line?.stack).toContain('authors.test');
});

test('§2.3 a tool knows its user', async () => {
  const token = await gateway.issuer.sign({ sub: 'grace' });
  const own = await gateway.open({ token });
  const message = { jsonrpc: '2.0', id: 'x', method: 'tools/call', params: { name: 'mine' } };
  const { json } = await gateway.rpc(message, { token, session: own });
  expect(json).toEqual({
    jsonrpc: '2.0',
    result: { content: [{ type: 'text', text: 'grace' }] },
    id: 'x',
  });
});

test('§2.4 what a tool has of its call can be taken apart', async () => {
  const token = await gateway.issuer.sign({ sub: 'ada' });
  const own = await gateway.open({ token });
  const params = { name: 'apart', arguments: {} };
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  const { json } = await gateway.rpc(message, { token, session: own });
  expect(JSON.parse(json.result.content[0].text)).toEqual({
    isOwnToken: true,
    client: { elicitation: false, sampling: false, roots: false },
    isAborted: false,
    refusal: expect.stringContaining('The client did not declare roots'),
  });
});

test('§2.4 what a tool has of its call does not lead to the request', async () => {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'shows' } };
  const headers = { cookie: 'crumb=of-the-request' };
  const { json } = await gateway.rpc(message, { session, headers });
  const { text } = json.result.content[0];
  expect(text).toContain('displayName');
  expect(text).not.toContain('crumb');
});

test('§2.5 images and embedded resources go over the wire as they are', async () => {
  const { json } = await callTool('embeds');
  expect(json.result.content).toEqual([
    { type: 'image', data: 'AAAA', mimeType: 'image/png' },
    { type: 'resource', resource: { uri: 'x://1', name: 'One', text: 'text' } },
  ]);
});

test('§2.7 a resource may hold bytes', async () => {
  const { json } = await gateway.call(session, 'resources/read', { uri: 'blob://1' });
  expect(json.result.contents).toEqual([
    { uri: 'blob://1', mimeType: 'application/octet-stream', blob: 'AAEC' },
  ]);
});

test('§4.4 a tool hears when its caller hangs up', async () => {
  const controller = new AbortController();
  const port = await gateway.listen();
  const token = await gateway.issuer.sign();
  const asked = fetch(`http://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${token}`,
      'mcp-session-id': session,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'waits' },
    }),
    signal: controller.signal,
  }).catch((error: Error) => error.name);
  await expect.poll(() => hangUp.awaited).toBe(true);
  controller.abort();
  expect(await asked).toBe('AbortError');
  await expect.poll(() => hangUp.heard).toBe(true);
  expect(hangUp.signals.size).toBe(1);
});

test('§2.4 two tools of one name are refused when the catalogue is made', () => {
  const tool = defineTool({
    name: 'twice',
    description: '',
    inputSchema: { type: 'object' },
    run: () => ({ content: [] }),
  });
  expect(() => createLocalCatalog({ tools: [tool, tool] })).toThrow('twice');
});

test.each([
  { name: 'bad', inputSchema: { type: 'object', properties: { a: { type: 'strin' } } } },
  { name: 'newer', inputSchema: { $schema: 'https://json-schema.org/draft/2020-12/schema' } },
  { name: 'has space', inputSchema: { type: 'object' } },
  { name: 'x'.repeat(129), inputSchema: { type: 'object' } },
])('§2.4 tool $name: a wrong name or schema is refused at its definition', (tool) => {
  const define = () =>
    defineTool({ ...tool, description: '', run: () => ({ content: [] }) } as never);
  expect(define).toThrow(
    expect.toSatisfy(
      (error) => error instanceof DefinitionError && error.message.includes(`ool ${tool.name}`),
    ),
  );
});
