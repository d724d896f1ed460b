// §15.1: a client whose connection broke comes back for the answer, and gets what it has not got.
import { beforeEach, describe, expect, test } from 'vitest';
import { createWaitingCatalog } from '../../support/catalogs/waiting-catalog.ts';
import type { EventStream, ServerEvent } from '../../support/clients/event-stream.ts';
import { clientOf, openClient, type SessionClient } from '../../support/clients/session-client.ts';
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

describe('who may come back, and to what', () => {
  test.each([
    ['what is no id', 'x'],
    ['nothing', ''],
    ['a position that is none', '00000000-0000-4000-8000-000000000000.aaaaaaaa.0123456789ab.-1.n1'],
  ])('§15.1 %s is 400, with a body that says why', async (_, id) => {
    const refused = await resume(id);
    expect(refused.status).toBe(400);
    expect(JSON.parse(await refused.text())).toMatchObject({
      error: { code: -32000, data: { reason: 'unknown_event_id' } },
    });
  });

  test('§15.1 an id of another session is 400, of the same user, too, and changes nothing', async () => {
    const { stream, running } = await beginLong('a');
    const first = await readNext(stream);
    const token = await gateway.issuer.sign({ sub: 'mallory' });
    for (const other of [await openClient(gateway), await openClient(gateway, { token })]) {
      const refused = await resume(first?.id, other);
      expect(refused.status).toBe(400);
      expect(await refused.text()).toContain('unknown_event_id');
    }
    running.answer('mine');
    expect(await stream.rest()).toEqual([answerOf('mine')]);
  });

  test('§15.1 another user’s token with the session is 404, as for a session that is not there', async () => {
    const { stream } = await beginLong('a');
    const first = await readNext(stream);
    const token = await gateway.issuer.sign({ sub: 'mallory' });
    const mallory = clientOf(await gateway.listen(), client.session, token);
    const refused = await resume(first?.id, mallory);
    expect(refused.status).toBe(404);
    stream.hangUp();
    calls.get('a')?.answer('done');
  });

  test('§15.1 after the answer there is nothing: 204, by which clients know that', async () => {
    const { stream, running } = await beginLong('a');
    running.answer('late');
    const events: ServerEvent[] = [];
    for await (const event of stream) events.push(event);
    const answer = await resume(events.at(-1)?.id);
    expect(answer.status).toBe(204);
  });

  test.each(['application/json', '*/*'])('§15.1 with Accept %s it is 406', async (accept) => {
    const { stream, running } = await beginLong('a');
    const first = await readNext(stream);
    const refused = await client.watch({ 'last-event-id': first?.id ?? '', accept });
    expect(refused.status).toBe(406);
    running.answer('late');
    expect(await stream.rest()).toEqual([answerOf('late')]);
  });

  test('§15.1 without a token it is 401', async () => {
    const { stream, running } = await beginLong('a');
    const first = await readNext(stream);
    const refused = await client.watch({ 'last-event-id': first?.id ?? '', authorization: '' });
    expect(refused.status).toBe(401);
    running.answer('late');
    expect(await stream.rest()).toEqual([answerOf('late')]);
  });

  test('§15.1 once the session has ended, nobody comes back, and the call is told', async () => {
    const { stream, running } = await beginLong('a');
    const first = await readNext(stream);
    stream.hangUp();
    await expect.poll(() => resumable(first?.id)).toBe(true);
    expect(await client.end()).toBe(204);
    expect((await resume(first?.id)).status).toBe(404);
    running.answer('nobody waits');
  });
});

/** Whether the id is taken: without reading what comes. */
async function resumable(id: string | undefined): Promise<boolean> {
  const stream = await resume(id);
  stream.hangUp();
  return stream.status === 200;
}

describe('which calls outlive their connections', () => {
  test('§15.1 a short call is plain JSON, with nothing to come back to', async () => {
    const answering = client.call('wait', { name: 'a' });
    (await call('a')).answer('soon');
    const answer = await answering;
    expect(answer.isStream).toBe(false);
    expect(JSON.parse(await answer.text())).toEqual(answerOf('soon'));
  });

  test('§15.1 a client that takes no stream waits for its JSON, however long that takes', async () => {
    const answering = client.call(
      'wait',
      { name: 'a' },
      { headers: { accept: 'application/json' } },
    );
    const running = await call('a');
    clock.advance(60_000);
    running.answer('late');
    const answer = await answering;
    expect(answer.isStream).toBe(false);
    expect(JSON.parse(await answer.text())).toEqual(answerOf('late'));
  });

  test.each(['2025-06-18', '2025-03-26'])(
    '§15.1 %s: no event without data, a stream only where there is something to say, with ids then',
    async (protocolVersion) => {
      const older = await openClient(gateway, { protocolVersion });
      const quiet = older.call('wait', { name: 'quiet' });
      const waiting = await call('quiet');
      clock.advance(5000);
      waiting.answer('late');
      expect((await quiet).isStream).toBe(false);

      const answering = older.call('wait', { name: 'speaks' }, { progressToken: 'p' });
      const running = await call('speaks');
      running.progress(1);
      const stream = await answering;
      const first = await readNext(stream);
      expect(first).toMatchObject({
        data: expect.stringContaining('progress'),
        id: expect.any(String),
      });
      stream.hangUp();
      running.answer('late');
      const resumed = await resume(first?.id, older);
      expect(await resumed.rest()).toEqual([answerOf('late')]);
    },
  );

  test('§15.1 2024-11-05 has no ids: who hangs up has cancelled', async () => {
    const old = await openClient(gateway, { protocolVersion: '2024-11-05' });
    const answering = old.call('wait', { name: 'a' }, { progressToken: 'p' });
    const running = await call('a');
    running.progress(1);
    const stream = await answering;
    expect(await readNext(stream)).not.toHaveProperty('id');
    stream.hangUp();
    await expect.poll(() => running.signal.aborted).toBe(true);
    running.answer('nobody waits');
  });

  test('§15.1 a call that nobody came back to for five minutes is told to stop', async () => {
    const { stream, running } = await beginLong('a');
    const first = await readNext(stream);
    stream.hangUp();
    await expect
      .poll(() => gateway.log.some(({ msg, of }) => msg === 'Answered.' && of === 'wait'))
      .toBe(true);
    clock.advance(290_000);
    expect(running.signal.aborted).toBe(false);
    const back = await resume(first?.id);
    await readNext(back);
    clock.advance(290_000);
    expect(running.signal.aborted).toBe(false);
    back.hangUp();
    await expect
      .poll(() => {
        clock.advance(20_000);
        return running.signal.aborted;
      })
      .toBe(true);
    running.answer('nobody waits');
  });

  test('§15.1 an answer is kept for five minutes, then that is what its client is told', async () => {
    const { stream, running } = await beginLong('a', 'a-text');
    const first = await readNext(stream);
    running.answer('late');
    expect(await stream.rest()).toEqual([answerOf('late', 'a-text')]);
    clock.advance(295_000);
    const kept = await resume(first?.id);
    expect(await kept.rest()).toEqual([answerOf('late', 'a-text')]);
    clock.advance(20_000);
    const gone = await resume(first?.id);
    expect(await gone.rest()).toMatchObject([
      { id: 'a-text', error: { code: -32603, data: { reason: 'stream_lost' } } },
    ]);
  });

  test('§15.1 cancelled is cancelled, also by a client whose connection broke', async () => {
    const { stream, running } = await beginLong('a');
    const first = await readNext(stream);
    stream.hangUp();
    expect(await client.cancel(1)).toBe(202);
    await expect.poll(() => running.signal.aborted).toBe(true);
    const resumed = await resume(first?.id);
    expect(await resumed.rest()).toMatchObject([{ id: 1, error: { message: expect.any(String) } }]);
    running.answer('nobody waits');
  });

  test('§15.1 what a guard or an observer would see is the same: the call is counted and logged once', async () => {
    const { stream, running } = await beginLong('a');
    const first = await readNext(stream);
    stream.hangUp();
    running.answer('late');
    await (await resume(first?.id)).rest();
    const metrics = await gateway.request({ path: '/metrics' });
    expect(metrics.text).toMatch(
      /mcp_tool_invocations_total\{[^}]*tool="wait"[^}]*status="success"[^}]*\} 1/,
    );
  });
});

describe('a tool that ends its connection itself (SEP-1699)', () => {
  test('§15.1 its client comes back for the answer', async () => {
    const answering = client.call('wait', { name: 'a' });
    const running = await call('a');
    running.disconnect();
    const stream = await answering;
    const first = await readNext(stream);
    expect(first).toMatchObject({ data: '' });
    expect(await stream.rest()).toEqual([]);
    const resumed = await resume(first?.id);
    running.answer('late');
    expect(await resumed.rest()).toEqual([answerOf('late')]);
  });

  test('§15.1 where it could not, nothing happens', async () => {
    const older = await openClient(gateway, { protocolVersion: '2025-06-18' });
    const answering = older.call('wait', { name: 'a' });
    const running = await call('a');
    running.disconnect();
    running.answer('soon');
    const answer = await answering;
    expect(answer.isStream).toBe(false);
    expect(JSON.parse(await answer.text())).toEqual(answerOf('soon'));
  });
});

describe('how much is kept', () => {
  test('§15.1 of a session 1,000 events: notifications that fell out are missing, the answer is there', async () => {
    const { stream, running } = await beginLong('a');
    const first = await readNext(stream);
    stream.hangUp();
    await expect
      .poll(() => gateway.log.some(({ msg, of }) => msg === 'Answered.' && of === 'wait'))
      .toBe(true);
    for (let at = 1; at <= 1500; at += 1) running.progress(at);
    running.answer('late');
    const resumed = await resume(first?.id);
    const all = await resumed.rest();
    expect(all).toHaveLength(1000);
    expect(all[0]).toMatchObject({ params: { progress: 502 } });
    expect(all.at(-1)).toEqual(answerOf('late'));
  });

  test('§15.1 an answer of more than 1 MiB reaches who is there, and is told to be lost to who comes back', async () => {
    const { stream, running } = await beginLong('a');
    const first = await readNext(stream);
    const text = 'x'.repeat(1_100_000);
    running.answer(text);
    expect(await stream.rest()).toEqual([answerOf(text)]);
    const resumed = await resume(first?.id);
    expect(await resumed.rest()).toMatchObject([
      { id: 1, error: { data: { reason: 'stream_lost' } } },
    ]);
  });

  test('§15.1 what ended first makes room; another session keeps its own', async () => {
    const other = await openClient(gateway);
    const theirs = other.call('wait', { name: 'theirs' }, { progressToken: 'p' });
    (await call('theirs')).progress(1);
    const theirFirst = await readNext(await theirs);
    calls.get('theirs')?.answer('theirs');

    const ids: (string | undefined)[] = [];
    for (const at of [1, 2, 3]) {
      const answering = client.call('wait', { name: `big-${at}` }, { id: at, progressToken: 'p' });
      const running = await call(`big-${at}`);
      running.progress(1);
      const stream = await answering;
      ids.push((await readNext(stream))?.id);
      running.answer('x'.repeat(400_000));
      await stream.rest();
    }
    const [oldest, ...newer] = await Promise.all(
      ids.map(async (id) => (await (await resume(id)).rest()).at(-1)),
    );
    expect(oldest).toMatchObject({ error: { data: { reason: 'stream_lost' } } });
    for (const one of newer) expect(one).toHaveProperty('result');
    const kept = await resume(theirFirst?.id, other);
    expect((await kept.rest()).at(-1)).toEqual(answerOf('theirs'));
  });
});

describe('short streams that were sent whole', () => {
  /** With one notification; resolves to the id with which the stream begins. */
  async function callShort(by: SessionClient, name: string, text: string) {
    const answering = by.call('wait', { name }, { progressToken: 'p' });
    const running = await call(name);
    calls.delete(name);
    running.progress(1);
    const stream = await answering;
    const first = await readNext(stream);
    running.answer(text);
    expect((await stream.rest()).at(-1)).toEqual(answerOf(text));
    return first?.id;
  }

  const comeBack = async (id: string | undefined, by = client) =>
    (await (await resume(id, by)).rest()).at(-1);

  const LOST = { error: { data: { reason: 'stream_lost' } } };
  const LONG_TEXT = 'x'.repeat(60_000);

  test('§15.1 are there as they were, again and again, whatever language they are in', async () => {
    const text = 'Grüße, 你好, \u{1f600}\n\n"x"';
    const id = await callShort(client, 'a', text);
    const other = await callShort(client, 'b', 'another');
    for (const _ of [1, 2]) {
      const resumed = await resume(id);
      const first = await readNext(resumed);
      expect(first).toMatchObject({ id, data: '' });
      expect(await resumed.rest()).toMatchObject([{ params: { progress: 1 } }, answerOf(text)]);
    }
    expect(await comeBack(other)).toEqual(answerOf('another'));
  });

  test('§15.1 are not there any more once the session has ended, and not in another session', async () => {
    const id = await callShort(client, 'a', 'mine');
    const other = await openClient(gateway);
    expect((await resume(id, other)).status).toBe(400);
    expect(await client.end()).toBe(204);
    expect((await resume(id)).status).toBe(404);
  });

  test('§15.1 of a session the last 1 MiB', async () => {
    const oldest = await callShort(client, 'oldest', LONG_TEXT);
    const ids: (string | undefined)[] = [];
    for (let at = 0; at < 17; at += 1) ids.push(await callShort(client, `${at}`, LONG_TEXT));
    expect(await comeBack(oldest)).toMatchObject(LOST);
    expect(await comeBack(ids[1])).toEqual(answerOf(LONG_TEXT));
    expect(await comeBack(ids.at(-1))).toEqual(answerOf(LONG_TEXT));
  });

  test('§15.1 are pushed out by those of users who have many, and of nobody else', async () => {
    const bob = await openClient(gateway, { token: await gateway.issuer.sign({ sub: 'bob' }) });
    const bobs = await callShort(bob, 'bobs', 'bob’s');
    // Sessions of one user, so that it is not the bound of a session that is met.
    const busy = await Promise.all(Array.from({ length: 20 }, () => openClient(gateway)));
    const ids: (string | undefined)[] = [];
    for (let round = 0; round < 8; round += 1) {
      const sent = busy.map((by, at) => callShort(by, `${round}-${at}`, LONG_TEXT));
      ids.push((await Promise.all(sent))[0]);
    }
    expect(await comeBack(ids[0], busy[0])).toMatchObject(LOST);
    expect(await comeBack(ids.at(-1), busy[0])).toEqual(answerOf(LONG_TEXT));
    expect(await comeBack(bobs, bob)).toEqual(answerOf('bob’s'));
  }, 60_000);

  test('§15.1 are kept for five minutes', async () => {
    const id = await callShort(client, 'a', 'mine');
    clock.advance(299_000);
    expect(await comeBack(id)).toEqual(answerOf('mine'));
    const other = await callShort(client, 'b', 'mine');
    clock.advance(300_000);
    expect(await comeBack(other)).toMatchObject(LOST);
  });
});
