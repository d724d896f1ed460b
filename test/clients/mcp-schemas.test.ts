// The schemas that the other tests hold answers against: they are the published ones, and they bite.
import { beforeAll, expect, test } from 'vitest';
import { loadMcpSchemas, type McpSchemas } from '../support/clients/mcp-schemas.ts';
import { INSTALLATION_MS, installConformance } from '../support/tools/conformance.ts';

const SESSION_ERA = ['2025-03-26', '2025-06-18', '2025-11-25'] as const;
const STATELESS = '2026-07-28';
const TOOL = { name: 'echo', inputSchema: { type: 'object' } };
const CACHEABLE = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
const PROGRESS = {
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: 'a', progress: 50, total: 100 },
};
const QUESTION = {
  method: 'elicitation/create',
  params: {
    message: 'How far?',
    requestedSchema: {
      type: 'object',
      properties: { metres: { type: 'number', default: 95.5 } },
    },
  },
};

let schemas: McpSchemas;

beforeAll(async () => {
  schemas = await loadMcpSchemas(await installConformance());
}, INSTALLATION_MS);

const respond = (result: unknown) => ({ jsonrpc: '2.0', id: 1, result });
const refuse = (code: number, data?: unknown) => ({
  jsonrpc: '2.0',
  id: 1,
  error: { code, message: 'No.', ...(data === undefined ? {} : { data }) },
});

test.each(
  SESSION_ERA.flatMap((revision) => [
    [revision, 'tools/list', { tools: [TOOL] }],
    [revision, 'ping', {}],
    [
      revision,
      'initialize',
      {
        protocolVersion: revision,
        capabilities: { tools: {} },
        serverInfo: { name: 'postern', version: '1' },
      },
    ],
  ]),
)('§4.4 schemas: in %s a good answer to %s passes', (revision, method, result) => {
  expect(schemas.responseProblems(revision, method, respond(result))).toEqual([]);
});

test.each([
  ['tools/list', { ...CACHEABLE, tools: [TOOL] }],
  ['server/discover', { ...CACHEABLE, supportedVersions: [STATELESS], capabilities: {} }],
  ['tools/call', { resultType: 'complete', content: [{ type: 'text', text: 'Hi.' }] }],
  ['tools/call', { resultType: 'input_required', inputRequests: { far: QUESTION } }],
])('§4.4 schemas: in 2026-07-28 a good answer to %s passes', (method, result) => {
  expect(schemas.responseProblems(STATELESS, method, respond(result))).toEqual([]);
});

test.each([
  ['2025-03-26', 'tools/list', { tools: [{ name: 'echo' }] }, 'ListToolsResult/tools/0'],
  ['2025-06-18', 'tools/list', { tools: 'echo' }, 'ListToolsResult/tools'],
  ['2025-11-25', 'tools/call', { content: [{ type: 'text' }] }, 'CallToolResult/content/0'],
  [STATELESS, 'tools/list', { ...CACHEABLE, ttlMs: -1, tools: [] }, 'ListToolsResult/ttlMs'],
  [STATELESS, 'tools/list', { resultType: 'input_required' }, 'must not ask for input'],
  [STATELESS, 'tools/call', { resultType: 'done', content: [] }, 'CallToolResult/resultType'],
  [STATELESS, 'ping', { resultType: 'complete' }, 'no method ping'],
  ['2025-11-25', 'server/discover', {}, 'no method server/discover'],
])('§4.4 schemas: in %s a broken answer to %s is told by its member', (...row) => {
  const [revision, method, result, told] = row;
  const problems = schemas.responseProblems(revision, method, respond(result));
  expect(problems).toContainEqual(expect.stringContaining(told));
});

test('§4.4 schemas: an error is held against what the revision says of its code', () => {
  const requested = { supported: [STATELESS], requested: 'v999.0.0' };
  const of = (message: unknown) => schemas.responseProblems(STATELESS, 'tools/list', message);
  expect(of(refuse(-32_022, requested))).toEqual([]);
  expect(of(refuse(-32_601))).toEqual([]);
  expect(of(refuse(-32_022, { supported: [STATELESS] }))).toEqual([
    expect.stringContaining('UnsupportedProtocolVersionError/error/data: must have required'),
  ]);
  expect(of({ jsonrpc: '2.0', id: 1, error: { code: -32_601 } })).toEqual([
    expect.stringContaining("must have required property 'message'"),
  ]);
  expect(of({ ...refuse(-32_601), result: {} })).toHaveLength(1);
  expect(of([])).toHaveLength(1);
});

test.each([...SESSION_ERA, STATELESS])('§4.4 schemas: %s knows a progress notification', (name) => {
  expect(schemas.messageProblems(name, PROGRESS)).toEqual([]);
  const { jsonrpc: _, ...bare } = PROGRESS;
  expect(schemas.messageProblems(name, bare)).toContainEqual(expect.stringContaining("'jsonrpc'"));
  const broken = { ...PROGRESS, params: { progressToken: 'a' } };
  expect(schemas.messageProblems(name, broken)).toContainEqual(
    expect.stringContaining("must have required property 'progress'"),
  );
});

test('§4.4 schemas: a server asks in the session era only, since 2025-06-18 for input too', () => {
  const asked = { jsonrpc: '2.0', id: 7, ...QUESTION };
  expect(schemas.messageProblems('2025-11-25', asked)).toEqual([]);
  expect(schemas.messageProblems('2025-03-26', asked)).toHaveLength(1);
  expect(schemas.messageProblems(STATELESS, asked)).toHaveLength(1);
  const roots = { jsonrpc: '2.0', id: 'r', method: 'roots/list' };
  for (const name of SESSION_ERA) expect(schemas.messageProblems(name, roots)).toEqual([]);
});

test('§4.4 schemas: one definition can be asked for by its name', () => {
  expect(schemas.problems('2025-06-18', 'Tool', TOOL)).toEqual([]);
  expect(schemas.problems('2025-06-18', 'Tool', {})).toHaveLength(2);
  expect(() => schemas.problems('2025-06-18', 'Toll', TOOL)).toThrow('defines no Toll');
});

test('§4.4 schemas: a revision without a schema is refused', () => {
  expect(() => schemas.problems('0.1.0', 'Tool', TOOL)).toThrow('no MCP revision 0.1.0');
  expect(() => schemas.problems('2024-11-05', 'Tool', TOOL)).toThrow('no schema of 2024-11-05');
});
