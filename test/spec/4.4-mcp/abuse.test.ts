// What one caller must not be able to do to the process, to other replicas or to an author's tool.
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import {
  createLocalCatalog,
  definePrompt,
  defineResource,
  defineTool,
  elicit,
} from '../../../src/index.ts';
import { lastOf, openClient } from '../../support/clients/session-client.ts';
import { answeringCall, CLIENT_CAPABILITIES, stateless } from '../../support/clients/stateless.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';
import { startRedis } from '../../support/stores/redis.ts';

const OBJECT = { type: 'object' } as const;
const NAME = { type: 'object', properties: { name: { type: 'string' } } } as const;
const form = elicit('Name?', NAME);
let started = 0;
let watchers = 0;
let watchFails = false;
let change = () => {};
const late = new EventEmitter();

const catalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'steps',
      description: 'Says more than anybody reads.',
      inputSchema: OBJECT,
      run(_args, { progress }) {
        for (let step = 1; step <= 5000; step++) progress(step, 5000, 'x'.repeat(1000));
        return { content: [] };
      },
    }),
    defineTool({
      name: 'forgets-to-wait',
      description: 'Asks and does not look at the answer.',
      inputSchema: OBJECT,
      run(_args, { ask }) {
        ask({ form });
        return { content: [{ type: 'text', text: 'done' }] };
      },
    }),
    defineTool({
      name: 'asks-by-id',
      description: 'Makes its form anew each time.',
      inputSchema: OBJECT,
      async run(_args, { ask }) {
        const named = {
          $id: 'https://example.com/form',
          type: 'object',
          properties: { name: { type: 'string' } },
        };
        const { form: answer } = await ask({ form: elicit('Name?', named as typeof NAME) });
        return { content: [{ type: 'text', text: JSON.stringify(answer) }] };
      },
    }),
    defineTool({
      name: 'looks-late',
      description: 'Speaks, and asks only later whether anybody is there.',
      inputSchema: OBJECT,
      async run(_args, context) {
        context.progress(1);
        await once(late, 'left');
        late.emit('looked', context.signal.aborted);
        return { content: [] };
      },
    }),
    defineTool({
      name: 'until-told',
      description: 'Ends when nobody waits for it.',
      inputSchema: OBJECT,
      run: (_args, { signal }) =>
        new Promise<never>((_resolve, reject) => {
          started += 1;
          const stop = () => reject(new Error('told'));
          if (signal.aborted) stop();
          else signal.addEventListener('abort', stop);
        }),
    }),
  ],
  prompts: [
    definePrompt({
      name: 'asking',
      description: 'Completes by a question.',
      arguments: [
        {
          name: 'topic',
          description: '',
          required: false,
          async complete(_typed, _known, { ask }) {
            await ask({ form });
            return [];
          },
        },
      ],
      get: () => ({ messages: [] }),
    }),
  ],
  resources: [
    watched('calls-at-once', (changed) => {
      changed();
      return () => {};
    }),
    watched('counted', () => {
      watchers += 1;
      return () => {
        watchers -= 1;
      };
    }),
    watched('may-fail', (changed) => {
      if (watchFails) throw new Error('no such file');
      change = changed;
      return () => {};
    }),
  ],
});

function watched(name: string, watch: (changed: () => void) => () => void) {
  return defineResource({
    uri: `test://${name}`,
    name,
    description: '',
    mimeType: 'text/plain',
    watch,
    read: () => ({ text: '' }),
  });
}

const ENV = {
  MCP_STREAMS: 'true',
  METRICS_ENABLED: 'true',
  MCP_RATE_LIMIT_MAX: '100000',
  MCP_GLOBAL_RATE_LIMIT_MAX: '100000',
};
const gateway = useGateway({ env: ENV, deps: { catalog } });

const operations = (operation: string) =>
  seriesOf(gateway, 'redis_operations_total', { operation });

describe('only short values are repeated in errors', () => {
  test.each([256, 257])('§4.4 a progressToken of %i characters', async (length) => {
    const progressToken = 't'.repeat(length);
    const client = await openClient(gateway);
    const answers = [
      await lastOf(await client.call('forgets-to-wait', {}, { progressToken })),
      (
        await stateless(
          gateway,
          'tools/call',
          { name: 'forgets-to-wait' },
          { meta: { progressToken } },
        )
      ).json,
    ];
    const codes = answers.map(({ error }) => error?.code);
    if (length > 256) expect(codes).toEqual([-32602, -32602]);
    else expect(codes).not.toContain(-32602);
  });

  test('§4.4 subscriptions/listen under an id of 257 characters', async () => {
    const { status, json } = await stateless(
      gateway,
      'subscriptions/listen',
      { notifications: {} },
      { id: 'i'.repeat(257), headers: { accept: 'text/event-stream' } },
    );
    expect(status).toBe(200);
    expect(json.error.code).toBe(-32602);
  });

  test('§4.4 a client that reads slower than a tool speaks misses notifications, and no result', async () => {
    const client = await openClient(gateway);
    // All of it is said before anybody can read: some 5 MB, of which a part waits.
    const messages = await (await client.call('steps', {}, { progressToken: 1 })).rest();
    expect(messages.at(-1)).toMatchObject({ id: 1, result: { content: [] } });
    expect(messages.length).toBeGreaterThan(100);
    expect(messages.length).toBeLessThan(500);
  });
});

test('§4.4 a question that its tool does not wait for ends no process', async () => {
  const client = await openClient(gateway);
  const { result } = await lastOf(await client.call('forgets-to-wait'));
  expect(result.content[0].text).toBe('done');
});

test('§4.4 answers to what was never asked, and long ids, are told to no other replica', async () => {
  const client = await openClient(gateway);
  const before = (await operations('publish')) ?? 0;
  expect(await client.answer(randomUUID(), {})).toBe(202);
  expect(await client.answer('x', {})).toBe(202);
  expect(await client.cancel('i'.repeat(257))).toBe(202);
  expect(await operations('publish')).toBe(before);
  expect(await client.cancel(77)).toBe(202);
  expect(await operations('publish')).toBe(before + 1);
});

test('§3.1 a session that ends while a body is under way: 404, and no tool runs', async () => {
  const client = await openClient(gateway);
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'until-told' },
  });
  const lateCall = request({
    host: '127.0.0.1',
    port: await gateway.listen(),
    method: 'POST',
    path: '/mcp',
    agent: false,
    headers: {
      authorization: `Bearer ${client.token}`,
      'mcp-session-id': client.session,
      'content-type': 'application/json',
      'content-length': body.length,
    },
  });
  lateCall.flushHeaders();
  expect(await client.end()).toBe(204);
  const before = started;
  lateCall.end(body);
  const [answer] = await once(lateCall, 'response');
  answer.resume();
  expect(answer.statusCode).toBe(404);
  expect(started).toBe(before);
});

test('§4.4 a tool that looks late sees that its client has left the stream', async () => {
  // Of a revision whose clients do not come back for the answer.
  const client = await openClient(gateway, { protocolVersion: '2024-11-05' });
  const stream = await client.call('looks-late', {}, { progressToken: 1 });
  await stream.next();
  const count = () =>
    gateway.log.filter(({ of, msg }) => of === 'looks-late' && msg === 'Answered.').length;
  stream.hangUp();
  // The line comes when the connection has closed.
  await expect.poll(count).toBe(1);
  const looked = once(late, 'looked');
  late.emit('left');
  expect(await looked).toEqual([true]);
});

test('§4.4 a watch that fails once refuses the stream, leaves nothing, and works again later', async () => {
  const client = await openClient(gateway, { protocolVersion: '2024-11-05' });
  watchFails = true;
  const refused = await client.watch();
  expect(refused.status).toBe(500);
  await refused.text();
  expect(watchers).toBe(0);
  watchFails = false;
  const stream = await client.watch();
  expect(watchers).toBe(1);
  await client.ask('resources/subscribe', { uri: 'test://may-fail' });
  change();
  expect((await stream.next()).params).toEqual({ uri: 'test://may-fail' });
  stream.hangUp();
  await expect.poll(() => watchers).toBe(0);
});

test('§4.4 a form that is made anew for each call may have an $id', async () => {
  const answer = { action: 'accept', content: { name: 'Ada' } };
  for (let call = 0; call < 3; call++) {
    const { json } = await answeringCall(gateway, 'asks-by-id', {
      inputResponses: { form: answer },
    });
    expect(json.result.content[0].text).toBe(JSON.stringify(answer));
  }
});

test.each(['session', 'stateless'])(
  '§4.4 a completion that asks fails in the %s era',
  async (era) => {
    const params = {
      ref: { type: 'ref/prompt', name: 'asking' },
      argument: { name: 'topic', value: '' },
    };
    const { json } =
      era === 'session'
        ? await gateway.call((await openClient(gateway)).session, 'completion/complete', params)
        : await stateless(gateway, 'completion/complete', params, {
            meta: { [CLIENT_CAPABILITIES]: { elicitation: {} } },
          });
    expect(json.error.code).toBe(-32603);
  },
);

test('§4.4 what changes all the time is told at a pace, the last change included', async () => {
  const clock = manualClock();
  const paced = await startGateway({ env: ENV, deps: { catalog, clock } });
  try {
    const client = await openClient(paced);
    const stream = await client.watch();
    await client.ask('resources/subscribe', { uri: 'test://may-fail' });
    for (let time = 0; time < 100; time++) change();
    expect((await stream.next()).params).toEqual({ uri: 'test://may-fail' });
    clock.advance(250);
    expect((await stream.next()).params).toEqual({ uri: 'test://may-fail' });
    clock.advance(250);
    expect(await client.end()).toBe(204);
    expect(await stream.rest()).toEqual([]);
  } finally {
    await paced.close();
  }
});

test('§4.4 a secret that is known goes on to seal while the store is away', async () => {
  const redis = await startRedis();
  const clock = manualClock();
  const env = { ...ENV, REDIS_URL: redis.url };
  const shared = await startGateway({ env, deps: { catalog, clock } });
  try {
    const ask = () =>
      stateless(
        shared,
        'tools/call',
        { name: 'asks-by-id' },
        { meta: { [CLIENT_CAPABILITIES]: { elicitation: {} } } },
      );
    expect((await ask()).json.result.resultType).toBe('input_required');
    await redis.kill();
    clock.advance(61_000);
    expect((await ask()).json.result.resultType).toBe('input_required');
  } finally {
    await shared.close();
    await redis.close();
  }
});

test('§4.1 one user has 50 streams at most, and another one still gets one', async () => {
  const token = await gateway.issuer.sign({ sub: 'greedy' });
  const streams = [];
  const sessions = [];
  for (let count = 0; count < 50; count++) {
    const session = await openClient(gateway, { token });
    sessions.push(session);
    const stream = await session.watch();
    expect(stream.status).toBe(200);
    streams.push(stream);
  }
  const refused = await (await openClient(gateway, { token })).watch();
  expect(refused.status).toBe(503);
  expect(JSON.parse(await refused.text()).error.data.reason).toBe('too_many_streams');
  const other = await (await openClient(gateway)).watch();
  expect(other.status).toBe(200);
  // Its own session may have a new one all the same: the old one makes room.
  const [session] = sessions;
  expect((await session?.watch())?.status).toBe(200);
  for (const stream of [...streams, other]) stream.hangUp();
});

test('§12 streams never take all connections: the rest are left for calls', async () => {
  const small = await startGateway({
    env: { MCP_STREAMS: 'true', MAX_CONNECTIONS: '20' },
    deps: { catalog },
  });
  try {
    const token = await small.issuer.sign({ sub: 'many' });
    const streams = [];
    for (let count = 0; count < 18; count++) {
      const stream = await (await openClient(small, { token })).watch();
      expect(stream.status).toBe(200);
      streams.push(stream);
    }
    // Of another user, too: it is the process that has no more.
    const other = await openClient(small);
    const refused = await other.watch();
    expect(refused.status).toBe(503);
    expect(JSON.parse(await refused.text()).error.data.reason).toBe('too_many_streams');
    expect((await other.ask('tools/list')).result.tools).not.toHaveLength(0);
    for (const stream of streams) stream.hangUp();
  } finally {
    await small.close();
  }
});
