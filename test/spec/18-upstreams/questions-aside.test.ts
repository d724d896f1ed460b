// Servers that ask on the stream of their session, as those of the official SDKs do where a tool does not say of which call it is:
// what they ask reaches the client whose call runs.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import {
  Client as Client2,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Clock } from '../../../src/platform/clock.ts';
import { lastOf, openClient } from '../../support/clients/session-client.ts';
import { askingCall } from '../../support/clients/stateless.ts';
import { advanceSlowly, manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';
import { ADA, questionsIn, retry, saidIn } from '../../support/upstreams/relay-retry.ts';
import { formQuestion, startRelayServer1 } from '../../support/upstreams/relay-server-1.ts';
import {
  sendJson,
  startEvents,
  startScriptedHttp,
  toResult,
} from '../../support/upstreams/scripted-http.ts';
import { startSdk1Http } from '../../support/upstreams/sdk-1-http.ts';

const ABLE = { elicitation: { form: {} }, sampling: {}, roots: {} };
const ROOTS = { roots: [{ uri: 'file:///a', 'x-part': 1 }] };
const PARIS = { role: 'assistant', model: 'm', content: { type: 'text', text: 'Paris' } };
const ACCEPT = { action: 'accept' as const, content: { name: 'Ada' } };
const REPLY = {
  role: 'assistant' as const,
  model: 'm',
  content: { type: 'text' as const, text: 'Paris' },
};
const INFO = { name: 'test', version: '1' };

const server = useShared(startRelayServer1);
const gateway = useShared(() => startRelayGateway({ servers: { one: server.url } }));

// biome-ignore lint/suspicious/noExplicitAny: a response of any shape
const said = ({ result }: any): unknown => JSON.parse(result.content[0].text);

describe('a client with a session', () => {
  test.each(
    ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'].flatMap((protocolVersion) =>
      [
        { tool: 'ask-aside', question: formQuestion('one asks: Who?'), answer: ADA },
        { tool: 'sample-aside', question: { method: 'sampling/createMessage' }, answer: PARIS },
        { tool: 'roots-aside', question: { method: 'roots/list' }, answer: ROOTS },
      ].map((row) => ({ protocolVersion, ...row })),
    ),
  )(
    '§18.3 of $protocolVersion is asked on the stream of its call ($tool)',
    async ({ protocolVersion, tool, question, answer }) => {
      const client = await openClient(gateway, { capabilities: ABLE, protocolVersion });
      const stream = await client.call(`one__${tool}`);
      const asked = await stream.next();
      expect(asked).toMatchObject(question);
      expect(await client.answer(asked.id, answer)).toBe(202);
      expect(said(await lastOf(stream))).toEqual(answer);
    },
  );

  test('§18.3 is asked on the stream of another call where the one that was chosen ends', async () => {
    const client = await openClient(gateway, { capabilities: ABLE });
    const first = once(server.events, 'waiting');
    const asking = client.call('one__ask-aside-as-others-end', {}, { id: 'asks' });
    await first;
    const second = once(server.events, 'waiting');
    const ending = client.call('one__wait', {}, { id: 'ends' });
    await second;
    server.events.emit('ask');
    // Where it was faster than the end of its call it came by that.
    const ended = await ending;
    const messages = ended.isStream ? await ended.rest() : [];
    const early = messages.find(({ method }) => method !== undefined);
    const { id } = early ?? (await (await asking).next());
    expect(await client.answer(id, ADA)).toBe(202);
    expect(said(await lastOf(await asking))).toEqual(ADA);
  });

  test('§18.3 the time-out of the call stands still meanwhile', async () => {
    const clock = manualClock();
    const inTime = closeAfterTest(
      await startRelayGateway({ servers: { one: server.url }, clock, timeoutMs: 60_000 }),
    );
    const client = await openClient(inTime, { capabilities: ABLE });
    const stream = await client.call('one__ask-aside');
    const { id } = await stream.next();
    await advanceSlowly(clock, 240_000);
    expect(await client.answer(id, ADA)).toBe(202);
    expect(said(await lastOf(stream))).toEqual(ADA);
  });
});

describe('a client without a session', () => {
  test('§18.3 is asked by the result of its call, and calls again with the answer', async () => {
    const asked = await askingCall(gateway, 'one__ask-aside');
    expect(Object.values(questionsIn(asked).inputRequests)).toMatchObject([
      formQuestion('one asks: Who?'),
    ]);
    expect(saidIn(await retry(gateway, 'one__ask-aside', asked, ADA))).toEqual(ADA);
  });

  test('§18.3 of two calls at once one takes the question, and the other one when that has ended', async () => {
    const token = await gateway.issuer.sign();
    const options = { token };
    const first = once(server.events, 'waiting');
    const waiting = askingCall(gateway, 'one__wait-then-ask-aside', {}, options);
    await first;
    const asked = await askingCall(gateway, 'one__ask-then-wait', {}, options);
    server.events.emit('step');
    const again = once(server.events, 'waiting');
    const other = await retry(gateway, 'one__ask-then-wait', asked, ADA, options);
    expect(Object.keys(questionsIn(other).inputRequests)).toHaveLength(1);
    await again;
    server.events.emit('step');
    const own = await waiting;
    expect(saidIn(await retry(gateway, 'one__wait-then-ask-aside', own, ADA, options))).toEqual(
      ADA,
    );
  });
});

describe('official clients', () => {
  test('§18.3 1.x answers what is asked so', async () => {
    const client = closeAfterTest(new Client1(INFO, { capabilities: ABLE }));
    client.setRequestHandler(ElicitRequestSchema, () => ACCEPT);
    client.setRequestHandler(CreateMessageRequestSchema, () => REPLY);
    client.setRequestHandler(ListRootsRequestSchema, () => ROOTS);
    await client.connect(new Transport1(await findUrl(), await authorize()));
    await expectAnswers((name) => client.callTool({ name }));
  });

  test.each(['legacy', 'auto', { pin: '2026-07-28' }] as const)(
    '§18.3 2.x answers what is asked so (%o)',
    async (mode) => {
      const options = { capabilities: ABLE, versionNegotiation: { mode } };
      const client = closeAfterTest(new Client2(INFO, options));
      client.setRequestHandler('elicitation/create', () => ACCEPT);
      client.setRequestHandler('sampling/createMessage', () => REPLY);
      client.setRequestHandler('roots/list', () => ROOTS);
      await client.connect(new Transport2(await findUrl(), await authorize()));
      await expectAnswers((name) => client.callTool({ name }));
    },
  );

  const findUrl = async () => new URL(`http://127.0.0.1:${await gateway.listen()}/mcp`);
  const authorize = async () => ({
    requestInit: { headers: { authorization: `Bearer ${await gateway.issuer.sign()}` } },
  });

  async function expectAnswers(call: (name: string) => Promise<unknown>): Promise<void> {
    // At once: each of them may be asked in place of another.
    const results = await Promise.all(
      ['ask', 'sample', 'roots'].map((kind) => call(`one__${kind}-aside`)),
    );
    expect(results.map((result) => said({ result }))).toMatchObject([ACCEPT, REPLY, ROOTS]);
  }
});

describe('two replicas', () => {
  const redis = useShared(startRedis);
  const first = useShared(() => startReplica({}));
  const second = useShared(() => startReplica({ OIDC_ISSUER: first.issuer.url }));
  let token = '';
  beforeAll(async () => {
    token = await first.issuer.sign();
  });

  const startReplica = (env: Readonly<Record<string, string>>) =>
    startRelayGateway({
      servers: { one: server.url },
      env: { REDIS_URL: redis.url, ...env },
    });

  test('§18.3 a question that reaches the one reaches the client whose call runs at the other', async () => {
    const atFirst = await openClient(first, { capabilities: ABLE, token });
    const { result } = await lastOf(await atFirst.call('one__echo'));
    expect(result.isError).toBeUndefined();
    // The server lets a session have one stream: the first replica has it.
    const atSecond = await atFirst.at(second);
    const stream = await atSecond.call('one__ask-aside');
    const asked = await stream.next();
    expect(asked).toMatchObject(formQuestion('one asks: Who?'));
    expect(await atFirst.answer(asked.id, ADA)).toBe(202);
    expect(said(await lastOf(stream))).toEqual(ADA);
  });

  test('§18.3 numbers of what is asked there are as they were spelled', async () => {
    const raw = closeAfterTest(await startScriptedHttp('session'));
    const tools = '[{"name":"echo","inputSchema":{"type":"object"}}]';
    raw.answer('tools/list', (res, { message }) =>
      sendJson(res, `{"jsonrpc":"2.0","id":${message.id},"result":{"tools":${tools}}}`),
    );
    // Of each session one, as many servers have it.
    const streams = new Map<unknown, ServerResponse>();
    let waiting: (() => void) | undefined;
    raw.answer('GET', (res, { headers }) => {
      const session = headers['mcp-session-id'];
      if (streams.has(session)) res.writeHead(409).end();
      else streams.set(session, startEvents(res));
    });
    raw.answer('response', (res) => {
      res.writeHead(202).end();
      waiting?.();
    });
    const start = async () =>
      closeAfterTest(
        await startRelayGateway({
          servers: { one: raw.url },
          env: { REDIS_URL: redis.url, OIDC_ISSUER: first.issuer.url },
        }),
      );
    const one = await start();
    const two = await start();
    const atOne = await openClient(one, { capabilities: ABLE, token });
    await lastOf(await atOne.call('one__echo'));
    const session = raw.received.findLast(({ message }) => message.method === 'tools/call')
      ?.headers['mcp-session-id'];
    await expect.poll(() => streams.has(session)).toBe(true);
    raw.answer('tools/call', (res, request) => {
      waiting = () => sendJson(res, toResult(request, { content: [] }));
      streams
        .get(session)
        ?.write(
          'data: {"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"n":{"type":"number","maximum":1e400}}}}}\n\n',
        );
    });
    const call = await (await atOne.at(two)).call('one__echo');
    const asked = await call.next();
    // As JavaScript reads 1e400; where it is a double in between, it is written as null.
    expect(asked.params.requestedSchema.properties.n.maximum).toBe(Number.POSITIVE_INFINITY);
    expect(await atOne.answer(asked.id, ACCEPT)).toBe(202);
    await lastOf(call);
  });

  test('§18.3 and nobody where no call of that client runs: the server gets an error', async () => {
    const other = await openClient(second, { capabilities: ABLE, token });
    const waiting = once(server.events, 'waiting');
    const running = await other.call('one__wait');
    await waiting;
    const mine = await openClient(first, { capabilities: ABLE, token });
    await lastOf(await mine.call('one__ask-aside-later'));
    const heard = once(server.events, 'heard');
    server.events.emit('step');
    expect(await heard).toMatchObject([{ code: -32601, message: expect.stringContaining('call') }]);
    // Nothing but its result reached the other one, of the same user.
    expect((await running.rest()).map((message) => said(message))).toEqual(['waited']);
  });

  test('§18.3 what the server cancels is cancelled there, too', async () => {
    const atFirst = await openClient(first, { capabilities: ABLE, token });
    await lastOf(await atFirst.call('one__echo'));
    const stream = await (await atFirst.at(second)).call('one__ask-aside-in-vain');
    const asked = await stream.next();
    const waiting = once(server.events, 'waiting');
    server.events.emit('step');
    expect(await stream.next()).toMatchObject({
      method: 'notifications/cancelled',
      params: { requestId: asked.id },
    });
    await waiting;
    server.events.emit('step');
    expect(said(await lastOf(stream))).toMatchObject({ code: expect.any(Number) });
  });

  test('§18.3 once the one has closed its stream, the other opens it', async () => {
    const asking = closeAfterTest(await startSdk1Http());
    const start = async (clock?: Clock) =>
      closeAfterTest(
        await startRelayGateway({
          servers: { one: asking.url },
          env: { REDIS_URL: redis.url, OIDC_ISSUER: first.issuer.url },
          ...(clock && { clock }),
        }),
      );
    const goes = await start();
    // No time passes here: what is tried again is tried for another reason.
    const stays = await start(manualClock());
    const client = await openClient(goes, { capabilities: ABLE, token });
    await lastOf(await client.call('one__echo', { text: 'a' }));
    const { headers } = asking.received.findLast(({ method }) => method === 'POST') ?? {};
    const session = String(headers?.['mcp-session-id']);
    const countStreams = () =>
      asking.received.filter(
        ({ method, headers: own }) => method === 'GET' && own['mcp-session-id'] === session,
      ).length;
    expect(countStreams()).toBe(1);
    const there = await client.at(stays);
    const running = there.call('one__wait');
    await expect.poll(asking.begunWaits).toBe(1);
    expect(countStreams()).toBe(2);
    await goes.close();
    await expect.poll(countStreams).toBe(3);
    await expect.poll(() => asking.isStreaming(session)).toBe(true);
    await there.cancel(1);
    await (await running).text();
  });
});
