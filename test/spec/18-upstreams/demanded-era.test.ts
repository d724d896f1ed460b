// `era` of a server: how it is spoken to where it could be both ways, and what is said where it cannot.
import { expect, test } from 'vitest';
import { GATEWAY_CALLER } from '../../../src/mcp/upstream/upstream.ts';
import { startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import { findServerProblems } from '../../support/upstreams/gateway-file.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';
import { scripted, supportFile, textOf, toCall, useStdio } from '../../support/upstreams/stdio.ts';

const DISCOVERED = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: {} },
};
const BOTH = {
  tools: [buildTool('search')],
  answers: { 'server/discover': () => ({ result: DISCOVERED }) },
};
const REFUSED = { error: { code: -32601, message: 'Method not found' } };

type Gateway = Awaited<ReturnType<typeof start>>;

async function callSearch(gateway: Gateway) {
  const session = await gateway.open();
  const { json } = await gateway.call(session, 'tools/call', { name: 'a__search' });
  return json.result?.content[0].text ?? json.error.message;
}

test.each([
  { era: undefined, spoken: 'stateless' },
  { era: 'auto', spoken: 'stateless' },
  { era: 'stateless', spoken: 'stateless' },
  { era: 'session', spoken: 'session' },
])(
  '§18.3 a server of both eras with "era": $era is spoken to in the $spoken era',
  async ({ era, spoken }) => {
    const server = await serve(BOTH);
    const gateway = await start({ file: { mcpServers: { a: { url: server.url, era } } } });
    expect(await callSearch(gateway)).toBe('ran search');
    const began = ['initialize', 'server/discover'].map((method) => server.count(method) > 0);
    expect(began).toEqual(spoken === 'session' ? [true, false] : [false, true]);
  },
);

test('§18.3 a change of "era" is loaded like any other', async () => {
  const server = await serve(BOTH);
  const gateway = await start({ file: { mcpServers: { a: server.url } } });
  expect(await callSearch(gateway)).toBe('ran search');
  await gateway.reload({ mcpServers: { a: { url: server.url, era: 'session' } } });
  expect(await callSearch(gateway)).toBe('ran search');
  expect(server.count('initialize')).toBeGreaterThan(0);
});

test.each([
  {
    era: 'stateless',
    listing: { tools: BOTH.tools },
    says: /it does not speak MCP 2026-07-28, which "era": "stateless" demands/,
  },
  {
    era: 'session',
    listing: { ...BOTH, answers: { ...BOTH.answers, initialize: () => REFUSED } },
    says: /it refuses to begin a session \(initialize\), which "era": "session" demands/,
  },
])(
  '§18.3 a server that does not speak the demanded $era era is down, and the log says why',
  async ({ era, listing, says }) => {
    const server = await serve(listing);
    const gateway = await start({ file: { mcpServers: { a: { url: server.url, era } } } });
    expect(await callSearch(gateway)).toMatch(says);
    expect(gateway.log.filter(({ msg }) => says.test(msg))).toHaveLength(1);
    expect(server.count('tools/call')).toBe(0);
  },
);

test('§18.3 a server for users with "era": "session" that goes away is down, and comes back', async () => {
  const server = await serve(BOTH);
  const auth = { type: 'identity' };
  const gateway = await start({
    file: { mcpServers: { a: { url: server.url, auth, era: 'session' } } },
  });
  expect(await callSearch(gateway)).toBe('ran search');
  await server.close();
  expect(await callSearch(gateway)).toContain('a is not available now');
  await serve(BOTH, server.port);
  await expect.poll(() => callSearch(gateway), { timeout: 20_000 }).toBe('ran search');
});

test.each(['session', 'stateless'] as const)(
  '§18.3 stdio: a program of both eras with "era": "%s" is spoken to in that era',
  async (era) => {
    const { upstream } = useStdio({ args: [supportFile('sdk-2-server.mjs')], era });
    expect((await upstream.describe(GATEWAY_CALLER)).era).toBe(era);
    const called = upstream.request(GATEWAY_CALLER, toCall('add', { a: 1, b: 2 }));
    expect(textOf(await called)).toBe('3');
  },
);

test('§18.3 stdio: a program that does not speak the demanded era is down, and the log says why', async () => {
  const { lines } = useStdio({ ...scripted(), era: 'stateless' });
  const says = /it does not speak MCP 2026-07-28, which "era": "stateless" demands/;
  await expect.poll(() => lines.some(({ msg }) => says.test(msg)), { timeout: 20_000 }).toBe(true);
});

test('§18.1 "era" has three values, and HTTP+SSE has sessions always', async () => {
  const url = 'https://a.example/mcp';
  expect(await findServerProblems({ url, era: 'both' })).toEqual([
    expect.stringMatching(/^era: "both" is not valid\. .*auto.*session.*stateless/),
  ]);
  expect(await findServerProblems({ url, type: 'sse', era: 'stateless' })).toEqual([
    'era: "sse" has sessions always. Remove "era", or the type.',
  ]);
  expect(await findServerProblems({ url, type: 'sse', era: 'session' })).toEqual([]);
});
