// MCP 2025-11-25 "URL mode elicitation": that a page was dealt with is told to the session that was sent there, and to no other.
import { EventEmitter, once } from 'node:events';
import { expect, test } from 'vitest';
import type { EventStream } from '../../support/clients/event-stream.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { writeGuard } from '../../support/guards/module-guard.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';
import { openStream, startRawServer } from '../../support/upstreams/raw-server.ts';

const PATIENT = { timeout: 20_000 };
const COMPLETE = 'notifications/elicitation/complete';
const ABLE = { elicitation: { form: {}, url: {} } };
const pageOf = (elicitationId: string) => ({
  mode: 'url',
  message: 'Open it.',
  url: 'https://a.example',
  elicitationId,
});

/** Each call fails with the page that it names: its user has to open that first. */
const serveFailing = () =>
  serve({
    tools: [buildTool('t')],
    answers: {
      'tools/call': ({ arguments: args }) => ({
        error: {
          code: -32042,
          message: 'Open it.',
          data: { elicitations: [pageOf(Object(args).id)] },
        },
      }),
    },
  });

/** The ids that a stream is told of, up to this one. */
async function readIds(stream: EventStream, last: string): Promise<readonly string[]> {
  const ids: string[] = [];
  while (!ids.includes(last)) {
    const { method, params } = await stream.next();
    if (method === COMPLETE) ids.push(params.elicitationId);
  }
  return ids;
}

const refuseBad = async () => ({
  name: 'g',
  on: ['elicitation'],
  use: await writeGuard(
    `return String(message.value.elicitationId).startsWith('bad') ? { decision: 'refuse', message: 'no' } : { decision: 'pass' };`,
  ),
});

test('§18.3 a session hears of its own pages, once, at whichever replica its stream is; others hear nothing of them', async () => {
  const redis = closeAfterTest(await startRedis());
  const server = await serveFailing();
  const start = (env: object) =>
    startForTest({
      file: { mcpServers: { a: server.url } },
      env: { MCP_STREAMS: 'true', REDIS_URL: redis.url, ...env },
    });
  const one = await start({});
  const two = await start({ OIDC_ISSUER: one.issuer.url });
  const open = async (sub: string) =>
    openClient(one, { capabilities: ABLE, token: await one.issuer.sign({ sub }) });
  const [ada, again, bob] = [await open('ada'), await open('ada'), await open('bob')];
  const fail = async (client: typeof ada, id: string) => {
    const { error } = await client.ask('tools/call', { name: 'a__t', arguments: { id } });
    expect(error.code).toBe(-32042);
  };
  for (const id of ['ada-1', 'ada-2']) await fail(ada, id);
  await fail(again, 'again-1');
  await fail(bob, 'bob-1');
  const streams = [
    await (await ada.at(two)).watch(),
    await again.watch(),
    await (await bob.at(two)).watch(),
  ];
  await expect.poll(server.openStreams, PATIENT).toBeGreaterThanOrEqual(5);
  const tell = (...ids: readonly string[]) => {
    for (const elicitationId of ids) server.notify(COMPLETE, { elicitationId });
  };
  const [ofAda, ofAgain, ofBob] = streams;
  if (!ofAda || !ofAgain || !ofBob) throw new Error('A stream is missing.');
  tell('made up', 'x'.repeat(300), 'ada-1');
  expect(await readIds(ofAda, 'ada-1')).toEqual(['ada-1']);
  tell('ada-1', 'again-1', 'bob-1', 'ada-2');
  expect(await readIds(ofAda, 'ada-2')).toEqual(['ada-2']);
  expect(await readIds(ofAgain, 'again-1')).toEqual(['again-1']);
  expect(await readIds(ofBob, 'bob-1')).toEqual(['bob-1']);
  for (const stream of streams) stream.hangUp();
});

test('§18.3 a server cannot say that a page of another one was dealt with', async () => {
  const [a, b] = [await serveFailing(), await serveFailing()];
  const gateway = await startForTest({
    file: { mcpServers: { a: a.url, b: b.url } },
    env: { MCP_STREAMS: 'true' },
  });
  const client = await openClient(gateway, { capabilities: ABLE });
  for (const [server, id] of [
    ['a', 'e-1'],
    ['b', 'e-2'],
  ])
    await client.ask('tools/call', { name: `${server}__t`, arguments: { id } });
  const stream = await client.watch();
  for (const server of [a, b]) await expect.poll(server.openStreams, PATIENT).toBe(2);
  for (const elicitationId of ['e-1', 'e-2']) b.notify(COMPLETE, { elicitationId });
  expect(await readIds(stream, 'e-2')).toEqual(['e-2']);
  a.notify(COMPLETE, { elicitationId: 'e-1' });
  expect(await readIds(stream, 'e-1')).toEqual(['e-1']);
  stream.hangUp();
});

const SKILL = { uri: 'skill://x/SKILL.md', frontmatter: { name: 'x', description: 'd' } };

/** Requests that a server can answer by the error, each with the id of its page. */
const FAILING: readonly (readonly [string, object])[] = [
  ['prompts/get', { name: 'a__p' }],
  ['resources/read', { uri: 'x://1' }],
  ['skills/get', { uri: SKILL.uri }],
  ['resources/directory/read', { uri: 'skill://x/' }],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'x', value: '' } },
  ],
  ['tools/call', { name: 'a__t', arguments: {} }],
];

const serveFailingAll = () =>
  serve({
    capabilities: {
      tools: {},
      prompts: {},
      resources: { subscribe: true },
      completions: {},
      extensions: { 'io.modelcontextprotocol/skills': { directoryRead: true } },
    },
    tools: [buildTool('t')],
    prompts: [{ name: 'p', arguments: [{ name: 'x' }] }],
    resources: [
      { uri: 'x://1', name: 'one' },
      { uri: SKILL.uri, name: 'skill' },
    ],
    answers: {
      'skills/list': () => ({ result: { skills: [{ ...SKILL, resources: 'dynamic' }] } }),
      ...Object.fromEntries(
        [...FAILING, ['resources/subscribe'], ['resources/unsubscribe']].map(([method = '']) => [
          method,
          () => ({
            error: {
              code: -32042,
              message: 'Open it.',
              data: { elicitations: [pageOf(method), pageOf(`bad ${method}`)] },
            },
          }),
        ]),
      ),
    },
  });

test('§18.3 a page is known whichever request had it in its error', async () => {
  const server = await serveFailingAll();
  const gateway = await startForTest({
    file: { mcpServers: { a: server.url } },
    env: { MCP_STREAMS: 'true' },
  });
  const client = await openClient(gateway, { capabilities: ABLE });
  for (const [method, params] of FAILING)
    expect((await client.ask(method, params)).error.code, method).toBe(-32042);
  const stream = await client.watch();
  await expect.poll(server.openStreams, PATIENT).toBe(2);
  for (const [elicitationId] of FAILING) server.notify(COMPLETE, { elicitationId });
  expect(await readIds(stream, 'tools/call')).toEqual(FAILING.map(([method]) => method));
  stream.hangUp();
});

test('§26.1 a guard on questions looks at the pages of an error, whichever request had it', async () => {
  const server = await serveFailingAll();
  const gateway = await startForTest({
    file: { mcpServers: { a: server.url }, guards: [await refuseBad()] },
  });
  const client = await openClient(gateway, { capabilities: ABLE });
  for (const [method, params] of FAILING)
    expect(JSON.stringify(await client.ask(method, params)), method).not.toContain('a.example');
});

test('§18.3 nobody is sent to a page by a subscription', async () => {
  const server = await serveFailingAll();
  const gateway = await startForTest({
    file: { mcpServers: { a: server.url } },
    env: { MCP_STREAMS: 'true' },
  });
  const client = await openClient(gateway, { capabilities: ABLE });
  for (const method of ['resources/subscribe', 'resources/unsubscribe'])
    expect(await client.ask(method, { uri: 'x://1' }), method).toMatchObject({
      error: { code: -32603, message: 'a could not be told of it.' },
    });
});

test('§26.1 of a page that a guard has refused a session is not told either', async () => {
  const server = await serveFailing();
  const guards = [await refuseBad()];
  const gateway = await startForTest({
    file: { mcpServers: { a: server.url }, guards },
    env: { MCP_STREAMS: 'true' },
  });
  const client = await openClient(gateway, { capabilities: ABLE });
  for (const id of ['bad-1', 'good-1'])
    await client.ask('tools/call', { name: 'a__t', arguments: { id } });
  const stream = await client.watch();
  await expect.poll(server.openStreams, PATIENT).toBe(2);
  for (const elicitationId of ['bad-1', 'good-1']) server.notify(COMPLETE, { elicitationId });
  expect(await readIds(stream, 'good-1')).toEqual(['good-1']);
  stream.hangUp();
});

test('§18.3 during a call: only of what its client was asked, and once', async () => {
  const asked = new EventEmitter();
  const server = closeAfterTest(
    await startRawServer((res, own) => asked.emit('call', openStream(res, own), own)),
  );
  const guards = [await refuseBad()];
  const gateway = await startForTest({ file: { mcpServers: { raw: server.url }, guards } });
  const client = await openClient(gateway, { capabilities: ABLE });
  const called = once(asked, 'call');
  const calling = client.call('raw__any');
  const [say, id] = await called;
  const ask = (page: string) =>
    say({ id: page, method: 'elicitation/create', params: pageOf(page) });
  const complete = (...pages: readonly string[]) => {
    for (const elicitationId of pages) say({ method: COMPLETE, params: { elicitationId } });
  };
  ask('bad-1');
  complete('bad-1', 'good-1', 'made up');
  ask('good-1');
  const stream = await calling;
  const question = await stream.next();
  expect(question.params.elicitationId).toBe('good-1');
  await client.answer(question.id, { action: 'accept' });
  complete('bad-1', 'good-1', 'good-1', 'made up');
  expect(await stream.next()).toMatchObject({
    method: COMPLETE,
    params: { elicitationId: 'good-1' },
  });
  say({ id, result: { content: [] } });
  expect(await stream.next()).toMatchObject({ result: { content: [] } });
});
