// §12: replies that nobody reads end their connections.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { StallDetector } from '../../../src/http/server/client-connections.ts';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { startGateway } from '../../support/gateway/gateway.ts';
import {
  flushLoopback,
  openConnection,
  postHead,
} from '../../support/gateway/manual-connection.ts';
import { statusesOf } from '../../support/gateway/raw-http.ts';
import { useFreshGateway } from '../../support/gateway/use-gateway.ts';

const MEBIBYTE = 1_048_576;
/** Far more than the system's own buffers take. */
const COUNT = 12;
let ran = 0;
/** The first calls are answered when all of them run: one answer that waits holds up what comes after it. */
let allRan: Promise<void>;
let answerAll: () => void;
const catalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'large',
      description: 'Two megabytes.',
      inputSchema: { type: 'object' },
      async run() {
        ran++;
        if (ran === COUNT) answerAll();
        await allRan;
        return { content: [{ type: 'text', text: 'x'.repeat(2 * MEBIBYTE) }] };
      },
    }),
    defineTool({
      name: 'talkative',
      description: 'Says a lot, then fifteen megabytes.',
      inputSchema: { type: 'object' },
      async run(_args, { progress }) {
        // More than the system's own buffers take: the result waits behind it.
        for (let line = 0; line < 200; line += 1) {
          progress(line, 200, 'x'.repeat(100_000));
          await nextTurn();
        }
        ran++;
        return { content: [{ type: 'text', text: 'x'.repeat(15 * MEBIBYTE) }] };
      },
    }),
    defineTool({
      name: 'huge',
      description: 'Fifteen megabytes, most of which the system does not take.',
      inputSchema: { type: 'object' },
      run() {
        ran++;
        return { content: [{ type: 'text', text: 'x'.repeat(15 * MEBIBYTE) }] };
      },
    }),
  ],
});

let clock: ManualClock;
const gateway = useFreshGateway(() => {
  clock = manualClock();
  return { deps: { clock, catalog } };
});
let port: number;
let call: string;
const sockets: Socket[] = [];

beforeEach(async () => {
  ran = 0;
  allRan = new Promise((resolve) => {
    answerAll = resolve;
  });
  port = await gateway.listen();
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"large"}}';
  const own = { token: await gateway.issuer.sign(), session: await gateway.open() };
  call = postHead({ path: '/mcp', ...own, length: body.length }) + body;
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

interface Reader {
  readonly socket: Socket;
  readonly isClosed: boolean;
  readonly received: () => string;
}

/** A connection that does not read until it is told to. */
async function openUnread(): Promise<Reader> {
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.pause();
  const chunks: Buffer[] = [];
  let isClosed = false;
  socket.on('data', (chunk) => chunks.push(chunk)).pause();
  socket.on('close', () => {
    isClosed = true;
  });
  return {
    socket,
    get isClosed() {
      return isClosed;
    },
    received: () => Buffer.concat(chunks).toString('latin1'),
  };
}

/** Calls whose answers wait: some of their bytes in the system's buffers, most of them not. */
async function askMany({ socket }: Reader): Promise<void> {
  for (let at = 0; at < COUNT; at++) socket.write(call);
  const answered = () => gateway.log.filter(({ of }) => of === 'large').length;
  await expect.poll(answered).toBe(COUNT);
  await flushLoopback();
}

describe('a caller who reads no replies', () => {
  test('§12 is cut off after 30 s, and not before', async () => {
    const reader = await openUnread();
    await askMany(reader);
    clock.advance(29_000);
    await flushLoopback();
    clock.advance(3000);
    reader.socket.resume();
    await expect.poll(() => reader.isClosed).toBe(true);
    expect(reader.received().length).toBeLessThan(COUNT * 2 * MEBIBYTE);
  });

  test('§12 gets them all when it takes them after 29 s, in their order', async () => {
    const reader = await openUnread();
    await askMany(reader);
    clock.advance(29_000);
    reader.socket.resume();
    await expect.poll(() => reader.received().length).toBeGreaterThan(COUNT * 2 * MEBIBYTE);
    expect(statusesOf(reader.received())).toEqual(Array(COUNT).fill(200));
    clock.advance(60_000);
    await flushLoopback();
    expect(reader.isClosed).toBe(false);
  });

  test('§12 has no more requests worked on than those whose answers are 1 MiB', async () => {
    const reader = await openUnread();
    await askMany(reader);
    for (let at = 0; at < 10; at++) {
      reader.socket.write(call);
      await flushLoopback();
    }
    expect(ran).toBe(COUNT);
    reader.socket.resume();
    await expect.poll(() => ran).toBe(COUNT + 10);
    const all = COUNT + 10;
    await expect.poll(() => reader.received().length).toBeGreaterThan(all * 2 * MEBIBYTE);
    expect(statusesOf(reader.received())).toEqual(Array(all).fill(200));
  });

  test('§12 is not read any further', async () => {
    const reader = await openUnread();
    await askMany(reader);
    // So large that few come at once: more than 64 that wait would end the connection.
    const more = call.replace('\r\n', `\r\nX-Filler: ${'x'.repeat(15_000)}\r\n`);
    for (let at = 0; at < 2000; at++) reader.socket.write(more);
    await flushLoopback(200);
    // What the server does not read waits here.
    expect(reader.socket.writableLength).toBeGreaterThan(10 * MEBIBYTE);
    expect(reader.isClosed).toBe(false);
    expect(ran).toBe(COUNT);
  });
});

test.each(['huge', 'talkative'])(
  '§12 replies of one user that are not read take 32 MiB: beyond that the slowest loses its connection (%s)',
  async (name) => {
    const endsWithResult = ({ received }: Reader) => received().slice(-100).includes('x"}]}');

    async function askOne(sub: string): Promise<Reader> {
      const token = await gateway.issuer.sign({ sub });
      const session = await gateway.open({ token });
      const params = { name, _meta: { progressToken: 'p' } };
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      const reader = await openUnread();
      const before = ran;
      const headers = { accept: 'application/json, text/event-stream' };
      const head = postHead({ path: '/mcp', token, session, headers, length: body.length });
      reader.socket.write(head + body);
      await expect.poll(() => ran).toBe(before + 1);
      await flushLoopback(200);
      clock.advance(1000);
      return reader;
    }

    const other = await askOne('bob');
    const first = await askOne('ann');
    const second = await askOne('ann');
    const third = await askOne('ann');
    first.socket.resume();
    await expect.poll(() => first.isClosed).toBe(true);
    expect(endsWithResult(first)).toBe(false);
    for (const reader of [other, second, third]) {
      reader.socket.resume();
      await expect.poll(() => endsWithResult(reader)).toBe(true);
    }
  },
);

describe('how fast replies must be read', () => {
  /** Seconds after which a caller is cut off who takes so many bytes at each of these seconds. */
  function cutOffAfter(bytes: number, every = 1): number | undefined {
    const detector = new StallDetector();
    let taken = 0;
    for (let second = 0; second <= 300; second++) {
      if (second % every === 0) taken += bytes;
      if (detector.checkProgress({ unsentBytes: 1, sentBytes: taken }) === 'stalled') return second;
    }
    return undefined;
  }

  test.each([
    [0, 1, 30],
    [1024, 1, undefined],
    [1000, 1, 60],
    [31 * 1024, 29, undefined],
    [100_000, 31, 30],
    [1, 1, 60],
  ])('§12 %i bytes each %i s: ended after %s s', (bytes, every, wanted) => {
    expect(cutOffAfter(bytes, every)).toBe(wanted);
  });

  test('§12 who had nothing to take begins anew', () => {
    const detector = new StallDetector();
    for (let time = 0; time < 10; time++) {
      for (let second = 0; second < 29; second++) {
        expect(detector.checkProgress({ unsentBytes: 1, sentBytes: 0 })).toBe('moving');
      }
      expect(detector.checkProgress({ unsentBytes: 0, sentBytes: 0 })).toBe('moving');
    }
  });
});

test('§4.3 neither an answer that nobody takes nor a body that stalls outlasts the drain', async () => {
  const drainClock = manualClock();
  const closing = await startGateway({ deps: { clock: drainClock, catalog } });
  const drainPort = await closing.listen();
  const session = await closing.open();
  const token = await closing.issuer.sign();
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"large"}}';
  const head = postHead({ path: '/mcp', token, session, length: body.length });
  const unread = await openConnection(drainPort, '');
  unread.socket.pause();
  for (let at = 0; at < COUNT; at++) unread.send(head + body);
  await expect.poll(() => ran).toBe(COUNT);
  const stalled = await openConnection(drainPort, `${head}{`);
  await flushLoopback();

  const closed = closing.close();
  await flushLoopback();
  drainClock.advance(10_000);
  await closed;
  await stalled.closed;
  unread.socket.destroy();
});
