// §18.4, WHATWG HTML §9.2: events are the same with any line end, however their bytes come; what has been read is not kept.
import { expect, test } from 'vitest';
import { GATEWAY_CALLER } from '../../../src/mcp/upstream/upstream.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { openServerPool } from '../../../src/platform/outbound/outbound-network.ts';
import { createEventCursor, EventSplitter } from '../../../src/servers/http/event-stream.ts';
import { Exchange } from '../../../src/servers/http/exchange.ts';
import { MessagePace } from '../../../src/servers/transport/message-pace.ts';
import { createAnswerMemory } from '../../../src/servers/transport/process-share.ts';

const EVENTS = 200;

const read = (lineEnd: string, pieceBytes: number) => {
  const messages: string[] = [];
  const problems: string[] = [];
  let noise = 0;
  let mostKept = 0;
  const reader = {
    onEventData: (data: readonly Uint8Array[]) =>
      void messages.push(Buffer.concat(data).toString()),
    onNamedEvent() {},
    onNoise(count: number) {
      noise += count;
    },
    openCursor: () => undefined,
  };
  const body = new EventSplitter(200, reader);
  const lines = Array.from({ length: EVENTS }, (_, index) => [
    'event: message',
    `data: {"é":${index},`,
    'data: "next": 1}',
    '',
  ]).flat();
  const bytes = Buffer.from(lines.map((line) => line + lineEnd).join(''));
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const problem = body.add(bytes.subarray(at, at + pieceBytes));
    if (problem !== undefined) problems.push(problem);
    mostKept = Math.max(mostKept, body.keptBytes());
  }
  return { messages, problems, noise, mostKept, kept: body.keptBytes() };
};

test.each(
  ['\n', '\r\n', '\r'].flatMap((lineEnd) =>
    [1, 2, 3, 7, 16, 61, 1000, 100_000].map((size) => ({ lineEnd, size })),
  ),
)('§18.4 events with line ends $lineEnd, $size bytes at a time', ({ lineEnd, size }) => {
  const { messages, problems, noise, mostKept, kept } = read(lineEnd, size);
  expect(messages).toEqual(
    Array.from({ length: EVENTS }, (_, index) => `{"é":${index},\n"next": 1}`),
  );
  expect(problems).toEqual([]);
  expect(noise).toBe(0);
  expect(kept).toBe(0);
  expect(mostKept).toBeLessThan(200);
});

test('§18.4 events: a line end that an empty chunk divides is one', () => {
  const { messages, body } = openSplitter();
  for (const chunk of ['data: {\r', '', '\ndata: }\r\n\r\n']) body.add(Buffer.from(chunk));
  expect(messages).toEqual(['{\n}']);
});

test('§18.4 events: many small chunks before, between and behind large ones stay in their order', () => {
  const { messages, body } = openSplitter(100_000);
  const sizes = [...Array<number>(20).fill(7), 9000, 3, 3, 3, 8192, 1, 40_000, 2];
  const text = 'abcdefghijklmnopqrstuvw'.repeat(3000);
  let at = 0;
  body.add(Buffer.from('data: '));
  for (const size of sizes) {
    body.add(Buffer.from(text).subarray(at, at + size));
    at += size;
  }
  body.add(Buffer.from('\n\n'));
  expect(messages).toEqual([text.slice(0, at)]);
});

test('§18.3 resuming: an event without data does not make the one that follows it with its id a repetition', () => {
  const { messages, body, cursor } = openSplitter();
  body.add(Buffer.from('id: 7\n\nid: 7\ndata: {}\n\n'));
  expect(messages).toEqual(['{}']);
  expect(cursor.lastId()).toBe('7');
  body.add(Buffer.from('id: 7\ndata: {}\n\n'));
  expect(messages).toEqual(['{}']);
});

function openSplitter(maxBytes = 200) {
  const messages: string[] = [];
  const cursor = createEventCursor(32);
  const body = new EventSplitter(maxBytes, {
    onEventData: (data) => void messages.push(Buffer.concat(data).toString()),
    onNamedEvent() {},
    onNoise() {},
    openCursor: () => cursor,
  });
  return { messages, body, cursor };
}

/** Pieces that each are one event, or nearly, and what is in them. */
const PIECES: readonly (readonly [piece: string, messages: readonly string[]])[] = [
  ['data: {"a":1}\n\n', ['{"a":1}']],
  ['data:{"a":1}\n\n', ['{"a":1}']],
  ['event: message\ndata: {"é":1}\n\n', ['{"é":1}']],
  ['event: message\r\ndata: {"a":"x\\n"}\r\n\r\n', ['{"a":"x\\n"}']],
  ['event: other\ndata: {"a":1}\n\n', []],
  ['data: {"a":1}\n\ndata: {"b":1}\n\n', ['{"a":1}', '{"b":1}']],
  ['data: {"a":\ndata: 1}\n\n', ['{"a":\n1}']],
  ['data: {"a":1}\rdata: \n\n', ['{"a":1}\n']],
  ['id: 7\ndata: {"a":1}\n\n', ['{"a":1}']],
  ['data: {"a":1}\n', []],
  ['data: {"a":1}\nevent: other\n\n', []],
  [': x\n\n', []],
];

test('§18.4 events: pieces that are one event each are read as any others', () => {
  for (const [first, messages] of PIECES) {
    for (const [second, more] of PIECES) {
      const found: unknown[] = [];
      const send = openAnswer((value) => void found.push(value));
      send(first);
      // What is left open goes on.
      if (!/\n\r?\n$/.test(first)) send('event: other\n\n');
      send(second);
      expect(found).toEqual([...messages, ...more].map((text) => JSON.parse(text)));
    }
  }
});

/** Nothing is sent over it. */
const pool = openServerPool(new URL('http://127.0.0.1/mcp'), {
  ca: undefined,
  connectTimeoutMs: 900,
  outbound: { httpProxy: undefined, httpsProxy: undefined, noProxy: [] },
  clock: systemClock,
});

/** Begins an answer of events. */
function openAnswer(onValue: (value: unknown) => void) {
  const server = {
    name: 'server',
    url: 'http://127.0.0.1/mcp',
    share: {
      answerMemory: createAnswerMemory(systemClock, 200),
      messagePace: new MessagePace(systemClock),
    },
    sendAtTurnEnd: (one: Exchange) => one.send(),
    inFlight: 0,
    maxBytes: 200,
    hasToken: false,
    pool,
  };
  const listener = {
    caller: GATEWAY_CALLER,
    onMessage(value: unknown) {
      onValue(value);
      return 1;
    },
    onEnd: (end: unknown) => onValue(end),
  };
  const exchange = new Exchange(server, listener, '/mcp');
  exchange.onStart(200, { 'content-type': 'text/event-stream' });
  return (piece: string) => exchange.onData(Buffer.from(piece));
}
