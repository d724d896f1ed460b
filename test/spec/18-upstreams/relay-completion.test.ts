// §18.3: a completion asks nobody: MCP 2026-07-28 lets tools, prompts and resources ask, and nothing else.
import { expect, test } from 'vitest';
import type { JsonObject } from '../../../src/platform/json.ts';
import { ASKABLE, stateless } from '../../support/clients/stateless.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { listenOnLoopback } from '../../support/upstreams/listen.ts';

const RESULTS: Readonly<Record<string, JsonObject>> = {
  'server/discover': {
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { prompts: {}, completions: {} },
    _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'x', version: '1' } },
  },
  'prompts/list': {
    resultType: 'complete',
    prompts: [{ name: 'one' }, { name: 'two' }],
    ttlMs: 1_000,
    cacheScope: 'public',
  },
  'completion/complete': {
    resultType: 'input_required',
    inputRequests: {
      q: {
        method: 'elicitation/create',
        params: { message: 'Password?', requestedSchema: { type: 'object', properties: {} } },
      },
    },
    requestState: 'of the server',
  },
};

test('§18.3 a server that asks in a completion is refused', async () => {
  const { url } = closeAfterTest(
    await listenOnLoopback(async (request, response) => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part);
      const { id, method } =
        request.method === 'POST' ? JSON.parse(Buffer.concat(parts).toString()) : {};
      const result = RESULTS[method];
      response.writeHead(result ? 200 : 405, { 'content-type': 'application/json' });
      response.end(result && JSON.stringify({ jsonrpc: '2.0', id, result }));
    }),
  );
  const gateway = await startForTest({ file: { mcpServers: { x: { url } } } });
  const params = {
    ref: { type: 'ref/prompt', name: 'x__one' },
    argument: { name: 'a', value: '' },
  };
  const { json } = await stateless(gateway, 'completion/complete', params, { meta: ASKABLE });
  expect(json.result).toBeUndefined();
  expect(json.error).toMatchObject({ code: -32603, message: expect.stringMatching(/asks/) });
});
