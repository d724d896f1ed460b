// §21.1: with AUDIT_REQUIRED a call has two lines or none: one that says that it starts, one how it ended.
import { expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import type { Catalog } from '../../../src/mcp/catalog/catalog.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { createAuditLog } from '../../support/gateway/audit-log.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest } from '../../support/upstreams/listing-server.ts';

const catalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'works',
      description: '',
      inputSchema: { type: 'object' },
      run: () => ({ content: [] }),
    }),
  ],
});

async function openRequired() {
  const audit = await createAuditLog();
  const env = { ...audit.env, AUDIT_REQUIRED: 'true' };
  const listEnds = () => audit.lines().map(({ outcome, reason }) => [outcome, reason]);
  return { env, listEnds };
}

test.each<{ what: string; params: object }>([
  { what: 'arguments that are no object', params: { name: 'works', arguments: 'x' } },
  { what: 'a name that is no text', params: { name: 7 } },
  {
    what: 'a progressToken that is too long',
    params: { name: 'works', _meta: { progressToken: 'x'.repeat(300) } },
  },
])('§21.1 a call that is refused for $what has started', async ({ params }) => {
  const { env, listEnds } = await openRequired();
  const gateway = closeAfterTest(await startGateway({ env, deps: { catalog } }));
  const { json } = await gateway.call(await gateway.open(), 'tools/call', params);
  expect(json.error.code).toBe(-32602);
  expect(listEnds()).toEqual([
    ['started', undefined],
    ['failure', 'invalid_params'],
  ]);
});

test('§21.1 a call that is refused for its headers has started', async () => {
  const { env, listEnds } = await openRequired();
  const region = { type: 'string', 'x-mcp-header': 'Region' };
  const inputSchema = { type: 'object', properties: { region } };
  const server = await serveForTest({ tools: [buildTool('read', { inputSchema })] });
  const gateway = await startForTest({ file: { mcpServers: { wiki: server.url } }, env });
  await gateway.listNames('tools/list');
  const call = { name: 'wiki__read', arguments: { region: 'eu' } };
  expect((await stateless(gateway, 'tools/call', call)).status).toBe(400);
  expect(listEnds()).toEqual([
    ['started', undefined],
    ['failure', 'header_mismatch'],
  ]);
});

test('§21.1 a call that rules deny writes no line while none can be written', async () => {
  const server = await serveForTest({ tools: [buildTool('read'), buildTool('admin')] });
  const gateway = await startForTest({
    file: {
      mcpServers: { wiki: server.url },
      rules: [{ who: 'everyone', may: ['wiki__read'] }],
    },
    env: { AUDIT_LOG: 'file:/dev/full', AUDIT_REQUIRED: 'true' },
  });
  const session = await gateway.open();
  await gateway.listNames('tools/list', session);
  const count = () =>
    seriesOf(gateway, 'audit_lines_total', { event: 'tool_call', status: 'error' });
  for (const [index, name] of ['wiki__read', 'wiki__admin'].entries()) {
    const { status } = await gateway.call(session, 'tools/call', { name, arguments: {} });
    expect(status).toBe(503);
    // Its first line, and no last one.
    expect(await count()).toBe(index + 1);
  }
});

test('§21.1 a call that rules deny is denied, though nobody can say what else there is', async () => {
  const { env, listEnds } = await openRequired();
  const server = await serveForTest({ tools: [buildTool('read'), buildTool('admin')] });
  const failing: Catalog = {
    ...catalog,
    async listTools() {
      throw new Error('the database is down');
    },
  };
  const gateway = await startForTest({
    file: {
      mcpServers: { wiki: server.url },
      rules: [{ who: 'everyone', may: ['wiki__read'] }],
    },
    builtIn: failing,
    env,
  });
  const { json } = await gateway.call(await gateway.open(), 'tools/call', {
    name: 'wiki__admin',
    arguments: {},
  });
  expect(json.error).toMatchObject({ code: -32602 });
  expect(listEnds()).toEqual([
    ['started', undefined],
    ['denied', 'rules'],
  ]);
});
