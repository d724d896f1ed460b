// §26.2: a server of the file as a guard: interceptors of SEP-2624.
import { expect, test } from 'vitest';
import { callTool } from '../../support/clients/stateless.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { sendJson as sendRaw, startRawServer } from '../../support/upstreams/raw-server.ts';
import {
  sendJson,
  startScriptedHttp,
  toError,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const raw = useShared(() =>
  startRawServer((res, id, { params }) =>
    sendRaw(res, {
      id,
      result: { content: [{ type: 'text', text: JSON.stringify(params.arguments) }] },
    }),
  ),
);

const both = (name: string, type: string, more: object = {}) => ({
  name,
  type,
  hook: { events: ['tools/call'], phase: 'both' },
  ...more,
});

// biome-ignore lint/suspicious/noExplicitAny: payloads of every shape
type Invoke = (params: any) => object | undefined;

/** What is not known by its name is no interceptor: an error. */
async function startInterceptors(
  interceptors: readonly object[],
  invoke: Invoke,
  era: 'session' | 'stateless' = 'session',
) {
  const server = closeAfterTest(await startScriptedHttp(era));
  const invoked: { name: string; phase: string }[] = [];
  server.answer('interceptors/list', (res, request) =>
    sendJson(res, toResult(request, { interceptors })),
  );
  server.answer('interceptor/invoke', (res, request) => {
    const params = request.message.params as { name: string; phase: string };
    invoked.push(params);
    const answer = invoke(params);
    if (answer === undefined) return sendJson(res, toError(request, -32603, 'failed'));
    return sendJson(res, toResult(request, { interceptor: params.name, ...answer }));
  });
  return { url: server.url, invoked };
}

const start = (url: string, use: object = {}, more: object = {}) =>
  startForTest({
    file: {
      mcpServers: { raw: raw.url, keeper: url },
      guards: [{ name: 'g', on: ['tools/call'], use: { mcp: 'keeper', ...use }, ...more }],
    },
  });

const textIn = ({ json }: { json: { result: { content: { text: string }[] } } }) =>
  json.result.content[0]?.text;

const append =
  (letter: string): Invoke =>
  ({ payload }) => ({
    modified: true,
    payload: { ...payload, arguments: { said: `${payload.arguments.said ?? ''}${letter}` } },
  });

test.each(['session', 'stateless'] as const)(
  '§26.2 %s era: mutators by their priority, then validators',
  async (era) => {
    const keeper = await startInterceptors(
      [
        both('check', 'validation'),
        both('b', 'mutation', { priorityHint: 5 }),
        both('a', 'mutation', { priorityHint: { request: -5 } }),
        both('watch', 'mutation', { mode: 'audit' }),
        both('elsewhere', 'mutation', { hook: { events: ['prompts/get'], phase: 'both' } }),
        {
          ...both('new-form', 'mutation'),
          hook: undefined,
          hooks: [{ events: ['*'], phase: 'request' }],
        },
      ],
      (params) =>
        params.name === 'check'
          ? { type: 'validation', valid: true }
          : append(params.name[0])(params),
      era,
    );
    const gateway = await start(keeper.url);
    expect(textIn(await callTool(gateway, 'raw__any'))).toBe('{"said":"anb"}');
    expect(keeper.invoked.map(({ name }) => name)).toEqual([
      'a',
      'new-form',
      'watch',
      'b',
      'check',
    ]);
    expect(keeper.invoked[0]).toMatchObject({ event: 'tools/call', phase: 'request' });
  },
);

test('§26.2 results are validated before they are changed', async () => {
  const keeper = await startInterceptors(
    [both('change', 'mutation'), both('check', 'validation')],
    ({ name, payload }) =>
      name === 'check'
        ? { valid: true }
        : {
            modified: true,
            payload: { ...payload, content: [{ type: 'text', text: 'Changed.' }] },
          },
  );
  const gateway = await start(keeper.url, {}, { on: ['tools/result'] });
  expect(textIn(await callTool(gateway, 'raw__any'))).toBe('Changed.');
  expect(keeper.invoked.map(({ name, phase }) => `${name} ${phase}`)).toEqual([
    'check response',
    'change response',
  ]);
});

test('§26.2 a validator refuses with its own words', async () => {
  const keeper = await startInterceptors([both('check', 'validation')], () => ({
    valid: false,
    severity: 'error',
    messages: [{ message: 'Not with me.', severity: 'error' }],
  }));
  const gateway = await start(keeper.url, { interceptor: 'check' });
  expect(textIn(await callTool(gateway, 'raw__any'))).toBe('Not with me.');
});

test.each([
  { title: 'answers with an error', all: [both('check', 'validation')], use: {} },
  { title: 'has none for it', all: [], use: {} },
  { title: 'lacks the one that is named', all: [both('a', 'mutation')], use: { interceptor: 'b' } },
  { title: 'lists one that cannot be read', all: [{ name: 'x', type: 'other' }], use: {} },
])('§26.3 one that $title has failed', async ({ all, use }) => {
  const keeper = await startInterceptors(all, () => undefined);
  const gateway = await start(keeper.url, use);
  expect(textIn(await callTool(gateway, 'raw__any'))).toContain('The guard g could not check this');
});

test('§26.2 a server that is a guard is hidden, and no guard looks at it', async () => {
  const keeper = await startInterceptors([both('check', 'validation')], () => ({ valid: true }));
  const gateway = await start(keeper.url);
  expect(await gateway.listNames('tools/list')).toEqual(['raw__any']);
  expect((await callTool(gateway, 'keeper__any')).json.error.message).toContain('Unknown tool');
  const { status } = await gateway.request({
    method: 'POST',
    path: '/mcp/keeper',
    headers: { authorization: `Bearer ${await gateway.issuer.sign()}` },
    body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  });
  expect(status).toBe(404);
  expect(gateway.gateway.listServers().find(({ name }) => name === 'keeper')).toMatchObject({
    isGuard: true,
  });
});
