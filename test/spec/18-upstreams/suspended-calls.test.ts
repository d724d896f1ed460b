// Whose retry a call that waits for an answer belongs to: told once more, beneath the sealed state of the client.
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/platform/clock.ts';
import type { JsonObject } from '../../../src/platform/json.ts';
import { createKeptBytes } from '../../../src/servers/relay/suspended/outcome-records.ts';
import {
  createSuspendedCalls,
  type NewCall,
} from '../../../src/servers/relay/suspended/suspended-calls.ts';
import { openEmbeddedStore } from '../../../src/store/embedded/open.ts';
import { createSeal } from '../../../src/store/seal/seal.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { openTestRuntime } from '../../support/gateway/runtime.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { formQuestion } from '../../support/upstreams/relay-server-1.ts';

const LISTENER = { signal: new AbortController().signal, progress() {}, log() {} };
const ANSWER = { action: 'decline' };

/** A server that asks, and answers with what it heard. */
const ASKING: NewCall = {
  user: 'ada',
  server: 'one',
  params: {},
  capabilities: { elicitation: true, sampling: false, roots: false },
  send: async ({ answer }) => ({ heard: await answer(formQuestion('Who?'), LISTENER.signal) }),
};

const { log } = collectLog();

async function openStore() {
  const { path: dataDir } = closeAfterTest(await createTemporaryFolder());
  return closeAfterTest(
    await openEmbeddedStore({ dataDir, sessionKeyPrefix: 'mcp:', clock: systemClock, log }),
  );
}

async function openReplicas() {
  const store = await openStore();
  const seal = createSeal(['a secret of more than thirty-two characters']);
  const open = () =>
    closeAfterTest(
      createSuspendedCalls(
        openTestRuntime({
          store,
          getSeal: async () => seal,
          log,
          env: { MCP_SESSION_KEY_PREFIX: 'mcp:' },
        }),
      ),
    );
  return { first: open(), second: open() };
}

test.each(['first', 'second'] as const)(
  '§18.3 at the %s replica: another user, or another server, does not find the call',
  async (where) => {
    const replicas = await openReplicas();
    const { id, replica, outcome } = replicas.first.begin(ASKING, LISTENER);
    const asked = await outcome;
    expect(asked).toMatchObject({ kind: 'question', question: formQuestion('Who?') });
    const key = asked.kind === 'question' ? asked.key : '';
    const reply = { id, replica, key, answer: ANSWER, user: 'ada', server: 'one' };
    const resume = (changes: object) => replicas[where].resume({ ...reply, ...changes }, LISTENER);
    expect(await resume({ user: 'mallory' })).toBeUndefined();
    expect(await resume({ user: undefined })).toBeUndefined();
    expect(await resume({ server: 'other' })).toBeUndefined();
    expect(await resume({ id: 'other' })).toBeUndefined();
    expect(await resume({})).toEqual({ kind: 'result', result: { heard: ANSWER } });
    expect(await resume({})).toBeUndefined();
  },
);

test('§18.3 a retry that comes twice: the later one waits, the first has to call again', async () => {
  const { first, second } = await openReplicas();
  let finish: ((result: JsonObject) => void) | undefined;
  const call: NewCall = {
    ...ASKING,
    async send({ answer }) {
      await answer(formQuestion('Who?'), LISTENER.signal);
      return new Promise((resolve) => {
        finish = resolve;
      });
    },
  };
  const { id, replica, outcome } = first.begin(call, LISTENER);
  const asked = await outcome;
  const key = asked.kind === 'question' ? asked.key : '';
  const reply = { id, replica, key, answer: ANSWER, user: 'ada', server: 'one' };
  const earlier = second.resume(reply, LISTENER);
  let isOver = false;
  void earlier.then(() => {
    isOver = true;
  });
  await expect.poll(() => finish !== undefined).toBe(true);
  const later = first.resume(reply, LISTENER);
  await expect.poll(() => isOver).toBe(true);
  expect(await earlier).toBeUndefined();
  finish?.({ done: true });
  expect(await later).toEqual({ kind: 'result', result: { done: true } });
});

test('§18.3 what a user keeps waiting has 8 MiB at most; others are not touched', async () => {
  const { first } = await openReplicas();
  const begin = async (user: string, length: number) => {
    const call = { ...ASKING, user, params: { text: 'x'.repeat(length) } };
    return first.begin(call, LISTENER).outcome.then(({ kind }) => kind);
  };
  expect(await begin('ada', 5_000_000)).toBe('question');
  expect(await begin('ada', 5_000_000)).toBe('failed');
  expect(await begin('ada', 3_000_000)).toBe('question');
  expect(await begin('bob', 5_000_000)).toBe('question');
});

test('§18.3 what a server asks counts as kept, too, until it is answered; others are not touched', async () => {
  const { first } = await openReplicas();
  const question = formQuestion('x'.repeat(3_000_000));
  const begin = (user: string, questions: number) => {
    const refusals: unknown[] = [];
    const { outcome, ...place } = first.begin(
      {
        ...ASKING,
        user,
        async send({ answer }) {
          const asked = Array.from({ length: questions }, () =>
            answer(question, LISTENER.signal).catch((error: Error) => refusals.push(error.message)),
          );
          await Promise.all(asked);
          return {};
        },
      },
      LISTENER,
    );
    return outcome.then((asked) => ({ place, asked, refusals }));
  };
  const many = await begin('ada', 4);
  const refused = expect.stringMatching(/too large questions, wait for answers/);
  await expect.poll(() => many.refusals).toEqual([refused, refused]);
  expect((await begin('ada', 1)).asked.kind).toBe('result');
  expect((await begin('bob', 1)).asked.kind).toBe('question');
  const key = many.asked.kind === 'question' ? many.asked.key : '';
  const reply = { ...many.place, key, answer: ANSWER, user: 'ada', server: 'one' };
  expect((await first.resume(reply, LISTENER))?.kind).toBe('question');
  expect((await begin('ada', 1)).asked.kind).toBe('question');
});

test('§18.3 no user takes what others may have kept: what does not fit for all counts for nobody', async () => {
  const store = await openStore();
  const bytes = createKeptBytes(store, 'mcp:', 1000);
  const entry = (name: string, mebibytes: number) => ({ name, bytes: mebibytes * 1_048_576 });
  const reserve = (user: string | undefined, mebibytes: number, name = 'first') =>
    bytes.reserve(user, entry(`${name} of ${user}`, mebibytes), 'any');
  expect(await reserve('ada', 17)).toBe(false);
  for (const user of ['ada', 'bob', 'cy', 'dan', 'eve', 'flo', 'gus', 'hal']) {
    expect(await reserve(user, 15)).toBe(true);
    expect(await reserve(user, 2, 'second')).toBe(false);
  }
  expect(await reserve('ivy', 15)).toBe(false);
  expect(await reserve(undefined, 15)).toBe(false);
  // What is told in place of it has room.
  expect(await bytes.reserve('ada', entry('note', 0), 'small')).toBe(true);
  await bytes.release('ada', entry('first of ada', 15));
  expect(await reserve('ivy', 15)).toBe(true);
});

test('§18.3 a client that hangs up while the store is asked for its call is not waited for', async () => {
  const { first, second } = await openReplicas();
  const { id, replica, outcome } = first.begin(ASKING, LISTENER);
  const asked = await outcome;
  const key = asked.kind === 'question' ? asked.key : '';
  const reply = { id, replica, key, answer: ANSWER, user: 'ada', server: 'one' };
  const client = new AbortController();
  const resumed = second.resume(reply, { ...LISTENER, signal: client.signal });
  client.abort();
  await expect(resumed).rejects.toThrow('the client hung up');
});
