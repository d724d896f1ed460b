// Clients of the stateless era, asked by the result of their call, by servers of both eras.
import { describe, expect, test } from 'vitest';
import { BOTH_TYPES } from '../../support/clients/session-client.ts';
import {
  ASKABLE,
  askingCall,
  CLIENT_CAPABILITIES,
  callTool,
  stateless,
  statelessRequest,
} from '../../support/clients/stateless.ts';
import { advanceSlowly, manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';
import {
  ADA,
  DECLINED,
  questionsIn,
  retry,
  saidIn,
  textOf,
} from '../../support/upstreams/relay-retry.ts';
import { formQuestion, startRelayServer1 } from '../../support/upstreams/relay-server-1.ts';
import { startRelayServer2 } from '../../support/upstreams/relay-server-2.ts';

const MINUTE_MS = 60_000;

const one = useShared(startRelayServer1);
const two = useShared(startRelayServer2);
const gateway = useShared(() => startRelayGateway({ servers: { one: one.url, two: two.url } }));

describe('a server of the stateless era', () => {
  test('§18.3 gets the answers and its own state, which the client never sees', async () => {
    const asked = await askingCall(gateway, 'two__ask');
    expect(questionsIn(asked).inputRequests).toMatchObject({ who: formQuestion('two asks: Who?') });
    expect(questionsIn(asked).requestState).not.toContain('state-1');
    expect(saidIn(await retry(gateway, 'two__ask', asked, ADA))).toEqual({
      inputResponses: { who: ADA },
      requestState: 'state-1',
    });
  });

  test('§18.3 it may ask several questions, in several rounds', async () => {
    const both = await askingCall(gateway, 'two__ask-both');
    expect(Object.keys(questionsIn(both).inputRequests)).toEqual(['one', 'other']);
    const first = await askingCall(gateway, 'two__rounds');
    const second = await retry(gateway, 'two__rounds', first, ADA);
    expect(Object.keys(questionsIn(second).inputRequests)).toEqual(['round-1']);
    expect(saidIn(await retry(gateway, 'two__rounds', second, ADA))).toMatchObject({
      inputResponses: { 'round-1': ADA },
      requestState: 'round-0,round-1',
    });
  });

  test('§18.3 what was answered is answered once, each round; a new call asks anew', async () => {
    const asked = await askingCall(gateway, 'two__rounds');
    const retryFirst = () => retry(gateway, 'two__rounds', asked, ADA);
    const second = await retryFirst();
    const retrySecond = () => retry(gateway, 'two__rounds', second, ADA);
    saidIn(await retrySecond());
    for (const replay of [retryFirst, retrySecond]) {
      const { json } = await replay();
      expect(json.result.isError).toBe(true);
      expect(json.result.content[0].text).toMatch(/^The answers .* two .* once.*call again/);
    }
    questionsIn(await askingCall(gateway, 'two__rounds'));
  });

  test("§18.3 another user's try to redeem what was asked leaves it as it is", async () => {
    const asked = await askingCall(gateway, 'two__ask');
    const token = await gateway.issuer.sign({ sub: 'mallory' });
    const stolen = await retry(gateway, 'two__ask', asked, ADA, { token });
    expect(stolen.json.error.code).toBe(-32602);
    expect(saidIn(await retry(gateway, 'two__ask', asked, ADA))).toMatchObject({
      requestState: 'state-1',
    });
  });

  test('§18.3 one that only wants to be called again is, without the client', async () => {
    expect(saidIn(await askingCall(gateway, 'two__later'))).toBe('now');
  });
});

describe('a server of the session era', () => {
  test('§18.3 waits for the answer that the client brings', async () => {
    const asked = await askingCall(gateway, 'one__ask');
    expect(Object.values(questionsIn(asked).inputRequests)).toMatchObject([
      formQuestion('one asks: Who?'),
    ]);
    expect(saidIn(await retry(gateway, 'one__ask', asked, ADA))).toEqual(ADA);
  });

  test('§18.3 it may ask again, and several questions at once: one after the other', async () => {
    for (const tool of ['one__ask-twice', 'one__ask-both']) {
      const first = await askingCall(gateway, tool);
      const second = await retry(gateway, tool, first, ADA);
      expect(saidIn(await retry(gateway, tool, second, DECLINED))).toEqual([ADA, DECLINED]);
    }
  });

  test('§18.3 prompts may ask, too', async () => {
    const get = (params: object) =>
      stateless(gateway, 'prompts/get', { name: 'one__ask', ...params }, { meta: ASKABLE });
    const { inputRequests, requestState } = questionsIn(await get({}));
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, ADA]));
    const { json } = await get({ inputResponses, requestState });
    expect(JSON.parse(json.result.messages[0].content.text)).toEqual(ADA);
  });

  test('§18.3 a retry without the answer is asked the same again', async () => {
    const asked = await askingCall(gateway, 'one__ask');
    const again = await retry(gateway, 'one__ask', asked, undefined);
    expect(questionsIn(again).inputRequests).toEqual(questionsIn(asked).inputRequests);
    expect(saidIn(await retry(gateway, 'one__ask', again, ADA))).toEqual(ADA);
  });

  test('§18.3 progress and log messages reach the retry', async () => {
    const meta = {
      ...ASKABLE,
      progressToken: 'mine',
      'io.modelcontextprotocol/logLevel': 'info',
    };
    const options = { meta, headers: { accept: BOTH_TYPES } };
    const asked = await askingCall(gateway, 'one__ask-then-tell', {}, options);
    const { text } = await retry(gateway, 'one__ask-then-tell', asked, ADA, options);
    expect(text).toContain('"params":{"level":"warning","logger":"steps","data":{"progress":1}}');
    expect(text).toContain('"params":{"progressToken":"mine","progress":1,"total":2');
  });

  test('§18.3 a question that the client did not declare is an error for the server', async () => {
    const meta = { [CLIENT_CAPABILITIES]: { sampling: {} } };
    const response = await callTool(gateway, 'one__ask', undefined, { meta });
    expect(saidIn(response)).toMatchObject({
      code: -32601,
      message: expect.stringContaining('elicitation'),
    });
  });

  test('§18.3 a server that ends the call without the answer: the retry has its result', async () => {
    const waiting = new Promise((resolve) => one.events.once('waiting', resolve));
    const asked = await askingCall(gateway, 'one__ask-and-leave');
    await waiting;
    one.events.emit('step');
    const answered = async () => (await retry(gateway, 'one__ask-and-leave', asked, ADA)).json;
    expect((await answered()).result.content).toEqual([{ type: 'text', text: '"left"' }]);
    // It is there once.
    expect((await answered()).result.content[0].text).toMatch(/Call again/);
  });

  test('§18.3 what was answered is over: another retry has to call again', async () => {
    const asked = await askingCall(gateway, 'one__ask');
    expect(saidIn(await retry(gateway, 'one__ask', asked, ADA))).toEqual(ADA);
    const again = await retry(gateway, 'one__ask', asked, ADA);
    expect(again.json.result.isError).toBe(true);
    expect(textOf(again)).toMatch(/^The call at one .* is over.*Call again/);
  });

  test("§18.3 another user's retry, and one of another call, never work", async () => {
    const asked = await askingCall(gateway, 'one__ask');
    const token = await gateway.issuer.sign({ sub: 'mallory' });
    const stolen = await retry(gateway, 'one__ask', asked, ADA, { token });
    expect(stolen.json.error.code).toBe(-32602);
    const other = await retry(gateway, 'one__ask-twice', asked, ADA);
    expect(other.json.error.code).toBe(-32602);
    expect(saidIn(await retry(gateway, 'one__ask', asked, ADA))).toEqual(ADA);
  });

  test('§18.3 a client that hangs up while it waits has cancelled the call', async () => {
    const asked = await askingCall(gateway, 'one__ask-then-wait');
    const { inputRequests, requestState } = questionsIn(asked);
    const [key = ''] = Object.keys(inputRequests);
    const { message, headers } = statelessRequest(
      'tools/call',
      { name: 'one__ask-then-wait', inputResponses: { [key]: ADA }, requestState },
      { meta: ASKABLE },
    );
    const waiting = new Promise((resolve) => one.events.once('waiting', resolve));
    const cancelled = new Promise((resolve) => one.events.once('cancelled', resolve));
    const authorization = `Bearer ${await gateway.issuer.sign()}`;
    const leaving = new AbortController();
    const response = fetch(`http://127.0.0.1:${await gateway.listen()}/mcp`, {
      method: 'POST',
      headers: { ...headers, authorization, 'content-type': 'application/json' },
      body: JSON.stringify(message),
      signal: leaving.signal,
    });
    await waiting;
    leaving.abort();
    await expect(response).rejects.toThrow();
    await cancelled;
  });

  test('§18.3 a client that does not come back within five minutes: the call is cancelled', async () => {
    const clock = manualClock();
    const server = closeAfterTest(await startRelayServer1());
    const inTime = closeAfterTest(await startRelayGateway({ servers: { one: server.url }, clock }));
    const asked = await askingCall(inTime, 'one__ask');
    await advanceSlowly(clock, 5 * MINUTE_MS - 1);
    expect(server.heard).toEqual([]);
    clock.advance(1);
    await expect.poll(() => server.heard).toHaveLength(1);
    const again = await retry(inTime, 'one__ask', asked, ADA);
    expect(textOf(again)).toMatch(/Call again/);
  });

  test('§18.3 a user has at most 16 calls that wait; others are not touched', async () => {
    const own = closeAfterTest(await startRelayGateway({ servers: { one: one.url } }));
    const first = await askingCall(own, 'one__ask');
    for (let call = 1; call < 16; call += 1) questionsIn(await askingCall(own, 'one__ask'));
    const refused = await askingCall(own, 'one__ask');
    expect(saidIn(refused)).toMatchObject({ message: expect.stringContaining('Too many calls') });
    const token = await own.issuer.sign({ sub: 'somebody-else' });
    questionsIn(await askingCall(own, 'one__ask', {}, { token }));
    expect(saidIn(await retry(own, 'one__ask', first, ADA))).toEqual(ADA);
    questionsIn(await askingCall(own, 'one__ask'));
  });

  test('§18.3 the time-out stands still until the answer comes', async () => {
    const clock = manualClock();
    const inTime = closeAfterTest(
      await startRelayGateway({ servers: { one: one.url }, clock, timeoutMs: MINUTE_MS }),
    );
    const asked = await askingCall(inTime, 'one__ask');
    await advanceSlowly(clock, 4 * MINUTE_MS);
    expect(saidIn(await retry(inTime, 'one__ask', asked, ADA))).toEqual(ADA);
  });
});
