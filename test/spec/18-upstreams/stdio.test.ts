// §18.3: servers on stdio, by the processes that they are.
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { GATEWAY_CALLER, UpstreamError } from '../../../src/mcp/upstream/upstream.ts';
import {
  callTool,
  scripted,
  supportFile,
  textOf,
  toCall,
  toCaller,
  toRequest,
  useStdio,
} from '../../support/upstreams/stdio.ts';

const node = (name: string) => ({ command: process.execPath, args: [supportFile(name)] });

/** A server of npm, with arguments of its own. */
const official = (name: string, ...args: readonly string[]) => ({
  command: process.execPath,
  args: [
    fileURLToPath(
      new URL(
        `node_modules/@modelcontextprotocol/${name}/dist/index.js`,
        new URL('../../../', import.meta.url),
      ),
    ),
    ...args,
  ],
});

test.each([
  ['without a package', scripted(), 'session', '2025-11-25', 'scripted'],
  ['of 2024-11-05', scripted('old'), 'session', '2024-11-05', 'scripted'],
  [
    'that ends by server/discover',
    scripted('dies-of-discover'),
    'session',
    '2025-11-25',
    'scripted',
  ],
  ['of SDK 1.x', node('sdk-1-server.mjs'), 'session', '2025-11-25', 'sdk-1'],
  ['of SDK 2.x', node('sdk-2-server.mjs'), 'stateless', '2026-07-28', 'sdk-2'],
  ['everything', official('server-everything'), 'session', '2025-11-25', 'mcp-servers/everything'],
  ['memory', official('server-memory'), 'session', '2025-11-25', 'memory-server'],
  [
    'filesystem',
    official('server-filesystem', '/'),
    'session',
    '2025-11-25',
    'secure-filesystem-server',
  ],
])(
  '§18.3 stdio: a server %s is spoken to in its era',
  async (_name, config, era, version, name) => {
    const { upstream, counts } = useStdio(config);
    const description = await upstream.describe(GATEWAY_CALLER);
    expect(description).toMatchObject({ era, protocolVersion: version, serverInfo: { name } });
    expect(description.capabilities).toHaveProperty('tools');
    const { tools } = await upstream.request(GATEWAY_CALLER, toRequest('tools/list'));
    expect(tools).toContainEqual(expect.objectContaining({ inputSchema: expect.anything() }));
    await upstream.close(1000);
    expect(counts.at(-1)).toBe(0);
  },
);

test('§18.3 stdio: what a server says of itself is passed on as it wrote it', async () => {
  const { upstream } = useStdio();
  expect(await upstream.describe(GATEWAY_CALLER)).toEqual({
    era: 'session',
    protocolVersion: '2025-11-25',
    capabilities: {
      tools: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      prompts: {},
      logging: {},
    },
    serverInfo: { name: 'scripted', version: '1.2.3', extra: true },
    instructions: 'Ask for what you need.',
  });
});

test.each([['sdk-1-server.mjs'], ['sdk-2-server.mjs']])(
  '§18.3 stdio: a tool of %s answers',
  async (name) => {
    const { upstream } = useStdio(node(name));
    const result = await upstream.request(GATEWAY_CALLER, toCall('add', { a: 2, b: 3 }));
    expect(textOf(result)).toBe('5');
  },
);

test('§18.3 stdio: users share one process, and each gets the own answers', async () => {
  const stdio = useStdio();
  const calls = Array.from({ length: 200 }, (_, index) =>
    callTool(stdio, 'echo', { value: `value ${index}` }, { caller: toCaller(`user-${index % 8}`) }),
  );
  expect(await Promise.all(calls)).toEqual(calls.map((_, index) => `value ${index}`));
  expect(stdio.counts).toEqual([1]);
});

test('§18.3 stdio: an error of the server is passed on with its code and data', async () => {
  const { upstream } = useStdio();
  const failed = upstream.request(GATEWAY_CALLER, toRequest('prompts/get', { name: 'none' }));
  await expect(failed).rejects.toThrow(UpstreamError);
  await expect(failed).rejects.toMatchObject({
    failure: 'error',
    jsonRpcError: { code: -32601, message: 'Method not found', data: { kept: true } },
  });
});

test('§18.3 stdio: a server learns progress token, trace and what the client added, under tokens of the gateway', async () => {
  const stdio = useStdio();
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const request = toRequest(
    'tools/call',
    { name: 'meta', _meta: { own: 1, progressToken: 'theirs' } },
    {
      trace: { traceparent },
      onProgress() {},
    },
  );
  const meta = JSON.parse(textOf(await stdio.upstream.request(GATEWAY_CALLER, request)));
  expect(meta).toEqual({ own: 1, traceparent, progressToken: expect.any(Number) });
});

test('§18.3 stdio: progress reaches the call that it belongs to', async () => {
  const stdio = useStdio();
  const seen: unknown[][] = [[], []];
  await Promise.all(
    seen.map((list, index) =>
      callTool(
        stdio,
        'progress',
        { count: index + 2 },
        {
          onProgress: ({ progress, total }) => void list.push([progress, total]),
        },
      ),
    ),
  );
  expect(seen).toEqual([
    [
      [1, 2],
      [2, 2],
    ],
    [
      [1, 3],
      [2, 3],
      [3, 3],
    ],
  ]);
});
