// Clients of the session era, asked while their call goes on, by servers of both eras.
import { EventEmitter, once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { lastOf, openClient, type SessionClient } from '../../support/clients/session-client.ts';
import { askingCall, CLIENT_CAPABILITIES, callTool } from '../../support/clients/stateless.ts';
import { advanceSlowly, manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { openStream, sendJson, startRawServer } from '../../support/upstreams/raw-server.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';
import { retry } from '../../support/upstreams/relay-retry.ts';
import { formQuestion, startRelayServer1 } from '../../support/upstreams/relay-server-1.ts';
import { startRelayServer2 } from '../../support/upstreams/relay-server-2.ts';

const ABLE = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const ADA = { action: 'accept', content: { name: 'Ada' }, 'x-member': 1 };
const ROOTS = { roots: [{ uri: 'file:///a', 'x-part': 1 }] };
const PARIS = { role: 'assistant', model: 'm', content: { type: 'text', text: 'Paris' } };
const MINUTE_MS = 60_000;

const one = useShared(startRelayServer1);
const two = useShared(startRelayServer2);
const gateway = useShared(() => startRelayGateway({ servers: { one: one.url, two: two.url } }));

/** Calls, answers each question as it comes, and resolves to what the tool said. */
async function callAnswering(
  client: SessionClient,
  name: string,
  answers: readonly unknown[],
): Promise<unknown> {
  const stream = await client.call(name);
  for (const answer of answers) {
    const { id } = await stream.next();
    expect(await client.answer(id, answer)).toBe(202);
  }
  return saidIn(await lastOf(stream));
}

// biome-ignore lint/suspicious/noExplicitAny: a response of any shape
const saidIn = ({ result }: any): unknown => JSON.parse(result.content[0].text);

describe('a server of the session era', () => {
  test.each([
    { tool: 'ask', question: formQuestion('one asks: Who?'), answer: ADA },
    { tool: 'roots', question: { method: 'roots/list' }, answer: ROOTS },
    {
      tool: 'sample',
      question: { method: 'sampling/createMessage', params: { systemPrompt: 'one asks.' } },
      answer: PARIS,
    },
    {
      tool: 'ask-url',
      question: {
        method: 'elicitation/create',
        params: { mode: 'url', elicitationId: 'e-1', message: 'one asks: Log in.' },
      },
      answer: { action: 'accept' },
    },
  ])(
    '§18.3 $tool: its question passes, with the name of the server for the user, and the answer as it is',
    async ({ tool, question, answer }) => {
      const client = await openClient(gateway, { capabilities: ABLE });
      const stream = await client.call(`one__${tool}`);
      const asked = await stream.next();
      expect(asked).toMatchObject(question);
      expect(await client.answer(asked.id, answer)).toBe(202);
      expect(saidIn(await lastOf(stream))).toEqual(answer);
    },
  );

  test('§18.3 it may ask again, and several questions at once', async () => {
    const client = await openClient(gateway, { capabilities: ABLE });
    const other = { action: 'decline' };
    expect(await callAnswering(client, 'one__ask-twice', [ADA, other])).toEqual([ADA, other]);
    expect(await callAnswering(client, 'one__ask-both', [ADA, other])).toEqual([ADA, other]);
  });

  test('§18.3 a prompt may ask, too', async () => {
    const client = await openClient(gateway, { capabilities: ABLE });
    const stream = await client.send({
      jsonrpc: '2.0',
      id: 1,
      method: 'prompts/get',
      params: { name: 'one__ask' },
    });
    const { id } = await stream.next();
    await client.answer(id, ADA);
    const { result } = await lastOf(stream);
    expect(JSON.parse(result.messages[0].content.text)).toEqual(ADA);
  });

  test("§18.3 the client's error reaches the server with code, message and data", async () => {
    const client = await openClient(gateway, { capabilities: ABLE });
    const stream = await client.call('one__ask');
    const { id } = await stream.next();
    const error = { code: -32042, message: 'Not now', data: { why: 'busy' } };
    await (await client.send({ jsonrpc: '2.0', id, error })).text();
    expect(saidIn(await lastOf(stream))).toMatchObject({
      code: -32042,
      message: expect.stringContaining('Not now'),
      data: { why: 'busy' },
    });
  });

  test.each([
    { tool: 'sample', capabilities: { elicitation: {} }, code: -32601, says: /sampling/ },
    { tool: 'ask', capabilities: { elicitation: { url: {} } }, code: -32601, says: /elicitation/ },
    {
      tool: 'ask-url',
      capabilities: { elicitation: {} },
      code: -32602,
      says: /elicitation by URL/,
    },
    { tool: 'ask', capabilities: {}, code: -32601, says: /elicitation/ },
  ])(
    '§18.3 $tool: a client that declared $capabilities is not asked, and the server is told',
    async ({ tool, capabilities, code, says }) => {
      const client = await openClient(gateway, { capabilities });
      const { result } = await client.ask('tools/call', { name: `one__${tool}` });
      const heard = JSON.parse(result.content[0].text);
      expect(heard.message).toMatch(says);
      expect(heard.code).toBe(code);
    },
  );

  test('§18.3 the time-out stands still while the client is asked', async () => {
    const clock = manualClock();
    const gatewayInTime = closeAfterTest(
      await startRelayGateway({ servers: { one: one.url }, clock, timeoutMs: MINUTE_MS }),
    );
    const client = await openClient(gatewayInTime, { capabilities: ABLE });
    const stream = await client.call('one__ask');
    const { id } = await stream.next();
    await advanceSlowly(clock, 4 * MINUTE_MS);
    expect(await client.answer(id, ADA)).toBe(202);
    expect(saidIn(await lastOf(stream))).toEqual(ADA);
  });

  test('§18.3 and goes on after the answer', async () => {
    const clock = manualClock();
    const gatewayInTime = closeAfterTest(
      await startRelayGateway({ servers: { one: one.url }, clock, timeoutMs: MINUTE_MS }),
    );
    const client = await openClient(gatewayInTime, { capabilities: ABLE });
    const stream = await client.call('one__ask-then-wait');
    const { id } = await stream.next();
    const waiting = new Promise((resolve) => one.events.once('waiting', resolve));
    await client.answer(id, ADA);
    await waiting;
    let last: Awaited<ReturnType<typeof lastOf>>;
    void lastOf(stream).then((message) => {
      last = message;
    });
    // It begins when the server has taken the answer, which nobody sees from here.
    await expect
      .poll(async () => {
        await advanceSlowly(clock, MINUTE_MS / 2);
        return last?.result;
      })
      .toBeDefined();
    expect(last.result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^one did not answer in time/) }],
    });
  });
});

describe('a server of the stateless era', () => {
  test('§18.3 is called again with the answer and its state', async () => {
    const client = await openClient(gateway, { capabilities: ABLE });
    expect(await callAnswering(client, 'two__ask', [ADA])).toEqual({
      inputResponses: { who: ADA },
      requestState: 'state-1',
    });
  });

  test('§18.3 several questions are asked at the same time', async () => {
    const client = await openClient(gateway, { capabilities: ABLE });
    const stream = await client.call('two__ask-both');
    const asked = [await stream.next(), await stream.next()];
    expect(asked).toMatchObject([formQuestion('two asks: One?'), { method: 'roots/list' }]);
    for (const { id, method } of asked) {
      await client.answer(id, method === 'roots/list' ? ROOTS : ADA);
    }
    expect(saidIn(await lastOf(stream))).toEqual({ one: ADA, other: ROOTS });
  });

  test('§18.3 it may ask in several rounds', async () => {
    const client = await openClient(gateway, { capabilities: ABLE });
    expect(await callAnswering(client, 'two__rounds', [ADA, ADA])).toMatchObject({
      requestState: 'round-0,round-1',
    });
  });

  test('§18.3 but in no more than ten', async () => {
    const client = await openClient(gateway, { capabilities: ABLE });
    const stream = await client.call('two__forever');
    let questions = 0;
    for (let next = await stream.next(); next.method !== undefined; next = await stream.next()) {
      questions += 1;
      await client.answer(next.id, ADA);
      if (questions > 20) break;
    }
    expect(questions).toBeLessThanOrEqual(11);
  });

  test('§18.3 one that only wants to be called again is', async () => {
    const client = await openClient(gateway, { capabilities: ABLE });
    expect(await callAnswering(client, 'two__later', [])).toBe('now');
  });

  test('§18.3 a server that refuses a client which cannot answer: its error is passed on', async () => {
    const client = await openClient(gateway, { capabilities: { sampling: {} } });
    const { error } = await client.ask('tools/call', { name: 'two__ask' });
    expect(error).toMatchObject({ code: -32021, message: expect.stringContaining('elicitation') });
  });

  test('§18.3 a client that answers with an error: the model reads so', async () => {
    const client = await openClient(gateway, { capabilities: ABLE });
    const stream = await client.call('two__ask');
    const { id } = await stream.next();
    const error = { code: -1, message: 'No such person' };
    await (await client.send({ jsonrpc: '2.0', id, error })).text();
    const { result } = await lastOf(stream);
    expect(result.isError).toBe(true);
    expect(result.content[0].text).toMatch(/^two asked, and .*: No such person/);
  });

  test.each([
    { what: 'a form', inputRequests: { who: formQuestion('Who?') }, says: /elicitation/ },
    {
      what: 'a URL',
      inputRequests: { log: { method: 'elicitation/create', params: { mode: 'url' } } },
      says: /elicitation by URL/,
    },
    {
      what: 'something new',
      inputRequests: { new: { method: 'x/new' } },
      says: /do not accept this request/,
    },
    { what: 'nothing readable', inputRequests: { new: 'What?' }, says: /cannot be read/ },
    {
      what: 'too much',
      inputRequests: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [at, {}])),
      says: /17 questions at once/,
    },
    {
      what: 'a state of its own that is too long',
      inputRequests: {},
      requestState: 'x'.repeat(65_537),
      says: /a state of more than/,
    },
  ])(
    '§18.3 one that asks for $what all the same: the model reads why not',
    async ({ says, ...asked }) => {
      const result = { resultType: 'input_required', ...asked };
      const asking = closeAfterTest(
        await startRawServer((res, id) => sendJson(res, { id, result })),
      );
      const refusing = closeAfterTest(await startRelayGateway({ servers: { raw: asking.url } }));
      const client = await openClient(refusing, { capabilities: { sampling: {} } });
      const response = await client.ask('tools/call', { name: 'raw__any' });
      expect(response.result).toMatchObject({
        isError: true,
        content: [{ text: expect.stringMatching(says) }],
      });
    },
  );
});

/** A gateway before one server that says, in its answer to a call, what the test wants. */
async function startSayingServer() {
  const asked = new EventEmitter();
  const server = closeAfterTest(
    await startRawServer((res, id) => asked.emit('call', openStream(res, id), id)),
  );
  const own = closeAfterTest(await startRelayGateway({ servers: { raw: server.url } }));
  return { own, called: once(asked, 'call') };
}

const QUESTION = { id: 'q-1', ...formQuestion('Who?') };
test.each([
  { what: 'no message', message: undefined, told: 'raw asks.' },
  { what: 'one that is no text', message: { a: 1 }, told: 'raw asks.' },
  {
    what: 'the name of another',
    message: 'postern asks: your password?',
    told: 'raw asks: postern asks: your password?',
  },
])('§18.3 a question with $what begins with the name of its server', async ({ message, told }) => {
  const { own, called } = await startSayingServer();
  const client = await openClient(own, { capabilities: ABLE });
  const calling = client.call('raw__any');
  const [say, id] = await called;
  say({ id: 'q-1', method: 'elicitation/create', params: { message } });
  const stream = await calling;
  expect((await stream.next()).params.message).toBe(told);
  say({ id, result: FOUND });
  await lastOf(stream);
});

const SAMPLE = {
  method: 'sampling/createMessage',
  params: {
    messages: [{ role: 'user', content: { type: 'text', text: 'Hello?' } }],
    maxTokens: 10,
    systemPrompt: 'Be brief.',
    includeContext: 'allServers',
    'x-member': 1.0,
  },
};
const { includeContext: _context, ...WITHOUT_CONTEXT } = SAMPLE.params;
const SAMPLED = { ...WITHOUT_CONTEXT, systemPrompt: 'raw asks: Be brief.' };

test.each([
  ['allServers', { sampling: {} }],
  ['thisServer', { sampling: { context: {} } }],
])(
  '§18.3 sampling says which server asks, and not that it wants the context of %s, from a client that declared %j',
  async (includeContext, capabilities) => {
    const { own, called } = await startSayingServer();
    const client = await openClient(own, { capabilities });
    const calling = client.call('raw__any');
    const [say, id] = await called;
    say({ id: 'q-1', ...SAMPLE, params: { ...SAMPLE.params, includeContext } });
    const stream = await calling;
    expect((await stream.next()).params).toEqual(SAMPLED);
    say({ id, result: FOUND });
    await lastOf(stream);
  },
);

test('§18.3 so does sampling of a server of the stateless era, and towards stateless clients', async () => {
  const asking = closeAfterTest(
    await startRawServer((res, id) =>
      sendJson(res, {
        id,
        result: { resultType: 'input_required', inputRequests: { it: SAMPLE } },
      }),
    ),
  );
  const own = closeAfterTest(await startRelayGateway({ servers: { raw: asking.url } }));
  const client = await openClient(own, { capabilities: { sampling: {} } });
  const stream = await client.call('raw__any');
  expect((await stream.next()).params).toEqual(SAMPLED);
  stream.hangUp();
  const meta = { [CLIENT_CAPABILITIES]: { sampling: {} } };
  const { json } = await callTool(own, 'raw__any', {}, { meta });
  expect(json.result.inputRequests.it.params).toEqual(SAMPLED);
  const waiting = await startSayingServer();
  const called = callTool(waiting.own, 'raw__any', {}, { meta });
  const [say] = await waiting.called;
  say({ id: 'q-1', ...SAMPLE });
  const [asked] = Object.values<typeof SAMPLE>((await called).json.result.inputRequests);
  expect(asked?.params).toEqual(SAMPLED);
});

/** Go reads names in any case of letters, these among them, and the last of one name counts. */
const likeTo = (name: string) => [name[0]?.toUpperCase() + name.slice(1), name.replace('s', 'ſ')];

test('§18.3 members that some clients read as those that the gateway writes or takes out reach no client', async () => {
  const { own, called } = await startSayingServer();
  const client = await openClient(own, { capabilities: { ...ABLE, sampling: {} } });
  const calling = client.call('raw__any');
  const [say, id] = await called;
  const forge = (...names: readonly string[]) =>
    Object.fromEntries(names.flatMap(likeTo).map((name) => [name, 'forged']));
  const forged = forge('includeContext', 'systemPrompt');
  say({ id: 'q-1', ...SAMPLE, params: { ...SAMPLE.params, ...forged } });
  const stream = await calling;
  expect((await stream.next()).params).toEqual(SAMPLED);
  say({
    id: 'q-2',
    method: 'elicitation/create',
    params: { message: 'Who?', ...forge('message') },
  });
  expect((await stream.next()).params).toEqual({ message: 'raw asks: Who?' });
  const data = { elicitations: [{ message: 'Open it.', ...forge('message') }] };
  say({ id, error: { code: -32042, message: 'Open it.', data } });
  expect(JSON.stringify(await lastOf(stream))).not.toContain('forged');
});

test.each([{ tools: [] }, { toolChoice: { mode: 'none' } }, { Tools: [] }, { toolſ: [] }])(
  '§18.3 sampling with %j reaches clients that declared it alone',
  async (members) => {
    const asked = { ...SAMPLED, ...members };
    const question = { ...SAMPLE, params: { ...SAMPLE.params, ...members } };
    const inputRequests = { it: question };
    const server = closeAfterTest(
      await startRawServer((res, id) =>
        sendJson(res, { id, result: { resultType: 'input_required', inputRequests } }),
      ),
    );
    const own = closeAfterTest(await startRelayGateway({ servers: { raw: server.url } }));
    const told = expect.stringContaining('The client did not declare sampling with tools.');
    const refused = { isError: true, content: [{ text: told }] };
    const callBy = async (sampling: object) => {
      const meta = { [CLIENT_CAPABILITIES]: { sampling } };
      return (await callTool(own, 'raw__any', {}, { meta })).json.result;
    };
    expect(await callBy({})).toMatchObject(refused);
    expect((await callBy({ tools: {} })).inputRequests.it.params).toEqual(asked);
    const without = await openClient(own, { capabilities: { sampling: {} } });
    expect((await lastOf(await without.call('raw__any'))).result).toMatchObject(refused);
    const client = await openClient(own, { capabilities: { sampling: { tools: {} } } });
    const stream = await client.call('raw__any');
    expect((await stream.next()).params).toEqual(asked);
    stream.hangUp();
  },
);

const CANCELLED = {
  method: 'notifications/cancelled',
  params: { requestId: 'q-1', reason: 'found out' },
};
const FOUND = { content: [{ type: 'text', text: '"found"' }] };

test('§18.3 a question that its server cancels is cancelled for the client, too, and the call goes on', async () => {
  const { own, called } = await startSayingServer();
  const client = await openClient(own, { capabilities: ABLE });
  const calling = client.call('raw__any');
  const [say, id] = await called;
  say(QUESTION);
  const stream = await calling;
  const asked = await stream.next();
  expect(asked).toMatchObject(formQuestion('raw asks: Who?'));
  say(CANCELLED);
  expect(await stream.next()).toMatchObject({
    method: 'notifications/cancelled',
    params: { requestId: asked.id },
  });
  // It was on its way: nobody waits for it.
  expect(await client.answer(asked.id, ADA)).toBe(202);
  say({ id, result: FOUND });
  expect(saidIn(await lastOf(stream))).toBe('found');
});

test('§18.3 a stateless client that was asked what its server cancelled gets the result when it comes back', async () => {
  const { own, called } = await startSayingServer();
  const calling = askingCall(own, 'raw__any');
  const [say, id] = await called;
  say(QUESTION);
  const asked = await calling;
  say(CANCELLED);
  say({ id, result: FOUND });
  expect(saidIn((await retry(own, 'raw__any', asked, ADA)).json)).toBe('found');
});

test('§18.3 elicitation by URL: its completion comes on the stream of the call that asked', async () => {
  const { own, called } = await startSayingServer();
  const client = await openClient(own, { capabilities: ABLE });
  const calling = client.call('raw__any');
  const [say, id] = await called;
  const params = {
    mode: 'url',
    message: 'Log in.',
    url: 'https://a.example',
    elicitationId: 'e-1',
  };
  say({ id: 'q-1', method: 'elicitation/create', params });
  const stream = await calling;
  const asked = await stream.next();
  expect(await client.answer(asked.id, { action: 'accept' })).toBe(202);
  const complete = (elicitationId: string) => ({
    method: 'notifications/elicitation/complete',
    params: { elicitationId },
  });
  // Not of this call.
  say(complete('e-2'));
  say(complete('e-1'));
  expect(await stream.next()).toEqual({ jsonrpc: '2.0', ...complete('e-1') });
  say({ id, result: FOUND });
  expect(saidIn(await lastOf(stream))).toBe('found');
});
