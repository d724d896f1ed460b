// Servers that ask on the stream of their session (GET), which they do not say to have: it is open while they may ask.
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { UpstreamRequest } from '../../../src/mcp/upstream/upstream.ts';
import type { JsonObject } from '../../../src/platform/json.ts';
import { advanceSlowly, manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import {
  callTool,
  NO_CAPABILITIES,
  sessionCaller,
  statelessCaller,
} from '../../support/upstreams/requests.ts';
import {
  sendJson,
  startEvents,
  startScriptedHttp,
  toEvent,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const ROLE = { role: 'assistant', model: 'm', content: { type: 'text', text: 'yes' } };
const question = (id: string) =>
  toEvent({ jsonrpc: '2.0', id, method: 'sampling/createMessage', params: { id } });

const clock = manualClock();
const server = useFresh(() => startScriptedHttp('session'));
const opened = useFresh(() => openHttpUpstream({ url: server.url, timeoutMs: 10_000 }, { clock }));

/** Streams that the server has, by session. */
const streams = new Map<string, ServerResponse>();
/** Ends a call by the word in its arguments. */
const endings = new Map<string, () => void>();

/** A call goes on until `end`. */
function behave(): void {
  streams.clear();
  endings.clear();
  server.answer('GET', (res, { headers }) => {
    const session = String(headers['mcp-session-id']);
    streams.set(session, startEvents(res));
    res.once('close', () => streams.delete(session));
  });
  server.answer('tools/call', (res, request) => {
    const { word } = Object(Object(request.message.params).arguments);
    endings.set(word, () => sendJson(res, toResult(request, { content: [], word })));
  });
}

function end(word: string): void {
  endings.get(word)?.();
  endings.delete(word);
}
const only = () => [...streams.values()][0];
const call = (caller: Parameters<typeof callTool>[1], word: string, given: Given = {}) =>
  callTool(opened.upstream, caller, 'any', { word }, { onRequest: async () => ROLE, ...given });
type Given = Partial<UpstreamRequest>;

/** What the server was answered. */
const answers = (): readonly JsonObject[] =>
  server.received.flatMap(({ message }) =>
    message.method === undefined && message.jsonrpc === '2.0' ? [message] : [],
  );
const isWaiting = (word: string) => expect.poll(() => endings.has(word)).toBe(true);

/** A client that answers a question once `answer` is called. */
function holdAnswer() {
  let answer = (_value: JsonObject) => {};
  const onRequest = () =>
    new Promise<JsonObject>((resolve) => {
      answer = resolve;
    });
  return { onRequest, answer: (value: JsonObject) => answer(value) };
}

/** Lets what is on its way over loopback arrive. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
}

describe('a server that asks on the stream of its session', () => {
  test('§18.3 finds it open when the first call arrives, and is answered in that session', async () => {
    behave();
    let wasOpen = false;
    server.answer('tools/call', (res, request) => {
      wasOpen = streams.has(String(request.headers['mcp-session-id']));
      endings.set('ends', () => sendJson(res, toResult(request, { content: [] })));
      only()?.write(question('q'));
    });
    server.answer('response', (res) => {
      res.writeHead(202).end();
      end('ends');
    });
    const asked: unknown[] = [];
    await call(sessionCaller(), 'first', {
      onRequest: async (what) => {
        asked.push(what);
        return ROLE;
      },
    });
    expect(wasOpen).toBe(true);
    expect(asked).toEqual([{ method: 'sampling/createMessage', params: { id: 'q' } }]);
    expect(answers()).toEqual([{ jsonrpc: '2.0', id: 'q', result: ROLE }]);
    const posted = server.received.findLast(({ message }) => message.id === 'q');
    expect(posted?.headers['mcp-session-id']).toBe([...streams.keys()][0]);
  });

  test.each(['elicitation', 'elicitationUrl', 'sampling', 'roots'])(
    '§18.3 may ask a client that declared %s alone',
    async (name) => {
      behave();
      const capabilities = { ...NO_CAPABILITIES, [name]: true };
      const called = call(sessionCaller({ capabilities }), 'a');
      await isWaiting('a');
      expect(streams.size).toBe(1);
      end('a');
      await called;
    },
  );

  test('§18.3 has no stream of a client that cannot be asked, nor for what asks nobody', async () => {
    behave();
    const called = [
      call(sessionCaller({ capabilities: NO_CAPABILITIES }), 'a'),
      callTool(opened.upstream, sessionCaller(), 'any', { word: 'b' }),
    ];
    await Promise.all([isWaiting('a'), isWaiting('b')]);
    expect(server.count('GET')).toBe(0);
    end('a');
    end('b');
    await Promise.all(called);
  });

  test('§18.3 keeps the stream for a minute after the last call; a later call opens it again', async () => {
    behave();
    const caller = sessionCaller();
    for (const word of ['a', 'b']) {
      const called = call(caller, word);
      await isWaiting(word);
      expect(server.count('GET')).toBe(1);
      if (word === 'b') await advanceSlowly(clock, 8000);
      end(word);
      await called;
    }
    await advanceSlowly(clock, 50_000);
    expect(streams.size).toBe(1);
    await advanceSlowly(clock, 30_000);
    await expect.poll(() => streams.size).toBe(0);
    const called = call(caller, 'c');
    await isWaiting('c');
    expect(streams.size).toBe(1);
    expect(server.count('GET')).toBe(2);
    end('c');
    await called;
  });

  test('§18.3 keeps it for as long as a call goes on', async () => {
    behave();
    const called = call(sessionCaller(), 'a', { onProgress() {} });
    await isWaiting('a');
    for (let minute = 0; minute < 20; minute += 1) {
      await advanceSlowly(clock, 9000);
      const progressToken = server.received.find(({ message }) => message.method === 'tools/call')
        ?.message.id;
      const params = { progressToken, progress: minute };
      only()?.write(toEvent({ jsonrpc: '2.0', method: 'notifications/progress', params }));
      await settle();
    }
    expect(server.count('GET')).toBe(1);
    expect(streams.size).toBe(1);
    end('a');
    await called;
  });

  test('§18.3 ends its stream with the session of the client', async () => {
    behave();
    const caller = sessionCaller();
    const called = call(caller, 'a');
    await isWaiting('a');
    end('a');
    await called;
    await opened.upstream.endSession(caller);
    await expect.poll(() => streams.size).toBe(0);
  });

  test('§18.3 has one stream where somebody listens as well', async () => {
    behave();
    const caller = sessionCaller();
    const called = call(caller, 'a');
    await isWaiting('a');
    const heard: string[] = [];
    const stop = opened.upstream.listen(caller, {
      listChanged: (list) => void heard.push(list),
      resourceUpdated() {},
    });
    await settle();
    only()?.write(toEvent({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }));
    await expect.poll(() => heard).toEqual(['tools']);
    expect(server.count('GET')).toBe(1);
    end('a');
    await called;
    stop();
    await settle();
    expect(streams.size).toBe(1);
  });
});

describe('a call whose server has no such stream', () => {
  test.each([405, 404, 400, 401, 403, 501, 503])(
    '§18.3 goes on in its session, and is not held up (%i)',
    async (status) => {
      behave();
      server.answer('GET', (res) => res.writeHead(status).end());
      const caller = sessionCaller();
      for (const word of ['a', 'b']) {
        const called = call(caller, word);
        await isWaiting(word);
        end(word);
        expect(await called).toMatchObject({ word });
      }
      expect(server.count('GET')).toBe(1);
      expect(server.count('initialize')).toBe(1);
    },
  );

  test('§18.3 405: its session is never asked for it again', async () => {
    behave();
    server.answer('GET', (res) => res.writeHead(405).end());
    const caller = sessionCaller();
    for (const word of ['a', 'b']) {
      const called = call(caller, word);
      await isWaiting(word);
      end(word);
      await called;
      await advanceSlowly(clock, 120_000);
    }
    expect(server.count('GET')).toBe(1);
  });

  test('§18.3 waits a second at most where the stream does not begin, and once only', async () => {
    behave();
    server.answer('GET', () => {});
    const caller = sessionCaller();
    const called = call(caller, 'a');
    await expect.poll(() => server.count('GET')).toBe(1);
    await settle();
    expect(endings.has('a')).toBe(false);
    await advanceSlowly(clock, 1000);
    await isWaiting('a');
    const other = call(caller, 'b');
    await isWaiting('b');
    end('a');
    end('b');
    await Promise.all([called, other]);
  });
});

describe('a question on the stream of a session', () => {
  test('§18.3 stops the time of the call until it is answered', async () => {
    behave();
    const { onRequest, answer } = holdAnswer();
    const called = call(sessionCaller(), 'a', { onRequest });
    await isWaiting('a');
    await advanceSlowly(clock, 9000);
    only()?.write(question('q'));
    await settle();
    await advanceSlowly(clock, 60_000);
    answer(ROLE);
    await expect.poll(answers).toHaveLength(1);
    const ended = called.then(
      () => 'answered',
      (error: Error) => error.message,
    );
    await advanceSlowly(clock, 2000);
    expect(await ended).toMatch(/did not answer within 10 s/);
  });

  test('§18.3 gives the call its whole time again by progress while it waits for its answer', async () => {
    behave();
    const { onRequest, answer } = holdAnswer();
    const told: JsonObject[] = [];
    const called = call(sessionCaller(), 'a', {
      onRequest,
      onProgress: (params) => void told.push(params),
    });
    await isWaiting('a');
    await advanceSlowly(clock, 9000);
    only()?.write(question('q'));
    await settle();
    const progressToken = server.received.find(({ message }) => message.method === 'tools/call')
      ?.message.id;
    const progress = { progressToken, progress: 1 };
    only()?.write(toEvent({ jsonrpc: '2.0', method: 'notifications/progress', params: progress }));
    await expect.poll(() => told.length).toBe(1);
    answer(ROLE);
    await expect.poll(answers).toHaveLength(1);
    await advanceSlowly(clock, 9000);
    end('a');
    expect(await called).toMatchObject({ word: 'a' });
  });

  test('§18.3 is answered with the token of the last call: that of the first may be too old', async () => {
    behave();
    const { upstream } = closeAfterTest(
      await openHttpUpstream(
        { url: server.url },
        { clock, getHeaders: async ({ user }) => ({ authorization: `Bearer ${user?.token}` }) },
      ),
    );
    const first = sessionCaller();
    const later = { ...first, user: { sub: 'ada', claims: { sub: 'ada' }, token: 'newer' } };
    const callAs = (caller: typeof first, word: string) =>
      callTool(upstream, caller, 'any', { word }, { onRequest: async () => ROLE });
    const called = [callAs(first, 'a'), callAs(later, 'b')];
    await Promise.all([isWaiting('a'), isWaiting('b')]);
    only()?.write(question('q'));
    await expect.poll(answers).toHaveLength(1);
    const { headers } = server.received.findLast(({ message }) => message.id === 'q') ?? {};
    expect(headers?.authorization).toBe('Bearer newer');
    end('a');
    end('b');
    await Promise.all(called);
  });

  test('§18.3 with several calls under way: it goes to the newest, the next one to another, and the time of all stands still', async () => {
    behave();
    const caller = sessionCaller();
    const asked: string[] = [];
    let answer = (_value: JsonObject) => {};
    const called: Promise<JsonObject>[] = [];
    for (const word of ['a', 'b', 'c']) {
      const onRequest = () => {
        asked.push(word);
        return new Promise<JsonObject>((resolve) => {
          answer = resolve;
        });
      };
      called.push(call(caller, word, { onRequest }));
      await isWaiting(word);
    }
    end('a');
    await called[0];
    only()?.write(question('q'));
    await expect.poll(() => asked).toEqual(['c']);
    const answerFirst = answer;
    only()?.write(question('r'));
    await expect.poll(() => asked).toEqual(['c', 'b']);
    await advanceSlowly(clock, 60_000);
    answerFirst(ROLE);
    answer(ROLE);
    await expect.poll(answers).toHaveLength(2);
    end('b');
    end('c');
    expect(await Promise.all(called)).toMatchObject([{ word: 'a' }, { word: 'b' }, { word: 'c' }]);
  });

  test('§18.3 never reaches another user, whatever the server calls their sessions', async () => {
    behave();
    server.answer('initialize', (res, request) => {
      res.setHeader('mcp-session-id', 'the-same-for-all');
      sendJson(res, toResult(request, { protocolVersion: '2025-11-25', capabilities: {} }));
    });
    const open: ServerResponse[] = [];
    server.answer('GET', (res) => void open.push(startEvents(res)));
    const asked: string[] = [];
    const called = ['ada', 'bob'].map((sub) => {
      const user = { sub, claims: { sub }, token: sub };
      const caller = sub === 'ada' ? sessionCaller({ user }) : statelessCaller({ user });
      return call(caller, sub, {
        onRequest: async () => {
          asked.push(sub);
          return ROLE;
        },
      });
    });
    await Promise.all([isWaiting('ada'), isWaiting('bob')]);
    expect(open).toHaveLength(2);
    end('ada');
    await called[0];
    for (const stream of open) stream.write(question('q'));
    await expect.poll(answers).toHaveLength(2);
    expect(asked).toEqual(['bob']);
    expect(answers()).toContainEqual(
      expect.objectContaining({ error: expect.objectContaining({ code: -32601 }) }),
    );
    end('bob');
    await Promise.all(called);
  });

  test('§18.3 without authentication: of several callers without a session nobody is asked', async () => {
    behave();
    const asked: string[] = [];
    const called = ['a', 'b'].map((word) =>
      call(statelessCaller({ user: undefined, clientId: undefined }), word, {
        onRequest: async () => {
          asked.push(word);
          return ROLE;
        },
      }),
    );
    await Promise.all([isWaiting('a'), isWaiting('b')]);
    only()?.write(question('q'));
    await expect.poll(answers).toMatchObject([{ error: { code: -32601 } }]);
    end('a');
    await called[0];
    only()?.write(question('r'));
    await expect.poll(answers).toHaveLength(2);
    expect(asked).toEqual(['b']);
    end('b');
    await Promise.all(called);
  });

  test('§18.3 of a server without sessions is nobody’s: it may be about any caller', async () => {
    behave();
    server.answer('initialize', (res, request) =>
      sendJson(res, toResult(request, { protocolVersion: '2025-11-25', capabilities: {} })),
    );
    const caller = sessionCaller();
    const called = call(caller, 'a');
    await isWaiting('a');
    expect(server.count('GET')).toBe(0);
    opened.upstream.listen(caller, { listChanged() {}, resourceUpdated() {} });
    await expect.poll(() => streams.size).toBe(1);
    only()?.write(question('q'));
    await expect.poll(answers).toMatchObject([{ error: { code: -32601 } }]);
    end('a');
    await called;
  });
});

describe('streams for questions', () => {
  test('§18.3 a user has 64 of them: one that no call needs makes room, else the call goes without', async () => {
    behave();
    const user = { sub: 'ada', claims: { sub: 'ada' }, token: 'ada' };
    const start = (word: string, sub = user) => call(sessionCaller({ user: sub }), word);
    const first = start('idle');
    await isWaiting('idle');
    end('idle');
    await first;
    const called = Array.from({ length: 65 }, (_, at) => start(`${at}`));
    await Promise.all(called.map((_, at) => isWaiting(`${at}`)));
    await expect.poll(() => streams.size).toBe(64);
    expect(opened.lines.filter(({ level }) => level === 'warn')).toMatchObject([
      { level: 'warn', server: 'server', msg: expect.stringContaining('GET stream') },
    ]);
    const bob = start('bob', { sub: 'bob', claims: { sub: 'bob' }, token: 'bob' });
    await isWaiting('bob');
    expect(streams.size).toBe(65);
    for (const word of [...endings.keys()]) end(word);
    await Promise.all([...called, bob]);
  });
});
