// §15.1: a client comes back at another replica than the one that runs its call.
import { beforeEach, expect, test } from 'vitest';
import { createWaitingCatalog } from '../../support/catalogs/waiting-catalog.ts';
import type { EventStream, ServerEvent } from '../../support/clients/event-stream.ts';
import { openClient, type SessionClient } from '../../support/clients/session-client.ts';
import { startTwoReplicas, type TwoReplicas } from '../../support/gateway/two-replicas.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

/** On a busy machine; nothing here asserts by the clock. */
const PATIENT = { timeout: 20_000 } as const;

const { catalog, calls } = createWaitingCatalog();
let replicas: TwoReplicas;
let client: SessionClient;
let elsewhere: SessionClient;

beforeEach(async () => {
  calls.clear();
  replicas = closeAfterTest(await startTwoReplicas({ deps: { catalog } }));
  client = await openClient(replicas.one);
  elsewhere = await client.at(replicas.other);
});

const answerOf = (text: string) => ({
  jsonrpc: '2.0',
  id: 1,
  result: { content: [{ type: 'text', text }] },
});

const readNext = async (stream: EventStream): Promise<ServerEvent | undefined> =>
  (await stream[Symbol.asyncIterator]().next()).value;

/** Its stream has begun, and its first event was read. */
async function begin(name: string) {
  const answering = client.call('wait', { name }, { progressToken: 'p' });
  await expect.poll(() => calls.has(name), PATIENT).toBe(true);
  const running = calls.get(name);
  if (running === undefined) throw new Error('There is no such call');
  running.progress(1);
  const stream = await answering;
  const primer = await readNext(stream);
  await readNext(stream);
  return { stream, running, lastEventId: primer?.id ?? '' };
}

const resume = (lastEventId: string, by = elsewhere) => by.watch({ 'last-event-id': lastEventId });

test('§15.1 what was sent is sent again there, and what comes is passed on as it comes', async () => {
  const { stream, running, lastEventId } = await begin('a');
  stream.hangUp();
  const resumed = await resume(lastEventId);
  expect(await resumed.next()).toMatchObject({ params: { progress: 1 } });
  running.progress(2);
  expect(await resumed.next()).toMatchObject({ params: { progress: 2 } });
  running.answer('late');
  expect(await resumed.rest()).toEqual([answerOf('late')]);
}, 30_000);

test('§15.1 the connection at the replica that runs it is over then: nothing is sent twice', async () => {
  const { stream, running, lastEventId } = await begin('a');
  const resumed = await resume(lastEventId);
  expect(await resumed.next()).toMatchObject({ params: { progress: 1 } });
  expect(await stream.rest()).toEqual([]);
  running.answer('late');
  expect(await resumed.rest()).toEqual([answerOf('late')]);
}, 30_000);

test('§15.1 back at the replica that runs it, the connection elsewhere is over', async () => {
  const { running, lastEventId } = await begin('a');
  const there = await resume(lastEventId);
  expect(await there.next()).toMatchObject({ params: { progress: 1 } });
  const here = await resume(lastEventId, client);
  expect(await there.rest()).toEqual([]);
  running.answer('late');
  expect((await here.rest()).at(-1)).toEqual(answerOf('late'));
}, 30_000);

test('§15.1 an answer that came while nobody read is there, short as the call was', async () => {
  const { stream, running, lastEventId } = await begin('a');
  stream.hangUp();
  running.answer('early');
  const resumed = await resume(lastEventId);
  expect(await resumed.rest()).toMatchObject([{ params: { progress: 1 } }, answerOf('early')]);
}, 30_000);

test('§15.1 one that was sent whole, and got lost on its way, is there, too', async () => {
  const { stream, running, lastEventId } = await begin('a');
  running.answer('sent');
  await stream.rest();
  const resumed = await resume(lastEventId);
  expect((await resumed.rest()).at(-1)).toEqual(answerOf('sent'));
}, 30_000);

test('§17 what a call comes to while its replica stops is read at another', async () => {
  const { stream, running, lastEventId } = await begin('a');
  stream.hangUp();
  const closing = replicas.one.gateway.close();
  const resumed = await resume(lastEventId);
  expect(await resumed.next()).toMatchObject({ params: { progress: 1 } });
  running.answer('at the end');
  expect(await resumed.rest()).toEqual([answerOf('at the end')]);
  await closing;
  const again = await resume(lastEventId);
  expect((await again.rest()).at(-1)).toEqual(answerOf('at the end'));
}, 30_000);

test('§17 a call that takes longer than its replica could wait is told to be lost', async () => {
  const { stream, lastEventId } = await begin('a');
  stream.hangUp();
  await replicas.one.gateway.close();
  const resumed = await resume(lastEventId);
  expect((await resumed.rest()).at(-1)).toMatchObject({
    id: 1,
    error: { data: { reason: 'stream_lost', details: expect.stringContaining('was stopped') } },
  });
}, 40_000);

test('§15.1 a replica that is gone with its call is told as that, soon', async () => {
  const { lastEventId } = await begin('a');
  // Of a replica that nobody is.
  const gone = lastEventId.replace(/^[^.]+/, '00000000-0000-4000-8000-000000000000');
  const unknown = gone.replace(/\.[0-9a-f]{12}\./, '.0123456789ab.');
  const resumed = await resume(unknown);
  expect(await resumed.rest()).toMatchObject([
    {
      id: 1,
      error: {
        data: { reason: 'stream_lost', details: expect.stringContaining('does not answer') },
      },
    },
  ]);
}, 30_000);

test('§15.1 a stream that its replica keeps no more is told as that', async () => {
  const { lastEventId } = await begin('a');
  const resumed = await resume(lastEventId.replace(/\.[0-9a-f]{12}\./, '.0123456789ab.'));
  expect(await resumed.rest()).toMatchObject([
    {
      id: 1,
      error: {
        data: { reason: 'stream_lost', details: expect.stringContaining('no longer stored') },
      },
    },
  ]);
}, 30_000);
