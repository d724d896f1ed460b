// §26.4: messages that are larger than what a model should read.

import { writeExactJson } from '../../../platform/exact-json.ts';
import { type Decision, PASS } from '../decision.ts';
import type { AskGuard } from '../run-guard.ts';

export const createSizeGuard =
  (maxBytes: number): AskGuard =>
  ({ value, phase }): Decision => {
    const text = writeExactJson(value);
    // A character takes three bytes at most, so most are small enough at a glance.
    if (text.length * 3 <= maxBytes) return PASS;
    const bytes = Buffer.byteLength(text);
    if (bytes <= maxBytes) return PASS;
    const what = phase === 'request' ? 'request' : 'answer';
    return {
      kind: 'refuse',
      message: `The ${what} has ${bytes} bytes, and ${maxBytes} are allowed. Ask for less at once.`,
    };
  };
