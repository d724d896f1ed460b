// Arguments that are repeated in headers (x-mcp-header), and browsers that send them.
import { expect, test } from 'vitest';
import { createLocalCatalog, DefinitionError, defineTool } from '../../../../src/index.ts';
import { stateless } from '../../../support/clients/stateless.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const query = defineTool({
  name: 'query',
  description: 'Runs a query in a region.',
  inputSchema: {
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      limit: { type: 'integer', 'x-mcp-header': 'Limit' },
      options: {
        type: 'object',
        properties: { dry: { type: 'boolean', 'x-mcp-header': 'Dry-Run' } },
      },
    },
  },
  run: (args) => ({ content: [{ type: 'text', text: JSON.stringify(args) }] }),
});

const gateway = useGateway({ deps: { catalog: createLocalCatalog({ tools: [query] }) } });

const call = (args: object, headers: Readonly<Record<string, string>>) =>
  stateless(gateway, 'tools/call', { name: 'query', arguments: args }, { headers });

test.each([
  ['a text', { region: 'eu' }, { 'mcp-param-region': 'eu' }],
  ['a text in base64', { region: 'Größe' }, { 'mcp-param-region': '=?base64?R3LDtsOfZQ==?=' }],
  ['a number', { limit: 42 }, { 'mcp-param-limit': '42' }],
  ['a number, otherwise written', { limit: 42 }, { 'mcp-param-limit': '42.0' }],
  ['a boolean below another member', { options: { dry: true } }, { 'mcp-param-dry-run': 'true' }],
  ['nothing, and none is expected', {}, {}],
  ['null, and none is expected', { region: null }, {}],
])('§15 tools/call: a header may repeat %s', async (_what, args, headers) => {
  const { status, json } = await call(args, headers);
  expect(status).toBe(200);
  expect(json.error).toBeUndefined();
});

test.each([
  ['is missing', { region: 'eu' }, {}, 'Mcp-Param-Region is missing; it must be "eu"'],
  ['has no argument', {}, { 'mcp-param-region': 'eu' }, 'is "eu", but the body has nothing'],
  ['has null for its argument', { region: null }, { 'mcp-param-region': 'eu' }, 'is "eu"'],
  ['says something else', { region: 'eu' }, { 'mcp-param-region': 'us' }, 'Mcp-Param-Region'],
  ['is no base64', { region: 'Hello' }, { 'mcp-param-region': '=?base64?SGVsbG8?=' }, 'base64'],
  ['says another number', { limit: 42 }, { 'mcp-param-limit': '43' }, 'Mcp-Param-Limit'],
  ['is no number', { limit: 0 }, { 'mcp-param-limit': '' }, 'Mcp-Param-Limit'],
  [
    'denies what is said below',
    { options: { dry: true } },
    { 'mcp-param-dry-run': 'false' },
    'Mcp-Param-Dry-Run',
  ],
])('§15 tools/call: a call whose header %s is refused', async (_how, args, headers, named) => {
  const { status, json } = await call(args, headers);
  expect(status).toBe(400);
  expect(json.error).toMatchObject({
    code: -32020,
    data: { details: expect.stringContaining(named) },
  });
  expect(json.id).toBe(1);
});

test('§15 tools/call: in a session nobody asks for the headers', async () => {
  const { json } = await gateway.call(await gateway.open(), 'tools/call', {
    name: 'query',
    arguments: { region: 'eu' },
  });
  expect(json.result.content[0].text).toBe('{"region":"eu"}');
});

test('§4.12 CORS: pages may send the headers of the catalogue', async () => {
  const origin = 'http://localhost:8080';
  const { headers } = await gateway.request({
    method: 'OPTIONS',
    path: '/mcp',
    headers: { origin },
  });
  expect(headers['access-control-allow-headers']).toMatch(
    /, Mcp-Param-Region, Mcp-Param-Limit, Mcp-Param-Dry-Run$/,
  );
});

const annotated = (members: object) => ({ type: 'object', properties: members });

test.each([
  ['no token', annotated({ a: { type: 'string', 'x-mcp-header': 'a b' } })],
  ['empty', annotated({ a: { type: 'string', 'x-mcp-header': '' } })],
  ['no text', annotated({ a: { type: 'string', 'x-mcp-header': 1 } })],
  ['on a number', annotated({ a: { type: 'number', 'x-mcp-header': 'A' } })],
  ['on an object', annotated({ a: { type: 'object', 'x-mcp-header': 'A' } })],
  [
    'there twice',
    annotated({
      a: { type: 'string', 'x-mcp-header': 'A' },
      b: { type: 'string', 'x-mcp-header': 'a' },
    }),
  ],
  [
    'in a list',
    annotated({ a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } }),
  ],
])('§2.4 tool: x-mcp-header that is %s is refused at its definition', (_how, inputSchema) => {
  const define = () =>
    defineTool({
      name: 'bad',
      description: '',
      inputSchema,
      run: () => ({ content: [] }),
    } as never);
  expect(define).toThrow(DefinitionError);
  expect(define).toThrow('Tool bad: inputSchema: x-mcp-header');
});

test('§2.4 tool: a member may be called x-mcp-header', () => {
  const tool = defineTool({
    name: 'good',
    description: '',
    inputSchema: { type: 'object', properties: { 'x-mcp-header': { type: 'string' } } },
    run: () => ({ content: [] }),
  });
  expect(tool.mirroredParams).toEqual([]);
});
