// §26: a guard that refuses all lets nothing pass, by whatever way it comes.
import { expect, test } from 'vitest';
import { createLocalCatalog, defineTool, elicit, sample, ToolError } from '../../../src/index.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { ASKABLE, LOG_LEVEL, stateless } from '../../support/clients/stateless.ts';
import { ALL_POINTS, writeGuard } from '../../support/guards/module-guard.ts';
import {
  CLIENT_MARK,
  SERVER_MARK,
  startSpeakingServer,
} from '../../support/guards/speaking-server.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import {
  sendJson,
  startScriptedHttp,
  toError,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const said = () => ({ content: [{ type: 'text' as const, text: SERVER_MARK }] });
const NO_INPUT = { type: 'object', properties: {}, additionalProperties: true } as const;

/** Of an author: what he says is looked at as well. */
const builtIn = createLocalCatalog({
  instructions: `${SERVER_MARK} of an author`,
  logging: true,
  tools: [
    defineTool({
      name: 'own-say',
      description: SERVER_MARK,
      inputSchema: NO_INPUT,
      run: said,
    }),
    defineTool({
      name: 'own-fail',
      description: SERVER_MARK,
      inputSchema: NO_INPUT,
      run() {
        throw new ToolError(SERVER_MARK);
      },
    }),
    defineTool({
      name: 'own-tell',
      description: SERVER_MARK,
      inputSchema: NO_INPUT,
      run(_args, { log, progress }) {
        log('error', SERVER_MARK);
        progress(1, 1, SERVER_MARK);
        return { content: [] };
      },
    }),
    defineTool({
      name: 'own-elicit',
      description: SERVER_MARK,
      inputSchema: NO_INPUT,
      async run(_args, { ask }) {
        const schema = { type: 'object', properties: { name: { type: 'string' } } } as const;
        const answers = await ask({ it: elicit(SERVER_MARK, schema) });
        return { content: [{ type: 'text', text: JSON.stringify(answers) }] };
      },
    }),
    defineTool({
      name: 'own-sample',
      description: SERVER_MARK,
      inputSchema: NO_INPUT,
      async run(_args, { ask }) {
        const messages = [{ role: 'user', content: { type: 'text', text: SERVER_MARK } }] as const;
        await ask({ it: sample({ messages, maxTokens: 1 }) });
        return { content: [] };
      },
    }),
  ],
});

const server = useShared(startSpeakingServer);

const TOOLS = ['say', 'fail', 'broken', 'tell', 'url', 'elicit', 'sample', 'roots'];
const OWN_TOOLS = ['own-say', 'own-fail', 'own-tell', 'own-elicit', 'own-sample'];

const callOf = (name: string) => ({
  method: 'tools/call',
  params: { name, arguments: { said: CLIENT_MARK }, _meta: { progressToken: 'p' } },
});

/** Requests of a client of `/mcp`, each with what it says. */
const REQUESTS = [
  { method: 'tools/list', params: {} },
  { method: 'prompts/list', params: {} },
  { method: 'resources/list', params: {} },
  { method: 'resources/templates/list', params: {} },
  ...TOOLS.map((tool) => callOf(`it__${tool}`)),
  ...OWN_TOOLS.map(callOf),
  { method: 'prompts/get', params: { name: 'it__prompt', arguments: { a: CLIENT_MARK } } },
  { method: 'resources/read', params: { uri: 'test://r' } },
  { method: 'resources/read', params: { uri: `test://t/${CLIENT_MARK}` } },
  {
    method: 'completion/complete',
    params: {
      ref: { type: 'ref/prompt', name: 'it__prompt' },
      argument: { name: 'a', value: CLIENT_MARK },
    },
  },
  {
    method: 'completion/complete',
    params: {
      ref: { type: 'ref/resource', uri: 'test://t/{id}' },
      argument: { name: 'id', value: CLIENT_MARK },
    },
  },
] as const;

const SUBSCRIBE = {
  method: 'resources/subscribe',
  params: { uri: `test://t/${CLIENT_MARK}` },
} as const;

/** Of what nobody subscribed to. */
const UNSUBSCRIBE = { ...SUBSCRIBE, method: 'resources/unsubscribe' } as const;

const LISTS = ['tools/list', 'prompts/list', 'resources/list'];
const NO_LISTS = ALL_POINTS.filter((point) => !LISTS.includes(point));

/** By which way it is refused: each alone must hold what goes by it. */
const GUARDED = [
  { title: 'all at once', on: ALL_POINTS, sees: 'nothing' },
  { title: 'all but the lists', on: NO_LISTS, sees: 'lists' },
  {
    title: 'what servers answer and say',
    on: NO_LISTS.filter((point) => point.includes('/result') || !point.includes('/')),
    sees: 'lists',
  },
] as const;

const refuseAll = async (on: readonly string[]) => [
  {
    name: 'refuse-all',
    on,
    use: await writeGuard("return { decision: 'refuse', message: 'No.' };"),
  },
];

const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

/** Lists apart, nothing that the server or an author said is in it. */
function expectNoMark(method: string, text: string, sees: string): void {
  if (sees === 'lists' && method.endsWith('/list')) return;
  expect(`${method}: ${text}`).not.toContain(SERVER_MARK);
}

const start = async (on: readonly string[], guards?: readonly object[]) =>
  startForTest({
    file: { mcpServers: { it: server.url }, guards: guards ?? (await refuseAll(on)) },
    builtIn,
    env: { MCP_STREAMS: 'true' },
  });

test.each(GUARDED)('§26 session era, $title: nothing passes', async ({ on, sees }) => {
  const gateway = await start(on);
  const before = server.heard.length;
  const client = await openClient(gateway, { capabilities: CAPABILITIES });
  const init = await gateway.rpc({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'a', version: '1' },
    },
  });
  expectNoMark('initialize', init.text, sees);
  await client.ask('logging/setLevel', { level: 'debug' });
  for (const { method, params } of [...REQUESTS, SUBSCRIBE, UNSUBSCRIBE]) {
    const answer = await client.send({ jsonrpc: '2.0', id: 7, method, params });
    expectNoMark(method, await answer.text(), sees);
  }
  const isSent = !on.some((point) => point === 'tools/call');
  if (!isSent) {
    const sent = server.heard.slice(before).join('\n');
    expect(sent).not.toContain(CLIENT_MARK);
  }
});

test.each(GUARDED)('§26 stateless era, $title: nothing passes', async ({ on, sees }) => {
  const gateway = await start(on);
  const before = server.heard.length;
  const options = { meta: { ...ASKABLE, [LOG_LEVEL]: 'debug' } };
  const headers = { accept: 'application/json, text/event-stream' };
  const discovered = await stateless(gateway, 'server/discover', {}, options);
  expectNoMark('server/discover', discovered.text, sees);
  for (const { method, params } of REQUESTS) {
    const { _meta: own, ...rest } = { _meta: {}, ...params };
    const { text } = await stateless(gateway, method, rest, {
      ...options,
      meta: { ...options.meta, ...own },
      headers,
    });
    expectNoMark(method, text, sees);
  }
  const isSent = !on.some((point) => point === 'tools/call');
  if (!isSent) expect(server.heard.slice(before).join('\n')).not.toContain(CLIENT_MARK);
});

/** As it is, each message can be copied and sent to a worker. */
const COPY = `
  const { deserialize, serialize } = process.getBuiltinModule('node:v8');
  structuredClone(deserialize(serialize(message)));
  return { decision: 'pass' };`;

test.each([
  { title: 'without guards', guard: undefined },
  { title: 'with a guard that copies what it is told', guard: COPY },
])(
  '§26 $title all of it passes: the marks are where the test looks for them',
  async ({ guard }) => {
    const use = guard && (await writeGuard(guard));
    const gateway = await start([], use ? [{ name: 'copies', on: ALL_POINTS, use }] : []);
    const client = await openClient(gateway, {});
    for (const { method, params } of REQUESTS.filter((one) => !one.method.endsWith('/call'))) {
      const answer = await client.send({ jsonrpc: '2.0', id: 7, method, params });
      expect(`${method}: ${await answer.text()}`).toContain(SERVER_MARK);
    }
    for (const name of [
      'it__say',
      'it__fail',
      'it__broken',
      'it__tell',
      'own-say',
      'own-fail',
      'own-tell',
    ]) {
      await client.ask('logging/setLevel', { level: 'debug' });
      const answer = await client.send({ jsonrpc: '2.0', id: 7, ...callOf(name) });
      expect(`${name}: ${await answer.text()}`).toContain(SERVER_MARK);
    }
    expect(server.heard.join('\n')).toContain(CLIENT_MARK);
  },
);

test.each([
  { guarded: [], isHeard: true },
  { guarded: ['tools/call', 'completion/result'], isHeard: true },
  { guarded: ['completion/complete'], isHeard: false },
])(
  '§26.1 no guard is told `_meta` of a completion: where guards look at $guarded, its server hears of it: $isHeard',
  async ({ guarded, isHeard }) => {
    const use = await writeGuard("return { decision: 'pass' };");
    const gateway = await start([], [{ name: 'looks', on: guarded, use }].slice(0, guarded.length));
    const before = server.heard.length;
    const ref = { type: 'ref/prompt', name: 'it__prompt' };
    const params = { ref, argument: { name: 'a', value: '' } };
    await stateless(gateway, 'completion/complete', params, { meta: { 'x/y': CLIENT_MARK } });
    const heard = server.heard.slice(before).filter((text) => text.includes('completion/complete'));
    expect(heard.map((text) => text.includes(CLIENT_MARK))).toEqual([isHeard]);
  },
);

test.each(['resources/subscribe', 'resources/result'])(
  '§26 nothing of the error of a server that cannot be subscribed to passes where a guard looks at %s',
  async (point) => {
    const failing = closeAfterTest(await startScriptedHttp('session'));
    failing.answer('initialize', (res, request) => {
      res.setHeader('mcp-session-id', 'one');
      const capabilities = { resources: { subscribe: true } };
      const serverInfo = { name: 'it', version: '1' };
      sendJson(res, toResult(request, { protocolVersion: '2025-11-25', capabilities, serverInfo }));
    });
    failing.answer('resources/list', (res, request) =>
      sendJson(res, toResult(request, { resources: [{ name: 'r', uri: 'test://r' }] })),
    );
    failing.answer('resources/subscribe', (res, request) =>
      sendJson(res, toError(request, -32000, SERVER_MARK)),
    );
    const pass = await writeGuard("return { decision: 'pass' };");
    const ask = async (guards: readonly object[]) => {
      const gateway = await startForTest({
        file: { mcpServers: { it: failing.url }, guards },
        env: { MCP_STREAMS: 'true' },
      });
      const client = await openClient(gateway, {});
      return JSON.stringify(await client.ask('resources/subscribe', { uri: 'test://r' }));
    };
    expect(await ask([])).toContain(SERVER_MARK);
    const told = await ask([{ name: 'looks', on: [point], use: pass }]);
    expect(told).toContain('it could not be told of it');
    expect(told).not.toContain(SERVER_MARK);
  },
);

test('§26 a guard looks at what an author logs outside of calls', async () => {
  let tell: ((params: object) => void) | undefined;
  const gateway = await startForTest({
    file: {
      mcpServers: {},
      guards: [
        {
          name: 'hides',
          on: ['notifications'],
          use: await writeGuard(
            `const { params, ...rest } = message.value;
            return { decision: 'change', value: { ...rest, params: { ...params, data: 'hidden' } } };`,
          ),
        },
      ],
    },
    builtIn: {
      ...createLocalCatalog({ logging: true }),
      listen(_caller, { logged }) {
        tell = (params) => logged?.({ ...params });
        return () => {};
      },
    },
    env: { MCP_STREAMS: 'true' },
  });
  const client = await openClient(gateway, {});
  await client.ask('logging/setLevel', { level: 'debug' });
  const stream = await client.watch();
  await expect.poll(() => tell).toBeDefined();
  tell?.({ level: 'error', data: SERVER_MARK });
  expect(await stream.next()).toMatchObject({ params: { level: 'error', data: 'hidden' } });
  stream.hangUp();
});
