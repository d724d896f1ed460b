// §18.4, WHATWG HTML §9.2: events are the same with any line end, however their bytes come; what has been read is not kept.
import { expect, test } from 'vitest';
import { createEventBody } from '../../../src/upstreams/http/answer-body.ts';

const EVENTS = 200;

const read = (lineEnd: string, pieceBytes: number) => {
  const messages: string[] = [];
  const problems: string[] = [];
  let noise = 0;
  let mostKept = 0;
  const body = createEventBody({
    maxBytes: 200,
    onMessage: (data) => void messages.push(data),
    onNamedEvent() {},
    onNoise(count) {
      noise += count;
    },
    onEnd() {},
  });
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
