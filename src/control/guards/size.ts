// §26.4: guard against messages that are too large for a model.

import { wholeNumber } from '../../config/file/shapes/scalar.ts';
import { defineMember } from '../../config/file/shapes/shape.ts';
import { RawJson } from '../../platform/exact-json.ts';
import { isObject } from '../../platform/json.ts';
import { type AskedMessage, type Decision, PASS } from './ask-guard.ts';
import { A_VALUE, defineBuiltInGuard, MANY, type Steps } from './define-guard.ts';

export interface SizeUse {
  readonly kind: 'size';
  readonly maxBytes: number;
}

const MAX_SIZE_BYTES = 67_108_864;

const maxBytesMember = defineMember(
  'maxBytes',
  wholeNumber(1, MAX_SIZE_BYTES),
  'the most bytes of a message, as JSON.',
);

export const sizeGuard = defineBuiltInGuard<SizeUse>({
  kind: 'size',
  summary: 'bounds messages',
  members: [maxBytesMember],
  read({ has, read, report }) {
    const maxBytes = read(maxBytesMember);
    if (!has(maxBytesMember)) report('"maxBytes" is missing: the most bytes of a message.');
    return maxBytes === undefined ? undefined : { kind: 'size', maxBytes };
  },
  createJudge: ({ maxBytes }) =>
    function* judgeSize({ value, phase }: AskedMessage): Steps<Decision> {
      const bytes = yield* measure(value);
      if (bytes <= maxBytes) return PASS;
      const what = phase === 'request' ? 'request' : 'answer';
      return {
        kind: 'refuse',
        message: `The ${what} has ${bytes} bytes; at most ${maxBytes} are allowed. Request less at once.`,
      };
    },
});

/** The size of the value as JSON, in bytes. */
function* measure(value: unknown): Steps<number> {
  if (typeof value === 'string') return yield* measureText(value);
  const isList = Array.isArray(value);
  if (!isList && !isObject(value)) return countBytes(value);
  let bytes = BRACKETS;
  let count = 0;
  for (const name of isList ? value.keys() : Object.keys(value)) {
    const member: unknown = Reflect.get(value, name);
    if (member === undefined && !isList) continue;
    if (count > 0) bytes += COMMA;
    count += 1;
    if (count % MANY === 0) yield MANY * A_VALUE;
    if (typeof name === 'string') bytes += countBytes(name) + COLON;
    bytes += isShort(member) ? countBytes(member) : yield* measure(member);
  }
  yield (count % MANY) * A_VALUE;
  return bytes;
}

const BRACKETS = 2;
const COMMA = 1;
const COLON = 1;
const QUOTES = 2;
/** Maximum characters of a text per step. */
const PIECE = 65_536;

/** True for short strings and values without members. */
const isShort = (value: unknown): boolean =>
  typeof value === 'string' ? value.length < A_VALUE : !Array.isArray(value) && !isObject(value);

const countBytes = (value: unknown): number =>
  Buffer.byteLength(value instanceof RawJson ? value.text : (JSON.stringify(value) ?? 'null'));

function* measureText(text: string): Steps<number> {
  let bytes = QUOTES;
  for (let at = 0; at < text.length; ) {
    // Surrogate pairs stay together.
    const last = text.charCodeAt(at + PIECE - 1);
    const isCut = last >= 0xd800 && last <= 0xdbff;
    const piece = text.slice(at, at + PIECE + (isCut ? 1 : 0));
    bytes += countBytes(piece) - QUOTES;
    at += piece.length;
    yield piece.length;
  }
  return bytes;
}
