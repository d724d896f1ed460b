// Calls that wait for a stateless client's answer, which reaches another replica than the one that began them.
import { beforeAll, describe, expect, test } from 'vitest';
import { BOTH_TYPES } from '../../support/clients/session-client.ts';
import { ASKABLE, askingCall, statelessRequest } from '../../support/clients/stateless.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { type RelayGateway, startRelayGateway } from '../../support/upstreams/relay-gateway.ts';
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

const server = useShared(startRelayServer1);
const redis = useShared(startRedis);

/** The second knows the issuer of the first. */
async function startReplica(issuer?: string, clock?: ManualClock): Promise<RelayGateway> {
  const env = { REDIS_URL: redis.url, ...(issuer && { OIDC_ISSUER: issuer }) };
  return startRelayGateway({ servers: { one: server.url }, env, ...(clock && { clock }) });
}

const nextOf = (event: string) => new Promise((resolve) => server.events.once(event, resolve));

describe('two replicas', () => {
  const first = useShared(() => startReplica());
  const second = useShared(() => startReplica(first.issuer.url));
  let token = '';
  beforeAll(async () => {
    token = await first.issuer.sign();
  });

  test('§18.3 the answer reaches the server, and the result the retry', async () => {
    const asked = await askingCall(first, 'one__ask', {}, { token });
    expect(saidIn(await retry(second, 'one__ask', asked, ADA, { token }))).toEqual(ADA);
  });

  test('§18.3 several questions, answered at either replica', async () => {
    const asked = await askingCall(first, 'one__ask-twice', {}, { token });
    const again = await retry(second, 'one__ask-twice', asked, ADA, { token });
    expect(Object.values(questionsIn(again).inputRequests)).toMatchObject([
      formQuestion('one asks: Second?'),
    ]);
    expect(saidIn(await retry(first, 'one__ask-twice', again, DECLINED, { token }))).toEqual([
      ADA,
      DECLINED,
    ]);
  });

  test('§18.3 all answered at the other', async () => {
    const asked = await askingCall(first, 'one__ask-both', {}, { token });
    const again = await retry(second, 'one__ask-both', asked, ADA, { token });
    const said = saidIn(await retry(second, 'one__ask-both', again, DECLINED, { token }));
    expect(said).toEqual([ADA, DECLINED]);
  });

  test('§18.3 a retry without the answer is asked the same again', async () => {
    const asked = await askingCall(first, 'one__ask', {}, { token });
    const again = await retry(second, 'one__ask', asked, undefined, { token });
    expect(questionsIn(again).inputRequests).toEqual(questionsIn(asked).inputRequests);
    expect(saidIn(await retry(second, 'one__ask', again, ADA, { token }))).toEqual(ADA);
  });

  test('§18.3 progress and log messages reach the retry', async () => {
    const meta = {
      ...ASKABLE,
      progressToken: 'mine',
      'io.modelcontextprotocol/logLevel': 'info',
    };
    const options = { token, meta, headers: { accept: BOTH_TYPES } };
    const asked = await askingCall(first, 'one__ask-then-tell', {}, options);
    const { text } = await retry(second, 'one__ask-then-tell', asked, ADA, options);
    expect(text).toContain('"params":{"level":"warning","logger":"steps","data":{"progress":1}}');
    expect(text).toContain('"params":{"progressToken":"mine","progress":1,"total":2');
  });

  test('§18.3 an error of the server reaches the retry whole', async () => {
    const asked = await askingCall(first, 'one__ask-then-fail', {}, { token });
    const { json } = await retry(second, 'one__ask-then-fail', asked, ADA, { token });
    expect(json.error).toEqual({
      code: -32099,
      message: expect.stringContaining('Not today'),
      data: { why: 'because' },
    });
  });

  test('§18.3 a result that nobody waits for lies sealed in the store, for one use', async () => {
    const waiting = nextOf('waiting');
    const asked = await askingCall(first, 'one__ask-and-leave', {}, { token });
    await waiting;
    server.events.emit('step');
    const client = redis.client();
    const listRecords = () => client.keys('mcp:session:call:*');
    await expect.poll(listRecords).toHaveLength(1);
    const [key = ''] = await listRecords();
    expect(await client.get(key)).not.toContain('left');
    expect(await client.ttl(key)).toBeLessThanOrEqual(300);
    const response = await retry(second, 'one__ask-and-leave', asked, ADA, { token });
    expect(saidIn(response)).toBe('left');
    expect(await listRecords()).toEqual([]);
    const again = await retry(second, 'one__ask-and-leave', asked, ADA, { token });
    expect(textOf(again)).toMatch(/Call again/);
  });

  test("§18.3 another user's retry does not work here, either", async () => {
    const asked = await askingCall(first, 'one__ask', {}, { token });
    const mallory = await first.issuer.sign({ sub: 'mallory' });
    const stolen = await retry(second, 'one__ask', asked, ADA, { token: mallory });
    expect(stolen.json.error.code).toBe(-32602);
    expect(saidIn(await retry(second, 'one__ask', asked, ADA, { token }))).toEqual(ADA);
  });

  test('§18.3 a client that hangs up while it waits has cancelled the call', async () => {
    const asked = await askingCall(first, 'one__ask-then-wait', {}, { token });
    const { inputRequests, requestState } = questionsIn(asked);
    const [key = ''] = Object.keys(inputRequests);
    const { message, headers } = statelessRequest(
      'tools/call',
      { name: 'one__ask-then-wait', inputResponses: { [key]: ADA }, requestState },
      { meta: ASKABLE },
    );
    const waiting = nextOf('waiting');
    const cancelled = nextOf('cancelled');
    const leaving = new AbortController();
    const response = fetch(`http://127.0.0.1:${await second.listen()}/mcp`, {
      method: 'POST',
      headers: {
        ...headers,
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(message),
      signal: leaving.signal,
    });
    await waiting;
    leaving.abort();
    await expect(response).rejects.toThrow();
    await cancelled;
  });
});

test('§18.3 of many who redeem the same state of a stateless server at two replicas, one does', async () => {
  const two = closeAfterTest(await startRelayServer2());
  const start = async (issuer?: string) =>
    closeAfterTest(
      await startRelayGateway({
        servers: { two: two.url },
        env: { REDIS_URL: redis.url, ...(issuer && { OIDC_ISSUER: issuer }) },
      }),
    );
  const first = await start();
  const second = await start(first.issuer.url);
  const token = await first.issuer.sign();
  const asked = await askingCall(first, 'two__ask', {}, { token });
  const responses = await Promise.all(
    [first, second, first, second].map((at) => retry(at, 'two__ask', asked, ADA, { token })),
  );
  const failed = responses.filter(({ json }) => json.result.isError === true);
  expect(failed).toHaveLength(3);
});

/** A call that asked at the first; the time of the second stands still. */
async function suspendCall(tool = 'one__ask') {
  const clock = manualClock();
  const first = closeAfterTest(await startReplica());
  const second = closeAfterTest(await startReplica(first.issuer.url, clock));
  const token = await first.issuer.sign();
  const asked = await askingCall(first, tool, {}, { token });
  return { first, second, clock, retryElsewhere: () => retry(second, tool, asked, ADA, { token }) };
}

const CALL_AGAIN = {
  isError: true,
  content: [{ text: expect.stringMatching(/^The call at one .* is over.*Call again/) }],
};

test('§17 a replica that was stopped: its calls have to be called again, as is told at once', async () => {
  const { first, retryElsewhere } = await suspendCall();
  await first.gateway.close();
  expect((await retryElsewhere()).json.result).toMatchObject(CALL_AGAIN);
});

test('§18.3 a replica that is gone: the retry has to call again after 6 s', async () => {
  const { first, clock, retryElsewhere } = await suspendCall();
  first.cutOff();
  let response: Awaited<ReturnType<typeof retryElsewhere>> | undefined;
  void retryElsewhere().then((received) => {
    response = received;
  });
  await expect
    .poll(() => {
      clock.advance(500);
      return response?.json.result;
    })
    .toMatchObject(CALL_AGAIN);
});

test('§18.3 an answer that was lost between replicas is sent again', async () => {
  const { first, clock, retryElsewhere } = await suspendCall();
  first.cutOff();
  const response = retryElsewhere();
  await expect.poll(first.countLost).toBeGreaterThan(0);
  first.cutOff(false);
  clock.advance(2000);
  expect(saidIn(await response)).toEqual(ADA);
});

test('§18.3 that a call has ended is asked for, where the message of it was lost', async () => {
  const { second, clock, retryElsewhere } = await suspendCall('one__ask-then-wait');
  const waiting = nextOf('waiting');
  const response = retryElsewhere();
  await waiting;
  second.cutOff();
  server.events.emit('step');
  await expect.poll(second.countLost).toBeGreaterThan(0);
  second.cutOff(false);
  clock.advance(2000);
  expect(saidIn(await response)).toEqual(ADA);
});

test('§17 while Redis is down, a retry at another replica gets a true error', async () => {
  const own = closeAfterTest(await startRedis());
  const start = (env: Readonly<Record<string, string>>) =>
    startRelayGateway({ servers: { one: server.url }, env: { REDIS_URL: own.url, ...env } });
  const first = closeAfterTest(await start({}));
  const second = closeAfterTest(await start({ OIDC_ISSUER: first.issuer.url }));
  const token = await first.issuer.sign();
  const asked = await askingCall(first, 'one__ask', {}, { token });
  // What opens the client's state is at hand from now on.
  saidIn(await retry(second, 'one__ask', asked, ADA, { token }));
  await own.kill();
  const { json } = await retry(second, 'one__ask', asked, ADA, { token });
  expect(json.error).toMatchObject({ code: -32000, message: 'Internal Server Error' });
});
