// A call that was sent and then lost may have been done, and must not be repeated blindly; one that was not sent may.
import { expect, test } from 'vitest';
import type { JsonObject } from '../../../src/platform/json.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { callTool, stateless } from '../../support/clients/stateless.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { serveSse } from '../../support/upstreams/listing-sse.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';
import {
  type Respond,
  type ScriptedHttp,
  sendJson,
  startScriptedHttp,
  toResult,
} from '../../support/upstreams/scripted-http.ts';
import { scripted } from '../../support/upstreams/stdio-calls.ts';

const CHECK_FIRST = 'The call may have been done: check before you repeat it.';
const TRY_AGAIN = 'try again in a moment';

const OBJECT = { type: 'object' };
const LISTS: Readonly<Record<string, JsonObject>> = {
  'tools/list': {
    tools: [
      { name: 'do', inputSchema: OBJECT },
      { name: 'read', inputSchema: OBJECT, annotations: { readOnlyHint: true } },
      { name: 'put', inputSchema: OBJECT, annotations: { idempotentHint: true } },
    ],
  },
  'prompts/list': { prompts: [{ name: 'plain' }] },
};

async function serveHttp(era: 'session' | 'stateless', respond: Respond): Promise<ScriptedHttp> {
  const server = closeAfterTest(await startScriptedHttp(era));
  for (const [method, result] of Object.entries(LISTS))
    server.answer(method, (res, request) => sendJson(res, toResult(request, result)));
  for (const method of ['tools/call', 'prompts/get']) server.answer(method, respond);
  return server;
}

const startWith = async (server: string | object) => {
  const gateway = closeAfterTest(await startRelayGateway({ servers: { s: server } }));
  const listed = await stateless(gateway, 'tools/list');
  expect(listed.json.result.tools).not.toEqual([]);
  return gateway;
};

type Gateway = Awaited<ReturnType<typeof startWith>>;

/** The text of the error result, as clients of either era get it. */
const CLIENTS: Readonly<Record<string, (gateway: Gateway, name: string) => Promise<string>>> = {
  stateless: async (gateway, name) => readError((await callTool(gateway, name)).json.result),
  session: async (gateway, name) =>
    readError((await (await openClient(gateway)).ask('tools/call', { name })).result),
};

const readError = (result: { isError?: boolean; content: readonly { text: string }[] }): string => {
  expect(result.isError).toBe(true);
  return result.content[0]?.text ?? '';
};

const hangUp: Respond = (res) => void res.destroy();

const LOST: readonly {
  readonly how: string;
  readonly says: string;
  readonly tool?: string;
  start(): Promise<string | object>;
}[] = [
  {
    how: 'program that ends',
    says: 'gave no answer: its process ended with exit code 1',
    tool: 's__exit',
    start: async () => scripted(),
  },
  {
    how: 'HTTP server (session era) that closes the connection',
    says: 'gave no answer: it closed the connection',
    start: async () => (await serveHttp('session', hangUp)).url,
  },
  {
    how: 'HTTP server (stateless era) that closes the connection',
    says: 'gave no answer: it closed the connection',
    start: async () => (await serveHttp('stateless', hangUp)).url,
  },
  {
    how: 'HTTP server that fails with 500',
    says: 'gave no answer: it fails (500)',
    start: async () => (await serveHttp('stateless', (res) => sendJson(res, {}, 500))).url,
  },
  {
    how: 'HTTP server behind a proxy that waited in vain (504)',
    says: 'gave no answer: it fails (504)',
    start: async () => (await serveHttp('stateless', (res) => sendJson(res, {}, 504))).url,
  },
  {
    how: 'HTTP server behind a proxy that lost it (503)',
    says: 'gave no answer: ',
    start: async () => (await serveHttp('stateless', (res) => sendJson(res, {}, 503))).url,
  },
  {
    how: 'HTTP server that redirects to its result (303)',
    says: 'gave no answer: ',
    start: async () =>
      (await serveHttp('stateless', (res) => res.writeHead(303, { location: '/result' }).end()))
        .url,
  },
  {
    how: 'HTTP server that ends during it, and refuses the gateway afterwards',
    says: 'gave no answer: ',
    async start() {
      const server = await serveHttp('session', (res) => {
        server.answer('ping', (later) => sendJson(later, {}, 404));
        server.answer('initialize', (later) => sendJson(later, {}, 403));
        sendJson(res, {}, 502);
      });
      return server.url;
    },
  },
  {
    how: 'HTTP server whose answer is no MCP',
    says: 'gave no valid answer: it answered what is no JSON',
    start: async () => (await serveHttp('stateless', (res) => sendJson(res, '{'))).url,
  },
  {
    how: 'HTTP+SSE server that ends its stream',
    says: 'gave no answer: it ended its stream',
    start: async () => {
      const { url } = await serveSse({
        tools: [{ name: 'do', inputSchema: OBJECT }],
        describe: () => ({ capabilities: { tools: {} } }),
        onCall: (stream) => stream.end(),
      });
      return { url, type: 'sse' };
    },
  },
];

const ROWS = LOST.flatMap((row) => Object.keys(CLIENTS).map((client) => ({ ...row, client })));

test.each(ROWS)(
  '§18.4 a call to a $how may have been done, as its client ($client) reads',
  async ({ says, tool = 's__do', start, client }) => {
    const gateway = await startWith(await start());
    const text = (await CLIENTS[client]?.(gateway, tool)) ?? '';
    expect(text).toContain(says);
    expect(text.endsWith(CHECK_FIRST)).toBe(true);
    expect(text.toLowerCase()).not.toContain(TRY_AGAIN);
  },
);

test.each([404, 429, 413])(
  '§18.4 a call that its server did not take (%i) was not done: its client may try again',
  async (status) => {
    const server = await serveHttp('stateless', (res) => sendJson(res, {}, status));
    const text = await CLIENTS.stateless?.(await startWith(server.url), 's__do');
    expect(text).toContain(TRY_AGAIN);
    expect(text).not.toContain(CHECK_FIRST);
  },
);

test.each<{ what: string; respond: Respond }>([
  { what: 'closes the connection', respond: hangUp },
  { what: 'fails', respond: (res) => sendJson(res, {}, 500) },
  { what: 'answers no MCP', respond: (res) => sendJson(res, '{') },
])(
  '§18.4 a server that $what before the call, at its handshake, did not get it: its client may try again',
  async ({ respond }) => {
    const server = await serveHttp('session', (res, request) =>
      sendJson(res, toResult(request, { content: [] })),
    );
    const gateway = await startWith(server.url);
    server.answer('initialize', respond);
    const text = await CLIENTS.session?.(gateway, 's__do');
    expect(text).toMatch(/^s is not available now; try again in a moment/);
    expect(server.count('tools/call')).toBe(0);
  },
);

test.each(['read', 'put'])(
  '§18.4 a call of a tool that may run twice (%s) may be repeated',
  async (name) => {
    const server = await serveHttp('stateless', hangUp);
    const text = await CLIENTS.stateless?.(await startWith(server.url), `s__${name}`);
    expect(text).toBe('s gave no answer: it closed the connection. Try again in a moment.');
  },
);

test('§18.4 a prompt may be fetched again, as the JSON-RPC error says', async () => {
  const server = await serveHttp('stateless', hangUp);
  const described = { supportedVersions: ['2026-07-28'], capabilities: { prompts: {}, tools: {} } };
  server.answer('server/discover', (res, request) => sendJson(res, toResult(request, described)));
  const gateway = await startWith(server.url);
  const { json } = await stateless(gateway, 'prompts/get', { name: 's__plain' });
  expect(json.error).toEqual({
    code: -32603,
    message: 's gave no answer: it closed the connection. Try again in a moment.',
  });
});

test('§18.6 HTTP+SSE: a call that could not be posted was not sent, and others before it may have been done', async () => {
  const calls: string[] = [];
  const server = await serveSse({
    tools: [{ name: 'do', inputSchema: OBJECT }],
    describe: () => ({ capabilities: { tools: {} } }),
    refuse: ({ params }) => (params?.arguments?.n === 2 ? 404 : undefined),
    onCall: (_stream, { params }) => void calls.push(String(params?.arguments?.n)),
  });
  const gateway = await startWith({ url: server.url, type: 'sse' });
  const call = async (n: number) =>
    (await stateless(gateway, 'tools/call', { name: 's__do', arguments: { n } })).json.result
      .content[0].text;
  const first = call(1);
  await expect.poll(() => calls).toEqual(['1']);
  expect(await call(2)).toContain(TRY_AGAIN);
  expect(await first).toContain(CHECK_FIRST);
});
