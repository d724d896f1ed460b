// §27: what an approval is bound to, and how it is shown.

import { hash } from 'node:crypto';
import { hasHalfCharacters, toCanonicalJson } from '../../platform/canonical-json.ts';
import { parseExactJson, writeExactJson } from '../../platform/exact-json.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import type { JsonObject } from '../../platform/json.ts';
import { readExact } from '../../platform/noted-json.ts';
import type { CallToApprove } from './approvals.ts';

/** Characters of arguments in their canonical form: nobody reads more before they agree. */
export const MAX_ARGUMENTS = 65_536;

export interface CallFacts extends Pick<CallToApprove, 'owner' | 'clientId' | 'view' | 'name'> {
  readonly server: string;
  /** By the server's own name. */
  readonly tool: string;
  /** As the server wrote it. */
  readonly definition: unknown;
  readonly args: JsonObject;
  /** What of `_meta` its server gets. */
  readonly meta: JsonObject | undefined;
}

/** Or the sentence that says why nobody can be asked about it. */
export function describeCall({
  definition,
  args: sentArgs,
  meta: sentMeta,
  ...facts
}: CallFacts): CallToApprove | string {
  const { server, tool } = facts;
  try {
    // With numbers as they are spelled: to its server 7205759403792793601 is another than 7205759403792793600.
    const exactArgs = readExact(sentArgs);
    const exactMeta = sentMeta && readExact(sentMeta);
    const args = toCanonicalJson(exactArgs);
    const meta = exactMeta && toCanonicalJson(exactMeta);
    if (args.length > MAX_ARGUMENTS)
      return `its arguments have more than ${MAX_ARGUMENTS} characters`;
    for (const [part, text] of [
      ['arguments have', args],
      ['_meta has', meta],
    ]) {
      if (text !== undefined && hasHalfCharacters(text))
        return `its ${part} a half of a character (a surrogate without its other half)`;
    }
    const bound = {
      server,
      tool,
      definition: hashHex(toCanonicalJson(definition)),
      arguments: exactArgs,
      ...(exactMeta && { _meta: exactMeta }),
    };
    return { ...facts, args, meta, digest: hashHex(toCanonicalJson(bound)) };
  } catch (error) {
    if (error instanceof RangeError) return 'its arguments nest too deep';
    throw error;
  }
}

const hashHex = (text: string): string => hash('sha256', text, 'hex');

/** Arguments or `_meta` as people are shown them: one line for short ones, and nothing in them that is not seen. */
export const showJson = (canonical: string): string =>
  escapeInvisible(
    canonical.length <= SHORT ? canonical : writeExactJson(parseExactJson(canonical), 2),
  );

/** Characters. */
const SHORT = 80;
