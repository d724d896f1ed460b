// §15.1: a client whose connection broke comes back for the answer, and gets what it has not got.
import { beforeEach, describe, expect, test } from 'vitest';
import { createWaitingCatalog } from '../../support/catalogs/waiting-catalog.ts';
import type { EventStream, ServerEvent } from '../../support/clients/event-stream.ts';
import { openClient, type SessionClient } from '../../support/clients/session-client.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { useFreshGateway } from '../../support/gateway/use-gateway.ts';

const { catalog, calls } = createWaitingCatalog();
let clock: ManualClock;
const gateway = useFreshGateway(() => {
  clock = manualClock();
  calls.clear();
  return { deps: { catalog, clock } };
});

let client: SessionClient;
beforeEach(async () => {
  client = await openClient(gateway);
});

const answerOf = (text: string, id: unknown = 1) => ({
  jsonrpc: '2.0',
  id,
  result: { content: [{ type: 'text', text }] },
});

const readNext = async (stream: EventStream): Promise<ServerEvent | undefined> =>
  (await stream[Symbol.asyncIterator]().next()).value;

async function call(name: string) {
  await expect.poll(() => calls.has(name)).toBe(true);
  const found = calls.get(name);
  if (found === undefined) throw new Error('There is no such call');
  return found;
}

/** A call that has run for over a second. */
async function beginLong(name: string, id: string | number = 1) {
  const answering = client.call('wait', { name }, { id, progressToken: 'p' });
  const running = await call(name);
  clock.advance(1250);
  const stream = await answering;
  return { stream, running };
}

const resume = (lastEventId: string | undefined, by = client) =>
  by.watch({ 'last-event-id': lastEventId ?? '' });

describe('a call that takes over a second', () => {
  test('§15.1 becomes a stream that begins with an id, no data, and when to come back', async () => {
    const { stream, running } = await beginLong('a');
    expect(stream.isStream).toBe(true);
    const first = await readNext(stream);
    expect(first).toMatchObject({ data: '', id: expect.stringMatching(/^[\w.-]+$/) });
    running.answer('late');
    expect(await stream.rest()).toEqual([answerOf('late')]);
  });

  test('§15.1 whose connection broke goes on, and its answer is there for who comes back', async () => {
    const { stream, running } = await beginLong('a');
    const first = await readNext(stream);
    running.progress(1);
    const second = await readNext(stream);
    stream.hangUp();
    running.progress(2);
    running.answer('late');
    const all = await resume(first?.id);
    expect(all.status).toBe(200);
    expect(await all.rest()).toMatchObject([
      { params: { progress: 1 } },
      { params: { progress: 2 } },
      answerOf('late'),
    ]);
    const some = await resume(second?.id);
    expect(await some.rest()).toMatchObject([{ params: { progress: 2 } }, answerOf('late')]);
    expect(running.signal.aborted).toBe(false);
  });
});
