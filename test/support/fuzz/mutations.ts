// Requests that are almost right: what a seed makes of valid ones is the same every time.

import { copyOf, memberOf } from './json-places.ts';
import { type Draft, type Sample, STEPS } from './mutation-steps.ts';
import { below, pick, type Random, randomOf } from './seeded-random.ts';

/** A request as it goes out. */
export interface Envelope {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

export interface Mutation extends Envelope {
  /** From what, and by which steps: for whoever reads of a failure. */
  readonly story: string;
}

/** The mutation number `index` of a seed; the samples must be the same, too. */
export function mutate(samples: readonly Sample[], seed: number, index: number): Mutation {
  const random = randomOf(seed, index);
  const sample = pick(random, samples);
  const draft: Draft = {
    message: copyOf(sample.message),
    headers: { ...sample.headers },
    raws: [],
  };
  const steps = Array.from({ length: 1 + below(random, 3) }, () =>
    pick(random, STEPS)(draft, random, samples),
  );
  if (random() < 0.5) followBody(draft);
  const { body, step } = bytesOf(textOf(draft), random);
  return { headers: draft.headers, body, story: [sample.name, ...steps, step].join('; ') };
}

/** Otherwise most of what is stateless would end at its headers. */
function followBody({ headers, message }: Draft): void {
  const params = memberOf(message, 'params');
  const method = memberOf(message, 'method');
  const subject = memberOf(params, 'name') ?? memberOf(params, 'uri');
  if ('mcp-method' in headers && typeof method === 'string' && /^[!-~]+$/.test(method)) {
    headers['mcp-method'] = method;
  }
  if ('mcp-name' in headers && typeof subject === 'string') {
    headers['mcp-name'] = `=?base64?${Buffer.from(subject).toString('base64')}?=`;
  }
}

/** Mostly as it is; sometimes cut off, or with a byte of it changed. */
function bytesOf(text: string, random: Random): { body: string | Buffer; step: string } {
  const fate = random();
  if (fate < 0.9) return { body: text, step: 'sent whole' };
  const bytes = Buffer.from(text);
  const at = below(random, bytes.length);
  if (fate < 0.95) return { body: bytes.subarray(0, at), step: `cut off at ${at}` };
  bytes[at] = below(random, 256);
  return { body: bytes, step: `byte ${at} became ${bytes[at]}` };
}

function textOf({ message, raws }: Draft): string {
  let text = JSON.stringify(message) ?? '';
  // What came last may hold what came before.
  for (const { marker, text: given } of raws.toReversed()) {
    text = text.replaceAll(JSON.stringify(marker), () => given);
  }
  return text;
}
