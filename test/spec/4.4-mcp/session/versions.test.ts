// Every revision of the session era is served the same way; what a client asks for decides.
import { describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../../src/index.ts';
import { openEvents } from '../../../support/clients/event-stream.ts';
import { openClient } from '../../../support/clients/session-client.ts';
import { INITIALIZE_REQUEST } from '../../../support/gateway/gateway.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const catalog = createLocalCatalog({
  logging: true,
  tools: [
    defineTool({
      name: 'tells',
      description: 'Says one thing.',
      inputSchema: { type: 'object' },
      run(_args, { log, progress }) {
        log('info', 'told');
        progress(1);
        return { content: [] };
      },
    }),
  ],
});

const VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '0.1.0'];

const gateway = useGateway({ env: { MCP_STREAMS: 'true' }, deps: { catalog } });

describe('revisions of sessions', () => {
  test.each([
    ...VERSIONS.map((asked) => ({ asked, answered: asked })),
    ...['2026-07-28', '2025-11-26', '1999-01-01', '', 'draft'].map((asked) => ({
      asked,
      answered: '2025-11-25',
    })),
  ])('§9 initialize with "$asked" opens a session of $answered', async ({ asked, answered }) => {
    const params = { ...INITIALIZE_REQUEST.params, protocolVersion: asked };
    const { status, headers, json } = await gateway.rpc({ ...INITIALIZE_REQUEST, params });
    expect(status).toBe(200);
    expect(headers['mcp-session-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect(json.result).toMatchObject({
      protocolVersion: answered,
      capabilities: { tools: {}, logging: {} },
    });
  });

  test.each(VERSIONS)('§9 a session of %s gets plain answers, and streams', async (version) => {
    const client = await openClient(gateway, { protocolVersion: version });
    expect(await client.ask('ping')).toEqual({ jsonrpc: '2.0', result: {}, id: 1 });
    const answer = await client.call(
      'tells',
      {},
      { progressToken: 1, headers: { 'mcp-protocol-version': version } },
    );
    expect((await answer.rest()).map(({ method }) => method)).toEqual([
      'notifications/message',
      'notifications/progress',
      undefined,
    ]);
    const stream = await client.watch({ 'mcp-protocol-version': version });
    expect(stream.status).toBe(200);
    expect(await client.end()).toBe(204);
    expect(await stream.rest()).toEqual([]);
  });

  test.each(
    ['1999-01-01', '2025-11-25x', 'draft', 'toString'].flatMap((version) =>
      ['GET', 'POST'].map((method) => ({ method, version })),
    ),
  )('§7.2 $method with MCP-Protocol-Version $version is 400', async ({ method, version }) => {
    const { session, token } = await openClient(gateway);
    const answer = await openEvents({
      port: await gateway.listen(),
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'mcp-session-id': session,
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': version,
      },
      ...(method === 'POST' && { body: { jsonrpc: '2.0', id: 1, method: 'ping' } }),
    });
    if (answer.isStream) answer.hangUp();
    expect(answer.status).toBe(400);
    expect(JSON.parse(await answer.text())).toMatchObject({
      error: { code: -32000, data: { reason: 'unsupported_protocol_version' } },
    });
  });
});
