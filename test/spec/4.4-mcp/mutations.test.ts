// Bad input: requests that were valid once, in both eras. MUTATIONS_SEED and MUTATIONS_COUNT try
// others, and more of them (LONG_TESTS=true: 10,000); a failure says what to set.
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { inject } from 'light-my-request';
import { expect, test } from 'vitest';
import { createLog } from '../../../src/platform/log.ts';
import { createEveryFeatureCatalog } from '../../support/catalogs/every-feature-catalog.ts';
import type { Sample } from '../../support/fuzz/mutation-steps.ts';
import { type Mutation, mutate } from '../../support/fuzz/mutations.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { chooseCount } from '../../support/tools/long-run.ts';
import { sessionSamples, statelessSamples, WITH_A_FORM } from './sample-requests.ts';

const SEED = Number(process.env.MUTATIONS_SEED ?? 20_260_728);
const COUNT = Number(process.env.MUTATIONS_COUNT ?? chooseCount(500, 10_000));
const IN_FLIGHT = 64;
/** Far more than the slowest call takes. */
const CALL_LIMIT_MS = 10_000;
const TOO_BUSY = /receiving too many requests/;
/** What the sessions here say of a tool that asks: their clients declare nothing. */
const CANNOT_BE_ASKED = /^The client did not declare |^This needs a response from the client/;

let gateway: TestGateway;
let errors: string[];

interface Heard {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

async function start(env: Readonly<Record<string, string>>): Promise<void> {
  errors = [];
  const write = (line: string) => void errors.push(line);
  gateway = closeAfterTest(
    await startGateway({
      env: { RATE_LIMIT_ENABLED: 'false', MCP_STREAMS: 'true', METRICS_ENABLED: 'false', ...env },
      deps: {
        catalog: createEveryFeatureCatalog().catalog,
        log: createLog('error', { destination: { write } }),
      },
    }),
  );
}

async function send({ headers, body }: Pick<Mutation, 'headers' | 'body'>): Promise<Heard> {
  const leave = new AbortController();
  const listens = body.includes('subscriptions/listen');
  const answer = await inject(gateway.gateway.handler, {
    method: 'POST',
    url: '/mcp',
    headers: { host: new URL(gateway.baseUrl).host, ...headers },
    payload: body,
    // Such a stream has no end: what it says first is enough.
    ...(listens && { signal: leave.signal, payloadAsStream: true }),
  });
  const type = String(answer.headers['content-type'] ?? '');
  if (!listens) return { status: answer.statusCode, type, text: answer.payload };
  const pieces: string[] = [];
  for await (const piece of answer.stream()) {
    pieces.push(String(piece));
    if (type === 'text/event-stream') break;
  }
  leave.abort();
  return { status: answer.statusCode, type, text: pieces.join('') };
}

/** What is wrong with an answer; undefined when nothing is. */
function problemOf({ body }: Mutation, { status, type, text }: Heard): string | undefined {
  if (status >= 500) return `a ${status}`;
  if (status === 202) return text === '' ? undefined : 'a 202 with a body';
  const asked = parsed(body.toString());
  const id = isObject(asked) ? asked.id : undefined;
  if (type === 'text/event-stream') {
    const messages = text.matchAll(/^data: (.*)$/gm);
    const wrong = [...messages].map(([, data = '']) => parsed(data)).find((one) => !isObject(one));
    return wrong === undefined ? problemOfStream(text, id) : 'an event without a message';
  }
  if (type !== 'application/json') return `the type ${type}`;
  return problemOfAnswer(parsed(text), status === 200 ? [id] : [id, null]);
}

function problemOfStream(text: string, id: unknown): string | undefined {
  const [, last = ''] = /data: ([^\n]*)\n\n$/.exec(text) ?? [];
  const message = parsed(last);
  const isOpen = isObject(message) && 'method' in message;
  return isOpen ? undefined : problemOfAnswer(message, [id]);
}

function problemOfAnswer(answer: unknown, ids: readonly unknown[]): string | undefined {
  if (!isObject(answer) || answer.jsonrpc !== '2.0') return 'no JSON-RPC';
  if ('result' in answer === 'error' in answer) return 'neither a result nor an error, or both';
  // -0 is the same number as 0.
  if (!ids.some((id) => id === answer.id)) return `the id ${JSON.stringify(answer.id)}`;
  if ('result' in answer) return isObject(answer.result) ? undefined : 'a result of no members';
  const { code, message, data } = isObject(answer.error) ? answer.error : {};
  if (!Number.isSafeInteger(code) || typeof message !== 'string') return 'an error without a code';
  if (code !== -32_603) return undefined;
  const details = isObject(data) ? String(data.details) : '';
  return CANNOT_BE_ASKED.test(details) ? undefined : 'an unexpected failure';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

async function withinLimit(work: Promise<Heard>): Promise<Heard | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), CALL_LIMIT_MS);
  });
  return Promise.race([work, limit]).finally(() => clearTimeout(timer));
}

/** While other tests keep the machine busy, the gateway may say that it has too much to do: that is no answer yet. */
async function sendUntilServed(mutation: Mutation): Promise<Heard> {
  for (;;) {
    const heard = await send(mutation);
    if (heard.status !== 503 || !TOO_BUSY.test(heard.text)) return heard;
    await yieldToOthers();
  }
}

async function problemsOf(samples: readonly Sample[], count: number): Promise<readonly string[]> {
  const problems: string[] = [];
  let next = 0;
  async function work(): Promise<void> {
    while (next < count && problems.length < 20) {
      const index = next++;
      const mutation = mutate(samples, SEED, index);
      const heard = await withinLimit(sendUntilServed(mutation));
      const problem = heard === undefined ? 'no answer' : problemOf(mutation, heard);
      if (problem !== undefined) problems.push(told(index, mutation, problem, heard));
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
  return problems;
}

const told = (index: number, { story, body }: Mutation, problem: string, heard?: Heard) =>
  [
    `MUTATIONS_SEED=${SEED}, number ${index}: ${problem} (${story})`,
    `  asked: ${body.toString().slice(0, 600)}`,
    `  heard: ${heard?.status} ${heard?.text.slice(0, 400)}`,
  ].join('\n');

/** The message with `"@"` at the path. */
function withMarker(message: unknown, [key, ...rest]: readonly string[]): unknown {
  if (key === undefined) return '@';
  const members = isObject(message) ? message : {};
  return { ...members, [key]: withMarker(members[key], rest) };
}

const asksFirst = (samples: readonly Sample[]): Sample => {
  const found = samples.find(({ name }) => name === 'tools/call 3 without a session');
  if (found === undefined) throw new Error('No sample asks the client.');
  return found;
};

async function samplesFor(headers: Readonly<Record<string, string>>): Promise<readonly Sample[]> {
  const withHeaders = (samples: readonly Sample[]) =>
    samples.map((sample) => ({ ...sample, headers: { ...sample.headers, ...headers } }));
  const first = asksFirst(withHeaders(statelessSamples('')));
  const asked = await send({ headers: first.headers, body: JSON.stringify(first.message) });
  const { requestState } = JSON.parse(asked.text).result;
  return withHeaders([
    ...sessionSamples(await gateway.open({ headers })),
    ...statelessSamples(requestState),
  ]);
}

test('§4.4 bad input: what is to be mutated is valid', async () => {
  await start({ AUTH_REQUIRED: 'false' });
  for (const { name, headers, message } of await samplesFor({})) {
    if (name === 'tools/call 3 in a session') continue; // Asks whom nobody can ask.
    const { status, text } = await send({ headers, body: JSON.stringify(message) });
    expect(`${name}: ${status} ${text}`).toMatch(/: (200 (?!.*"error":)|202 $)/s);
  }
});

const ARGUMENTS = ['params', 'arguments'];

test.each([
  ['tools/call 1 in a session', ARGUMENTS, '{"value":1,"children":[', ']}'],
  ['tools/call 1 without a session', ARGUMENTS, '{"value":1,"children":[', ']}'],
  ['tools/call 3 without a session', ARGUMENTS, '{"a":[', ']}'],
  ['answers with a state', ['params', 'requestState'], '[', ']'],
  ['answers with a state', ARGUMENTS, '{"a":[', ']}'],
  ['answers with a state', ['params', 'inputResponses', 'model', 'content'], '[', ']'],
  [WITH_A_FORM, ['params', 'inputResponses', 'form'], '{"a":[', ']}'],
  ['an answer', ['result'], '[', ']'],
  ['a notification', ['params', 'requestId'], '[', ']'],
  ['initialize', ['params', 'capabilities'], '{"a":[', ']}'],
  ['prompts/get 0 in a session', ARGUMENTS, '{"colour":[', ']}'],
  ['completion/complete 0 without a session', ['params', 'context'], '{"arguments":[', ']}'],
])('§4.4 bad input: deep nesting in %s at %j is no failure', async (name, path, open, close) => {
  await start({ AUTH_REQUIRED: 'false' });
  const sample = (await samplesFor({})).find((one) => one.name === name);
  if (sample === undefined) throw new Error(`There is no ${name}.`);
  for (const depth of [100, 1000, 10_000, 50_000]) {
    const core = open.endsWith('[') ? '' : '1';
    const deep = open.repeat(depth) + core + close.repeat(depth);
    const body = JSON.stringify(withMarker(sample.message, path)).replace('"@"', () => deep);
    const mutation = { headers: sample.headers, body, story: `${depth} deep` };
    const heard = await send(mutation);
    // What is larger than any body may be is refused unread, and so without an id.
    const problem = heard.status === 413 ? undefined : problemOf(mutation, heard);
    expect(problem && told(depth, mutation, problem, heard)).toBeUndefined();
  }
});

test.each([
  { who: 'without tokens', env: { AUTH_REQUIRED: 'false' }, without: WITH_A_FORM, share: 0.96 },
  { who: 'with tokens', env: {}, without: '', share: 0.04 },
])(
  '§4.4 bad input: mutated requests $who are refused, never a failure',
  async ({ env, without, share }) => {
    await start(env);
    const token = await gateway.issuer.sign();
    const samples = await samplesFor({ authorization: `Bearer ${token}` });
    const chosen = samples.filter(({ name }) => name !== without);
    const problems = await problemsOf(chosen, COUNT * share);
    expect(problems.join('\n')).toBe('');
    expect(errors).toEqual([]);
  },
  300_000,
);
