// What goes on in a stream until its last event, the answer.
import { EventEmitter, once } from 'node:events';
import { beforeAll, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../../src/index.ts';
import { openClient, type SessionClient } from '../../../support/clients/session-client.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const gates = new EventEmitter();

const catalog = createLocalCatalog({
  logging: true,
  tools: [
    defineTool({
      name: 'fails-late',
      description: 'Speaks, then throws.',
      inputSchema: { type: 'object' },
      run(_args, { log }) {
        log('info', 'it begins');
        throw new Error('the warehouse is on fire');
      },
    }),
    defineTool({
      name: 'late',
      description: 'Speaks after its result.',
      inputSchema: { type: 'object' },
      run(_args, { log }) {
        log('info', 'before');
        queueMicrotask(() => gates.once('after', () => log('info', 'after')));
        return { content: [] };
      },
    }),
    defineTool({
      name: 'floods',
      description: 'Says more at once than anybody reads.',
      inputSchema: { type: 'object' },
      run(_args, { log }) {
        for (let at = 0; at < 50_000; at += 1) log('info', at);
        return { content: [] };
      },
    }),
    defineTool({
      name: 'paced',
      description: 'Speaks at each step of the test.',
      inputSchema: {
        type: 'object',
        properties: { key: { type: 'string' } },
        required: ['key'],
      },
      async run({ key }, { log }) {
        log('info', `${key} begins`);
        await once(gates, key);
        log('info', `${key} goes on`);
        await once(gates, key);
        return { content: [{ type: 'text', text: key }] };
      },
    }),
  ],
});

const gateway = useGateway({ deps: { catalog } });
let client: SessionClient;
beforeAll(async () => {
  client = await openClient(gateway);
});

test('§4.4 what a tool says after its result is heard by nobody', async () => {
  const answer = await client.call('late');
  expect(await answer.next()).toMatchObject({ params: { data: 'before' } });
  expect(await answer.next()).toMatchObject({ result: { content: [] } });
  gates.emit('after');
  expect(await answer.next()).toBeUndefined();
  // The session goes on.
  expect(await client.ask('ping')).toEqual({ jsonrpc: '2.0', result: {}, id: 1 });
});

test('§4.4 streams of one session run side by side, each with its own messages', async () => {
  const keys = ['a', 'b', 'c'];
  const streams = await Promise.all(
    keys.map((key, at) => client.call('paced', { key }, { id: `id-${at}` })),
  );
  const texts = async () =>
    (await Promise.all(streams.map((one) => one.next()))).map(({ params }) => params.data);
  expect(await texts()).toEqual(['a begins', 'b begins', 'c begins']);
  for (const key of keys.toReversed()) gates.emit(key);
  expect(await texts()).toEqual(['a goes on', 'b goes on', 'c goes on']);
  // The last one first: nobody waits for another.
  for (const [at, key] of [...keys.entries()].toReversed()) {
    gates.emit(key);
    expect(await streams[at]?.rest()).toEqual([
      { jsonrpc: '2.0', id: `id-${at}`, result: { content: [{ type: 'text', text: key }] } },
    ]);
  }
});

test('§4.4 of a flood messages may be lost, from its end, but never the answer', async () => {
  const messages = await (await client.call('floods')).rest();
  expect(messages.pop()).toEqual({ jsonrpc: '2.0', id: 1, result: { content: [] } });
  expect(messages.length).toBeGreaterThanOrEqual(1000);
  expect(messages.length).toBeLessThan(50_000);
  expect(messages.map(({ params }) => params.data)).toEqual([...messages.keys()]);
});

test('§7.1 a failure after the first event is the last event, and stands in the log', async () => {
  const answer = await client.call('fails-late', {}, { id: 'late one' });
  expect(answer.status).toBe(200);
  expect(await answer.rest()).toEqual([
    expect.objectContaining({ method: 'notifications/message' }),
    {
      jsonrpc: '2.0',
      result: {
        content: [
          { type: 'text', text: expect.stringMatching(/^fails-late failed; reference \w{8}\.$/) },
        ],
        isError: true,
      },
      id: 'late one',
    },
  ]);
  const failed = () => gateway.log.findLast(({ error }) => error === 'tool_failed');
  await expect.poll(failed).toMatchObject({
    level: 'error',
    msg: 'Failed.',
    rpc: 'tools/call',
    of: 'fails-late',
    status: 200,
  });
});
