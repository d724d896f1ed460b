// Long answers of an HTTP+SSE server that arrive in the same bytes as others. The memory of an answer is freed once it was sent.
import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { listenOnLoopback } from '../../support/upstreams/listen.ts';

const RESULTS: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'raw', version: '1' },
  },
  'tools/list': { tools: [{ name: 'any', inputSchema: { type: 'object' } }] },
};

const LINK = { type: 'resource_link', uri: 'a:b', name: 'l' };

test.each([
  ['most of them', 40_000, [], 20_000],
  ['the smaller part', 20_000, [], 40_000],
  ['the smaller part, with a link', 20_000, [LINK], 40_000],
])(
  '§18.3 results: one that is sent first, %s, takes nothing of the other',
  async (_what, length, content, begun) => {
    let stream: ServerResponse | undefined;
    const calls: number[] = [];
    const respond = (id: number, result: object) =>
      `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`;
    const server = closeAfterTest(
      await listenOnLoopback(async (req, res) => {
        if (req.method === 'GET') {
          stream = res.writeHead(200, { 'content-type': 'text/event-stream' });
          stream.write('event: endpoint\ndata: /post\n\n');
          return;
        }
        const { id, method } = JSON.parse(await text(req));
        res.writeHead(202).end();
        if (method === 'tools/call') calls.push(id);
        else if (id !== undefined) stream?.write(respond(id, RESULTS[method] ?? {}));
      }),
    );
    const file = { mcpServers: { one: { url: server.url, type: 'sse' } } };
    const gateway = await startForTest({ file });
    const session = await gateway.open();
    // Over a connection: only its write says when a reply was sent.
    const port = await gateway.listen();
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${await gateway.issuer.sign()}`,
      'mcp-session-id': session,
    };
    const call = async (id: string) => {
      const params = { name: 'one__any', arguments: {} };
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
      const reply = await fetch(`http://127.0.0.1:${port}/mcp`, { method: 'POST', headers, body });
      return JSON.parse(await reply.text());
    };
    const createResult = (letter: string, size: number, more: readonly object[]) => ({
      content: [{ type: 'text', text: letter.repeat(size) }, ...more],
    });

    const first = call('first');
    await expect.poll(() => calls.length).toBe(1);
    const second = call('second');
    await expect.poll(() => calls.length).toBe(2);
    const [one = 0, other = 0] = calls;
    const rest = respond(other, createResult('b', 100_000, []));
    stream?.write(respond(one, createResult('a', length, content)) + rest.slice(0, begun));
    expect((await first).result).toEqual(createResult('a', length, content));
    stream?.write(rest.slice(begun));
    expect((await second).result).toEqual(createResult('b', 100_000, []));
  },
);
