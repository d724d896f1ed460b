// §18.4: servers that talk without end: so much of it is looked at in a second, and everybody else is answered.
import type { ServerResponse } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/platform/json.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { flushLoopback } from '../../support/gateway/manual-connection.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { callTool, sessionCaller } from '../../support/upstreams/requests.ts';
import {
  type ScriptedRequest,
  startEvents,
  startScriptedHttp,
  toEvent,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const OFTEN = { interval: 5 };
const RESULT = { content: [{ type: 'text', text: 'done' }] };

const toProgress = ({ message }: ScriptedRequest, progress: number) => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: Object(Object(message.params)._meta).progressToken, progress },
});

/** Writes without end, as fast as it is read. */
function flood(res: ServerResponse, toText: (number: number) => string): Flood {
  let written = 0;
  let isClosed = false;
  res.on('close', () => {
    isClosed = true;
  });
  const write = () => {
    while (!isClosed) {
      let text = '';
      for (let at = 0; at < 100; at += 1) text += toText(written++);
      if (!res.write(text)) return;
    }
  };
  res.on('drain', write);
  write();
  return { isPaused: () => res.writableNeedDrain, isClosed: () => isClosed };
}

interface Flood {
  readonly isPaused: () => boolean;
  readonly isClosed: () => boolean;
}

/** The time stands still: calls that have no answer would not end. */
const underWay: AbortController[] = [];
afterEach(() => {
  for (const call of underWay.splice(0)) call.abort();
});

async function startServer(era: 'session' | 'stateless' = 'session') {
  const clock = manualClock();
  const server = closeAfterTest(await startScriptedHttp(era));
  const { upstream } = closeAfterTest(
    await openHttpUpstream({ url: server.url, timeoutMs: 3_600_000 }, { clock }),
  );
  const floods: Flood[] = [];
  const poured: { write(count: number): void; readonly isClosed: () => boolean }[] = [];
  server.answer('tools/call', (res, request) => {
    const { name, arguments: args } = Object(request.message.params);
    if (name === 'floods') {
      floods.push(flood(startEvents(res), (at) => toEvent(toProgress(request, at))));
    } else if (name === 'pours') {
      let written = 0;
      const next = () => toEvent(toProgress(request, written++));
      startEvents(res);
      poured.push({
        write: (count) => void res.write(Array.from({ length: count }, next).join('')),
        isClosed: () => res.closed,
      });
    } else {
      const count = Object(args).progress ?? 0;
      for (let at = 0; at < count; at += 1) progress.push(toProgress(request, at));
      startEvents(res, ...progress.splice(0), toResult(request, RESULT)).end();
    }
  });
  const progress: object[] = [];

  /** Counts what it hears; `floods` never ends, and `pours` writes what the test wants. */
  function startCall(name: string, caller = sessionCaller(), args = {}) {
    const heard: unknown[] = [];
    const leaving = new AbortController();
    underWay.push(leaving);
    const onProgress = ({ progress: number }: JsonObject) => void heard.push(number);
    const answer = callTool(upstream, caller, name, args, {
      onProgress,
      signal: leaving.signal,
    });
    answer.catch(() => {});
    return { answer, heard };
  }
  return { clock, server, upstream, floods, poured, startCall };
}

const callerOf = (sub: string) =>
  sessionCaller({ user: { sub, claims: { sub }, token: `the token of ${sub}` } });

const sum = (calls: readonly { readonly heard: readonly unknown[] }[]) =>
  calls.reduce((total, { heard }) => total + heard.length, 0);

/** All that is let in has come. */
const settle = () => flushLoopback(1000);

test('§18.4 what a server says beyond the pace waits with it, however small its pieces are', async () => {
  const { clock, server, startCall } = await startServer();
  let written = 0;
  server.answer('tools/call', (res, request) => {
    startEvents(res);
    const next = () => toEvent(toProgress(request, written));
    const write = () => {
      // Each event is a chunk of HTTP of its own.
      do written += next().length;
      while (!res.closed && res.write(next()));
    };
    res.on('drain', write);
    write();
  });
  const { heard } = startCall('trickles');
  for (let second = 1; second <= 50; second += 1) {
    await expect.poll(() => heard.length, OFTEN).toBe(second * 1000);
    clock.advance(1000);
  }
  await settle();
  // An event has some 120 bytes; what the system keeps of a connection is some megabytes.
  expect(written - heard.length * 120).toBeLessThan(14_000_000);
});

test('§18.4 of one stream 1,000 notifications are looked at in a second; beyond that it is paused', async () => {
  const { clock, floods, startCall } = await startServer();
  const { heard } = startCall('floods');
  await expect.poll(() => heard.length).toBe(1000);
  await settle();
  expect(heard).toHaveLength(1000);
  await expect.poll(() => floods[0]?.isPaused()).toBe(true);
  expect(await startCall('any', callerOf('bob'), { progress: 10 }).answer).toEqual(RESULT);
  clock.advance(1000);
  await expect.poll(() => heard.length).toBe(2000);
});

test('§18.4 what was beyond the pace comes later, in its order, and the result after it', async () => {
  const { clock, startCall } = await startServer();
  const { heard, answer } = startCall('any', sessionCaller(), { progress: 2400 });
  for (const count of [1000, 2000]) {
    await expect.poll(() => heard.length).toBe(count);
    clock.advance(1000);
  }
  expect(await answer).toEqual(RESULT);
  expect(heard).toEqual(Array.from({ length: 2400 }, (_, at) => at));
});

test('§18.4 32 streams of one user have the pace of two, and another user is answered meanwhile', async () => {
  const { clock, startCall } = await startServer();
  const calls = Array.from({ length: 32 }, () => startCall('floods', callerOf('ann')));
  await expect.poll(() => sum(calls)).toBeGreaterThanOrEqual(2000);
  const other = startCall('any', callerOf('bob'), { progress: 100 });
  expect(await other.answer).toEqual(RESULT);
  expect(other.heard).toHaveLength(100);
  // The first 16 of each stream wait for no second: a stream that begins late has them whenever it comes.
  await expect.poll(() => Math.min(...calls.map(({ heard }) => heard.length))).toBeGreaterThan(15);
  await settle();
  const before = sum(calls);
  expect(before).toBeLessThanOrEqual(2000 + 32 * 16);
  clock.advance(1000);
  await expect.poll(() => sum(calls) - before).toBe(2000);
  await settle();
  expect(sum(calls) - before).toBe(2000);
});

test('§18.4 streams of all users of a server are looked at 4,000 times in a second', async () => {
  const { startCall } = await startServer();
  const users = ['ann', 'bob', 'cid', 'dan'].map(callerOf);
  const calls = users.flatMap((user) => [startCall('floods', user), startCall('floods', user)]);
  await expect.poll(() => sum(calls)).toBeGreaterThanOrEqual(4000);
  await settle();
  expect(sum(calls)).toBeLessThanOrEqual(4000 + 8 * 16);
  // Who says little waits for nobody.
  const other = startCall('any', callerOf('eve'), { progress: 10 });
  expect(await other.answer).toEqual(RESULT);
});

test('§18.4 many small answers of one user leave others of the server their pace', async () => {
  const { startCall } = await startServer();
  for (let batch = 0; batch < 10; batch += 1) {
    const calls = Array.from({ length: 30 }, () =>
      startCall('any', callerOf('ann'), { progress: 15 }),
    );
    await Promise.all(calls.map(({ answer }) => answer));
  }
  const other = startCall('any', callerOf('bob'), { progress: 100 });
  await expect.poll(() => other.heard.length).toBe(100);
  expect(await other.answer).toEqual(RESULT);
});

test('§18.4 in one turn of the event loop 100 messages are looked at', async () => {
  const { startCall } = await startServer();
  const calls = ['ann', 'bob', 'cid'].map((sub) => startCall('floods', callerOf(sub)));
  let most = 0;
  let before = 0;
  while (before < 1500) {
    await new Promise(setImmediate);
    const now = sum(calls);
    most = Math.max(most, now - before);
    before = now;
  }
  // Two turns may end in between.
  expect(most).toBeLessThanOrEqual(200);
  expect(most).toBeGreaterThan(0);
});

test('§18.4 a stream that is beyond the pace for a minute is given up', async () => {
  const { clock, poured, startCall } = await startServer();
  const { answer, heard } = startCall('pours');
  await expect.poll(() => poured.length).toBe(1);
  const [stream] = poured;
  for (let second = 1; second <= 60; second += 1) {
    // Always a little more than is looked at: what waits to be read would be copied again and again.
    stream?.write(1100);
    await expect.poll(() => heard.length, OFTEN).toBe(1000 * second);
    expect(stream?.isClosed()).toBe(false);
    clock.advance(1000);
  }
  await expect(answer).rejects.toMatchObject({
    failure: 'overloaded',
    message: 'it sent more messages than the gateway takes, for a minute',
  });
  await expect.poll(() => stream?.isClosed()).toBe(true);
}, 180_000);

const CHANGED = toEvent({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });

test.each([
  ['notifications', CHANGED],
  ['comments', ':\n\n'],
  ['events without data', 'data:\n\n'],
  ['events of other names', 'event: other\ndata: x\n\n'],
  ['fields that mean nothing', 'field: x\n\n'],
  ['empty lines', '\n'],
  ['carriage returns', '\r'],
  ['ids', 'id: 1\n\n'],
  ['lines of one event', 'data: x\n'],
  ['answers that nobody waits for', toEvent({ jsonrpc: '2.0', id: 987_654, result: {} })],
])('§18.4 a stream of a session that brings %s without end is paused', async (_what, text) => {
  const { clock, server, upstream, startCall } = await startServer();
  let opened: Flood | undefined;
  server.answer('GET', (res) => {
    opened = flood(startEvents(res), () => text);
  });
  let heard = 0;
  const listener = {
    listChanged() {
      heard += 1;
    },
    resourceUpdated() {},
  };
  const stop = upstream.listen(sessionCaller(), listener);
  await expect.poll(() => opened?.isPaused()).toBe(true);
  await settle();
  expect(opened?.isPaused()).toBe(true);
  expect(heard).toBe(text === CHANGED ? 1000 : 0);
  expect(await startCall('any').answer).toEqual(RESULT);
  clock.advance(1000);
  await settle();
  expect(heard).toBe(text === CHANGED ? 2000 : 0);
  stop();
});
