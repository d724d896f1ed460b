// §15: a call that takes long is answered with a stream, and what it then comes to is the last event.
import { describe, expect, test } from 'vitest';
import { createWaitingCatalog } from '../../support/catalogs/waiting-catalog.ts';
import { type EventStream, openEvents } from '../../support/clients/event-stream.ts';
import { openRevisionClient, REVISIONS } from '../../support/clients/revision-client.ts';
import { BOTH_TYPES } from '../../support/clients/session-client.ts';
import { STATELESS } from '../../support/clients/stateless.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const AFTER_MS = 10_000;
/** How often it is looked for calls that take long. */
const LOOK_MS = 250;

async function send(
  gateway: TestGateway,
  revision: string,
  method: string,
  params: Readonly<Record<string, unknown>>,
  accept = BOTH_TYPES,
): Promise<EventStream> {
  const client = await openRevisionClient(gateway, revision);
  const { message, headers } = await client.request(method, params);
  return openEvents({
    port: await gateway.listen(),
    headers: { ...headers, accept },
    body: message,
  });
}

/** What a call came to, and in which form. */
async function readAnswer(answer: EventStream) {
  const messages = answer.isStream ? await answer.rest() : [JSON.parse(await answer.text())];
  return { isStream: answer.isStream, status: answer.status, messages };
}

describe('a call of a tool', () => {
  async function start(env: Readonly<Record<string, string>> = {}) {
    const clock = manualClock();
    const { catalog, calls } = createWaitingCatalog();
    const gateway = closeAfterTest(await startGateway({ env, deps: { catalog, clock } }));

    async function begin(revision: string, accept?: string) {
      const params = { name: 'wait', arguments: { name: 'a' } };
      const answering = send(gateway, revision, 'tools/call', params, accept);
      await expect.poll(() => calls.has('a')).toBe(true);
      const call = calls.get('a');
      if (call === undefined) throw new Error('It has not begun');
      return { answering, call };
    }
    return { clock, begin };
  }

  test.each(REVISIONS)('§15 becomes a stream after 10 s, and not before (%s)', async (revision) => {
    for (const [ranMs, isStream] of [
      [revision === '2025-11-25' ? 750 : AFTER_MS - LOOK_MS, false],
      [AFTER_MS, true],
    ] as const) {
      const { clock, begin } = await start();
      const { answering, call } = await begin(revision);
      clock.advance(ranMs);
      call.answer('done');
      expect(await readAnswer(await answering)).toMatchObject({
        isStream,
        status: 200,
        messages: [{ result: { content: [{ text: 'done' }] } }],
      });
    }
  });

  test.each(REVISIONS)('§15 stays JSON for who accepts nothing else (%s)', async (revision) => {
    for (const accept of ['application/json', 'application/json, text/event-stream;q=0', '*/*']) {
      const { clock, begin } = await start();
      const { answering, call } = await begin(revision, accept);
      clock.advance(60_000);
      call.answer('done');
      const answer = await readAnswer(await answering);
      expect(answer).toMatchObject({ isStream: false, messages: [{ result: {} }] });
    }
  });

  test.each([['2024-11-05'], ['0.1.0']])('§15 stays JSON in sessions of %s', async (revision) => {
    const { clock, begin } = await start();
    const { answering, call } = await begin(revision);
    clock.advance(60_000);
    call.answer('done');
    expect(await readAnswer(await answering)).toMatchObject({ isStream: false, status: 200 });
  });

  test.each(REVISIONS)('§15 never becomes one with STREAM_AFTER_MS=0 (%s)', async (revision) => {
    const { clock, begin } = await start({ STREAM_AFTER_MS: '0' });
    const { answering, call } = await begin(revision);
    clock.advance(60_000);
    call.answer('done');
    expect(await readAnswer(await answering)).toMatchObject({ isStream: false, status: 200 });
  });

  test.each(REVISIONS)(
    '§15 ends with its client where that cannot come back (%s)',
    async (revision) => {
      const { clock, begin } = await start();
      const { answering, call } = await begin(revision);
      clock.advance(AFTER_MS);
      const answer = await answering;
      answer.hangUp();
      if (revision === '2025-11-25') {
        // It has an id to come back with.
        clock.advance(60_000);
        expect(call.signal.aborted).toBe(false);
      } else {
        await expect.poll(() => call.signal.aborted).toBe(true);
      }
      call.answer('done');
    },
  );

  test.each(['2025-03-26', STATELESS])(
    '§15 is not told to disconnect where its client cannot come back (%s)',
    async (revision) => {
      const { clock, begin } = await start();
      const { answering, call } = await begin(revision);
      clock.advance(AFTER_MS);
      call.disconnect();
      call.answer('done');
      const { messages } = await readAnswer(await answering);
      expect(messages).toMatchObject([{ result: {} }]);
    },
  );
});

describe('whatever takes long at a server', () => {
  const METHODS: readonly (readonly [string, object])[] = [
    ['tools/call', { name: 's__t' }],
    ['prompts/get', { name: 's__p' }],
    ['resources/read', { uri: 'x://a' }],
    [
      'completion/complete',
      { ref: { type: 'ref/prompt', name: 's__p' }, argument: { name: 'n', value: 'v' } },
    ],
    ['resources/subscribe', { uri: 'x://a' }],
    ['resources/unsubscribe', { uri: 'x://a' }],
  ];

  async function start(method: string) {
    const clock = manualClock();
    let answer = (_outcome: object): void => {};
    const server = await serve({
      tools: [buildTool('t')],
      prompts: [{ name: 'p' }],
      resources: [{ uri: 'x://a', name: 'a' }],
      capabilities: { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} },
      answers: {
        [method]: () =>
          new Promise((resolve) => {
            answer = resolve;
          }),
      },
    });
    const gateway = await startForTest({
      file: { mcpServers: { s: server.url } },
      env: { MCP_STREAMS: 'true' },
      clock,
    });
    // All lists are there.
    const session = await gateway.open();
    for (const list of ['tools', 'prompts', 'resources']) {
      await gateway.call(session, `${list}/list`);
    }
    return { clock, gateway, server, answer: (outcome: object) => answer(outcome) };
  }

  const cases = METHODS.flatMap(([method, params]) =>
    (method.endsWith('subscribe') ? REVISIONS.slice(0, -1) : REVISIONS).map(
      (revision) => [method, revision, params] as const,
    ),
  );

  test.each(cases)('§15 is answered with a stream: %s (%s)', async (method, revision, params) => {
    const { clock, gateway, server, answer } = await start(method);
    const answering = send(gateway, revision, method, { ...params });
    await expect.poll(() => server.count(method)).toBe(1);
    clock.advance(AFTER_MS + LOOK_MS);
    const opened = await answering;
    expect(opened).toMatchObject({ isStream: true, status: 200 });
    answer({ error: { code: -32050, message: 'No' } });
    const [last] = (await opened.rest()).slice(-1);
    expect(last).toMatchObject({ id: 1 });
    expect(JSON.stringify(last)).toContain('No');
  });

  test('§15 is answered with a stream: a subscription that a server is asked about first', async () => {
    const clock = manualClock();
    let isListed = (): void => {};
    const server = await serve({
      capabilities: { resources: { subscribe: true } },
      answers: {
        'resources/list': () =>
          new Promise((resolve) => {
            isListed = () => resolve({ result: { resources: [{ uri: 'x://a', name: 'a' }] } });
          }),
      },
    });
    const gateway = await startForTest({
      file: { mcpServers: { s: server.url } },
      env: { MCP_STREAMS: 'true', STREAM_AFTER_MS: '2000' },
      clock,
    });
    await expect.poll(() => server.count('resources/list')).toBe(1);
    const notifications = { resourceSubscriptions: ['x://a'] };
    const answering = send(gateway, STATELESS, 'subscriptions/listen', { notifications });
    const opened = await passUntil(clock, answering);
    expect(opened).toMatchObject({ isStream: true, status: 200 });
    isListed();
    const acknowledged = { notifications: { resourceSubscriptions: ['x://a'] } };
    expect(await opened.next()).toMatchObject({ params: acknowledged });
  });

  test('§15 ends with the error of a subscription that could not be opened in time', async () => {
    const clock = manualClock();
    const server = await serve({
      capabilities: { resources: { subscribe: true } },
      answers: { 'resources/list': () => new Promise(() => {}) },
    });
    const gateway = await startForTest({
      file: { mcpServers: { s: server.url } },
      env: { MCP_STREAMS: 'true', STREAM_AFTER_MS: '2000' },
      clock,
    });
    const notifications = { resourceSubscriptions: ['x://a'] };
    const open = () => send(gateway, STATELESS, 'subscriptions/listen', { notifications });
    const opened = await passUntil(clock, Promise.all(Array.from({ length: 51 }, open)));
    expect(opened.every(({ isStream, status }) => isStream && status === 200)).toBe(true);
    const messages = await passUntil(clock, Promise.all(opened.map((one) => one.next())));
    expect(messages.filter(({ error }) => error?.data.reason === 'too_many_streams')).toHaveLength(
      1,
    );
  });
});

describe('what is refused after it has become a stream', () => {
  test.each(
    REVISIONS.flatMap(
      (revision) =>
        [
          ['a scope that is missing', revision, 's__t', { data: { reason: 'insufficient_scope' } }],
          ['a tool that nobody has', revision, 's__nobody', { code: -32602 }],
        ] as const,
    ),
  )('§15 is told in the last event: %s (%s)', async (_what, revision, name, error) => {
    const clock = manualClock();
    let answer = (): void => {};
    const server = await serve({
      answers: {
        'tools/list': () =>
          new Promise((resolve) => {
            answer = () => resolve({ result: { tools: [buildTool('t')] } });
          }),
      },
    });
    const gateway = await startForTest({
      file: {
        mcpServers: { s: server.url },
        rules: [{ who: { scopes: ['files'] }, may: ['*'] }],
      },
      env: { STREAM_AFTER_MS: '1000' },
      clock,
    });
    const calling = send(gateway, revision, 'tools/call', { name });
    const opened = await passUntil(clock, calling);
    expect(opened).toMatchObject({ isStream: true, status: 200 });
    answer();
    expect(await opened.rest()).toMatchObject([{ id: 1, error }]);
  });
});

/** Time passes until the work is done. */
async function passUntil<Value>(clock: ManualClock, work: Promise<Value>): Promise<Value> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  await expect
    .poll(() => {
      if (!isDone) clock.advance(250);
      return isDone;
    })
    .toBe(true);
  return done;
}
