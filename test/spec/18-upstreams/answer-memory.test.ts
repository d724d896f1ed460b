// Answers that a server does not finish: what they take is bounded for each user and for all, and who asked for little
// is not among those who pay.
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createAnswerMemory } from '../../../src/servers/transport/process-share.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { flushLoopback } from '../../support/gateway/manual-connection.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { type CatalogGateway, startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { sendJson, startRawServer } from '../../support/upstreams/raw-server.ts';

const MEBIBYTE = 1_048_576;
const TIMEOUT = 3_600_000;

interface Stalled {
  /** Sends the rest of it. */
  finish(): void;
  readonly isSent: boolean;
  readonly isClosed: boolean;
}

let clock: ManualClock;
let gateway: CatalogGateway;
let stalled: Map<string, Stalled>;

beforeEach(async () => {
  clock = manualClock();
  stalled = new Map();
  const server = closeAfterTest(
    await startRawServer((res, id, { params }) => {
      const { key = '', mebibytes = 0, isEvent = false, noise } = Object(params.arguments);
      stalled.set(
        key,
        noise === undefined
          ? startAnswer(res, id, mebibytes * MEBIBYTE, isEvent)
          : startNoise(res, noise, mebibytes * MEBIBYTE),
      );
    }),
  );
  const file = { mcpServers: { one: { url: server.url, timeout: TIMEOUT } } };
  gateway = await startForTest({ file, clock });
});

/** Most of an answer, in JSON or as an event. */
function startAnswer(res: ServerResponse, id: number, bytes: number, isEvent: boolean): Stalled {
  let isSent = false;
  let isClosed = false;
  res.on('close', () => {
    isClosed = true;
  });
  const type = isEvent ? 'text/event-stream' : 'application/json';
  res.writeHead(200, { 'content-type': type });
  const begin = `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`;
  res.write(`${isEvent ? 'data: ' : ''}${begin}${'x'.repeat(bytes)}`, () => {
    isSent = true;
  });
  return {
    finish: () => void res.end(`"}]}}${isEvent ? '\n\n' : ''}`),
    get isSent() {
      return isSent;
    },
    get isClosed() {
      return isClosed;
    },
  };
}

/** What of a stream of events is none. */
function startNoise(res: ServerResponse, text: string, bytes: number): Stalled {
  res.writeHead(200, { 'content-type': 'text/event-stream' });
  res.write(text.repeat(bytes / text.length));
  return { finish: () => void res.destroy(), isSent: true, isClosed: false };
}

/** The time stands still: calls that have no answer would not end. */
afterEach(() => {
  for (const { finish: end } of stalled.values()) end();
});

interface Called {
  readonly key: string;
  readonly answer: Promise<Result>;
}

interface Result {
  readonly isError?: boolean;
  readonly content: readonly { readonly text: string }[];
}

/** Resolves when most of the answer has come in, and a second later is measured how fast it comes. */
async function startCall(
  sub: string,
  key: string,
  mebibytes: number,
  isEvent = false,
  noise?: string,
) {
  const token = await gateway.issuer.sign({ sub });
  const session = await gateway.open({ token });
  const params = { name: 'one__any', arguments: { key, mebibytes, isEvent, noise } };
  const answer = gateway
    .rpc({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { session, token })
    .then(({ json }): Result => json.result);
  await expect.poll(() => stalled.get(key)?.isSent).toBe(true);
  await flushLoopback();
  clock.advance(1000);
  return { key, answer } satisfies Called;
}

const isClosed = ({ key }: Called) => stalled.get(key)?.isClosed;

async function finish({ key, answer }: Called): Promise<number> {
  stalled.get(key)?.finish();
  return (await answer).content[0]?.text.length ?? 0;
}

const expectGivenUp = async ({ answer }: Called) =>
  expect(await answer).toMatchObject({
    isError: true,
    content: [
      { text: expect.stringContaining('this one came the slowest. The call may have been done') },
    ],
  });

test.each([
  ['answers', false],
  ['events', true],
])(
  "§18.4 unfinished %s of one user may take 16 MiB: beyond that the slowest call ends, and nobody else's",
  async (_what, isEvent) => {
    const other = await startCall('bob', 'other', 7, isEvent);
    const first = await startCall('ann', 'first', 7, isEvent);
    const second = await startCall('ann', 'second', 7, isEvent);
    expect([other, first, second].map(isClosed)).toEqual([false, false, false]);
    const third = await startCall('ann', 'third', 7, isEvent);
    await expectGivenUp(first);
    await expect.poll(() => isClosed(first)).toBe(true);
    expect(await Promise.all([other, second, third].map(finish))).toEqual(
      Array(3).fill(7 * MEBIBYTE),
    );
    expect(gateway.log.filter(({ msg }) => msg.startsWith('A call to one failed'))).toHaveLength(1);
  },
);

test('§18.4 unfinished answers of all users may take 64 MiB', async () => {
  const first = await startCall('user-0', 'first', 7);
  const calls: Called[] = [];
  for (let number = 1; number < 9; number += 1) {
    calls.push(await startCall(`user-${number}`, `call ${number}`, 7));
  }
  expect(isClosed(first)).toBe(false);
  calls.push(await startCall('user-9', 'last', 7));
  await expectGivenUp(first);
  expect(calls.map(isClosed)).toEqual(Array(9).fill(false));
});

test('§18.4 an answer that comes while others stall has room', async () => {
  const stalls = [await startCall('ann', 'first', 7), await startCall('ann', 'second', 7)];
  const whole = await startCall('ann', 'whole', 7);
  expect(await finish(whole)).toBe(7 * MEBIBYTE);
  expect(stalls.map(isClosed).sort()).toEqual([false, true]);
});

test.each([
  ['empty lines', '\n'],
  ['long fields that mean nothing', `id: ${'1'.repeat(1000)}\n\n`],
])("§18.4 %s in a stream take no memory, and end nobody's call", async (_what, noise) => {
  const other = await startCall('bob', 'other', 7);
  const noisy = await startCall('ann', 'noisy', 80, true, noise);
  await flushLoopback(1000);
  expect(await finish(other)).toBe(7 * MEBIBYTE);
  clock.advance(TIMEOUT);
  expect(await noisy.answer).toMatchObject({ isError: true });
});

test('§18.4 an answer of over 500,000 values of JSON fails its call, however few bytes they are', async () => {
  const server = closeAfterTest(
    await startRawServer((res, id, { params }) => {
      const { values = 0 } = Object(params.arguments);
      sendJson(res, { id, result: { content: [], values: Array(values).fill([]) } });
    }),
  );
  const values = await startForTest({ file: { mcpServers: { one: { url: server.url } } } });
  const session = await values.open();
  const call = async (count: number) => {
    const params = { name: 'one__any', arguments: { values: count } };
    return (await values.call(session, 'tools/call', params)).json.result;
  };
  expect((await call(499_000)).values).toHaveLength(499_000);
  expect(await call(500_000)).toMatchObject({ isError: true });
});

test('§18.4 lists of one server take nothing of what those of another have', () => {
  const memory = createAnswerMemory(clock, 8 * MEBIBYTE);
  const dropped: string[] = [];
  const list = (server: string, name: string) =>
    memory.open({ server }, () => void dropped.push(name));
  const slow = list('b', 'slow');
  slow.note(8 * MEBIBYTE, 8 * MEBIBYTE);
  clock.advance(1000);
  for (const name of ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'])
    list('a', name).note(8 * MEBIBYTE, 8 * MEBIBYTE);
  expect(dropped).toEqual(['one', 'two', 'three', 'four', 'five', 'six']);
});
