// §26.4: messages that are larger than what a model should read.

import { writeExactJson } from '../../../platform/exact-json.ts';
import { isObject } from '../../../platform/json.ts';
import type { AskGuard } from '../ask-guard.ts';
import { type AskedMessage, type Decision, PASS } from '../ask-guard.ts';
import { A_VALUE, createRunWork, type RunWork, type Steps } from './run-work.ts';

export function createSizeGuard(maxBytes: number, run: RunWork = createRunWork()): AskGuard {
  function* judge({ value, phase }: AskedMessage): Steps<Decision> {
    const bytes = yield* measure(value);
    if (bytes <= maxBytes) return PASS;
    const what = phase === 'request' ? 'request' : 'answer';
    return {
      kind: 'refuse',
      message: `The ${what} has ${bytes} bytes, and ${maxBytes} are allowed. Ask for less at once.`,
    };
  }

  return (message, options) => run(judge(message), options);
}

/** Bytes of the value as JSON. */
function* measure(value: unknown): Steps<number> {
  if (typeof value === 'string') return yield* measureText(value);
  const isList = Array.isArray(value);
  if (!isList && !isObject(value)) return Buffer.byteLength(writeExactJson(value));
  let bytes = BRACKETS;
  let count = 0;
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined && !isList) continue;
    if (count > 0) bytes += COMMA;
    count += 1;
    if (!isList) bytes += countBytes(name) + COLON;
    bytes += isShort(member) ? countBytes(member) : yield* measure(member);
  }
  yield count * A_VALUE;
  return bytes;
}

const BRACKETS = 2;
const COMMA = 1;
const COLON = 1;
const QUOTES = 2;
/** Characters of a text that are written at a time. */
const PIECE = 65_536;

const isShort = (value: unknown): value is string =>
  typeof value === 'string' && value.length < A_VALUE;

const countBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text));

function* measureText(text: string): Steps<number> {
  let bytes = QUOTES;
  for (let at = 0; at < text.length; ) {
    // Both halves of a character are written together.
    const isCut = isFirstHalf(text.charCodeAt(at + PIECE - 1));
    const piece = text.slice(at, at + PIECE + (isCut ? 1 : 0));
    bytes += countBytes(piece) - QUOTES;
    at += piece.length;
    yield piece.length;
  }
  return bytes;
}

const isFirstHalf = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;
