// Streams of servers of the session era that break, or that the server closes early, and are read on by GET.
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/platform/json.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { useFresh } from '../../support/lifetimes.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import {
  callTool,
  NO_CAPABILITIES,
  sessionCaller,
  statelessCaller,
  toRequest,
} from '../../support/upstreams/requests.ts';
import {
  type Respond,
  type ScriptedRequest,
  sendJson,
  startEvents,
  startScriptedHttp,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const TIMEOUT_MS = 120_000;
const RESULT = { content: [{ type: 'text', text: 'late' }] };
const ENDED = 'it ended its answer before the result';
const CUT = 'it closed the connection in the middle of its answer';

/** An event with an id; without data where there is no value. */
const event = (id: string, value?: unknown) =>
  `id: ${id}\ndata: ${value === undefined ? '' : JSON.stringify(value)}\n\n`;
const retry = (ms: number | string) => `retry: ${ms}\n`;
const progress = (request: ScriptedRequest, now: number) => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: request.message.id, progress: now },
});

/** Lets what is on its way over loopback arrive. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
}

const clock = manualClock();
const server = useFresh(() => startScriptedHttp('session'));
const opened = useFresh(() =>
  openHttpUpstream({ url: server.url, timeoutMs: TIMEOUT_MS }, { clock }),
);

/** A call whose stream the server begins with these events, and then ends or breaks. */
function startBrokenCall(
  begin: (request: ScriptedRequest) => string,
  end: (res: ServerResponse) => void = (res) => res.end(),
) {
  let asked: ScriptedRequest | undefined;
  server.answer('tools/call', (res, request) => {
    asked = request;
    // What was written is on its way before the connection breaks.
    startEvents(res).write(begin(request), () => end(res));
  });
  // One that can be asked has a stream (GET) for that beside its call.
  const caller = sessionCaller({ capabilities: NO_CAPABILITIES });
  const heard: unknown[] = [];
  const controller = new AbortController();
  const calling = callTool(
    opened.upstream,
    caller,
    'slow',
    {},
    {
      signal: controller.signal,
      onProgress: (params: JsonObject) => void heard.push(params.progress),
      onRequest: async () => ({ action: 'decline' }),
    },
  );
  calling.catch(() => {});
  return {
    calling,
    heard,
    abort: () => controller.abort(),
    /** What the server was asked. */
    request(): ScriptedRequest {
      if (asked === undefined) throw new Error('The call has not come yet');
      return asked;
    },
  };
}

/** Once the stream has ended and the gateway waits to come back, this is how long. */
async function comeBackAfter(ms: number): Promise<void> {
  await expect.poll(() => server.count('tools/call')).toBe(1);
  await settle();
  const before = server.count('GET');
  clock.advance(ms - 1);
  await settle();
  expect(server.count('GET')).toBe(before);
  clock.advance(1);
  await expect.poll(() => server.count('GET')).toBe(before + 1);
}

const lastGet = () => server.received.findLast(({ http }) => http === 'GET');
const cut = (res: ServerResponse) => void res.destroy();

const ENDS = [
  ['closed', (res: ServerResponse) => void res.end()],
  ['broken', cut],
] as const;

describe('an answer whose stream has ended before it', () => {
  test.each(ENDS)(
    '§18.3 is read on after the time that the server wants: %s, and the call is not sent again',
    async (_, end) => {
      const call = startBrokenCall(() => retry(2500) + event('e-1'), end);
      server.answer('GET', (res) => {
        startEvents(res).end(event('e-2', toResult(call.request(), RESULT)));
      });
      await comeBackAfter(2500);
      expect(await call.calling).toEqual(RESULT);
      expect(lastGet()?.headers).toMatchObject({
        'last-event-id': 'e-1',
        accept: 'text/event-stream',
        'mcp-session-id': call.request().headers['mcp-session-id'],
        'mcp-protocol-version': '2025-11-25',
      });
      expect(server.count('tools/call')).toBe(1);
    },
  );

  test.each([
    ['nothing', '', 1000],
    ['0', retry(0), 500],
    ['a time that is none', retry('soon'), 1000],
    ['days', retry(999_999_999_999), 300_000],
  ] as const)('§18.3 is asked for in time, whatever the server says: %s', async (_, hint, ms) => {
    const { upstream } = opened;
    server.answer('resources/read', (res) => void startEvents(res).end(hint + event('e-1')));
    server.answer('GET', (res) => void res.writeHead(405).end());
    const reading = upstream.request(sessionCaller(), toRequest('resources/read', { uri: 'a://' }));
    const isRefused = expect(reading).rejects.toMatchObject({
      failure: ms > TIMEOUT_MS ? 'timeout' : 'invalid',
    });
    await expect.poll(() => server.count('resources/read')).toBe(1);
    await settle();
    clock.advance(Math.min(ms, TIMEOUT_MS) - 1);
    await settle();
    expect(server.count('GET')).toBe(0);
    clock.advance(1);
    await isRefused;
    expect(server.count('GET')).toBe(ms > TIMEOUT_MS ? 0 : 1);
  });

  test('§18.3 goes on behind the last event that came whole, and tells none twice', async () => {
    const call = startBrokenCall(
      (request) =>
        event('e-0') +
        event('e-1', progress(request, 1)) +
        `id: e-2\ndata: ${JSON.stringify(progress(request, 2))}`,
      cut,
    );
    server.answer('GET', (res) => {
      const request = call.request();
      // It replays more than it was asked for.
      const replayed = [1, 2, 3].map((now) => event(`e-${now}`, progress(request, now)));
      startEvents(res).end(replayed.join('') + event('e-4', toResult(request, RESULT)));
    });
    await comeBackAfter(1000);
    expect(await call.calling).toEqual(RESULT);
    expect(lastGet()?.headers['last-event-id']).toBe('e-1');
    expect(call.heard).toEqual([1, 2, 3]);
  });

  test('§18.3 is found among what the server repeats of other calls', async () => {
    const call = startBrokenCall(() => event('e-1'));
    server.answer('GET', (res) => {
      const request = call.request();
      const others = [
        { jsonrpc: '2.0', id: 4711, result: { content: [] } },
        { jsonrpc: '2.0', id: 4712, error: { code: -32603, message: 'Of another call' } },
        { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'Of nobody' } },
      ];
      const repeated = others.map((other, at) => event(`e-${at + 2}`, other));
      startEvents(res).end(repeated.join('') + event('e-9', toResult(request, RESULT)));
    });
    await comeBackAfter(1000);
    expect(await call.calling).toEqual(RESULT);
  });

  test('§18.3 is asked for again and again by a server that wants to be polled', async () => {
    const call = startBrokenCall(() => retry(600) + event('e-0'));
    const asked: unknown[] = [];
    server.answer('GET', (res, { headers }) => {
      asked.push(headers['last-event-id']);
      const stream = startEvents(res);
      if (asked.length === 4) stream.end(event('e-9', toResult(call.request(), RESULT)));
      // Without an event the position stays what it was.
      else stream.end(asked.length === 2 ? '' : event(`e-${asked.length}`));
    });
    for (let times = 0; times < 4; times += 1) await comeBackAfter(600);
    expect(await call.calling).toEqual(RESULT);
    expect(asked).toEqual(['e-0', 'e-1', 'e-1', 'e-3']);
  });

  test('§18.3 may bring what the server asks on the way', async () => {
    const call = startBrokenCall(() => event('e-0'));
    const ask = { jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: '?' } };
    let stream: ServerResponse | undefined;
    server.answer('GET', (res) => {
      stream = startEvents(res);
      stream.write(event('e-1', ask));
    });
    server.answer('response', (res) => {
      res.writeHead(202).end();
      stream?.end(event('e-2', toResult(call.request(), RESULT)));
    });
    await comeBackAfter(1000);
    expect(await call.calling).toEqual(RESULT);
    expect(server.received.findLast(({ message }) => message.id === 'q')?.message).toMatchObject({
      result: { action: 'decline' },
    });
  });

  test('§18.3 each caller comes back to the own one', async () => {
    const asked = new Map<unknown, ScriptedRequest>();
    server.answer('tools/call', (res, request) => {
      const { name } = Object(request.message.params);
      asked.set(name, request);
      startEvents(res).end(event(`of-${name}`));
    });
    server.answer('GET', (res, { headers }) => {
      const name = String(headers['last-event-id']).slice('of-'.length);
      const request = asked.get(name);
      if (request === undefined || headers['mcp-session-id'] !== request.headers['mcp-session-id'])
        res.writeHead(404).end();
      else startEvents(res).end(event('end', toResult(request, { content: [], name })));
    });
    const names = ['ada', 'bob', 'eve'];
    const calls = names.map((name) => callTool(opened.upstream, sessionCaller(), name));
    await expect.poll(() => server.count('tools/call')).toBe(3);
    await settle();
    clock.advance(1000);
    expect(await Promise.all(calls)).toEqual(names.map((name) => ({ content: [], name })));
  });
});

describe('an answer that cannot be read on', () => {
  test.each([
    ['closed', 405, ENDED],
    ['closed', 404, ENDED],
    ['broken', 400, CUT],
    ['broken', 401, CUT],
  ] as const)(
    '§18.3 %s, and refused (%i): the call fails as it always did, and nothing is begun anew',
    async (how, status, message) => {
      const call = startBrokenCall(() => event('e-0'), how === 'broken' ? cut : undefined);
      server.answer('GET', (res) => void res.writeHead(status).end());
      await comeBackAfter(1000);
      await expect(call.calling).rejects.toMatchObject({ failure: 'invalid', message });
      expect(server.count('tools/call')).toBe(1);
      expect(server.count('initialize')).toBe(1);
    },
  );

  const OTHER_ANSWERS: readonly (readonly [string, Respond])[] = [
    ['a page', (res) => void res.writeHead(200, { 'content-type': 'text/html' }).end('<p>Hello')],
    ['JSON', (res, request) => sendJson(res, toResult(request, {}))],
    ['nothing', (res) => void res.writeHead(204).end()],
  ];
  test.each(OTHER_ANSWERS)(
    '§18.3 the server answers with %s: the call fails',
    async (_, answer) => {
      const call = startBrokenCall(() => event('e-0'));
      server.answer('GET', answer);
      await comeBackAfter(1000);
      await expect(call.calling).rejects.toMatchObject({ failure: 'invalid', message: ENDED });
    },
  );

  test.each([503, 429, 409])(
    '§18.3 the server is busy (%i): it is asked six times, ever less often',
    async (status) => {
      const call = startBrokenCall(() => event('e-0'), cut);
      server.answer('GET', (res) => void res.writeHead(status).end());
      for (const pause of [1000, 1000, 2000, 4000, 8000, 16_000]) await comeBackAfter(pause);
      await expect(call.calling).rejects.toMatchObject({ message: CUT });
      expect(server.count('tools/call')).toBe(1);
    },
  );

  test('§18.3 a server that was started anew meanwhile is found again', async () => {
    const call = startBrokenCall(() => event('e-0'), cut);
    let attempts = 0;
    server.answer('GET', (res) => {
      attempts += 1;
      if (attempts < 3) res.destroy();
      else startEvents(res).end(event('e-1', toResult(call.request(), RESULT)));
    });
    for (const pause of [1000, 1000, 2000]) await comeBackAfter(pause);
    expect(await call.calling).toEqual(RESULT);
  });

  test.each([
    ['no id', () => 'data: \n\n'],
    ['an id that no header can carry', () => event('é')],
    ['an id that is too long', () => event('e'.repeat(513))],
    ['an id that the server takes back', () => event('e-0') + event('')],
  ])('§18.3 the events have %s: the call fails at once', async (_, begin) => {
    const call = startBrokenCall(begin);
    await expect(call.calling).rejects.toMatchObject({ failure: 'invalid', message: ENDED });
    expect(server.count('GET')).toBe(0);
  });

  test('§18.3 an event that is none ends the call, as on the first stream', async () => {
    const call = startBrokenCall(() => event('e-0'));
    server.answer('GET', (res) => void startEvents(res).end('id: e-1\ndata: no JSON\n\n'));
    await comeBackAfter(1000);
    await expect(call.calling).rejects.toMatchObject({ message: 'it answered what is no JSON' });
  });

  test('§18.3 a stateless server knows no events by id', async () => {
    server.become('stateless');
    const call = startBrokenCall(() => event('e-0'));
    await expect(call.calling).rejects.toMatchObject({ failure: 'invalid', message: ENDED });
    expect(server.count('GET')).toBe(0);
  });
});

describe('a call that ends while its answer is to be read on', () => {
  const cancelled = () =>
    server.received.filter(({ message }) => message.method === 'notifications/cancelled');

  test('§18.3 by its timeout: the server is told, and left alone', async () => {
    const call = startBrokenCall(() => retry(10_000) + event('e-0'));
    server.answer('GET', (res) => void startEvents(res).end());
    const isOver = expect(call.calling).rejects.toMatchObject({ failure: 'timeout' });
    await comeBackAfter(10_000);
    await settle();
    await expect
      .poll(() => {
        clock.advance(10_000);
        return cancelled().length;
      })
      .toBe(1);
    await isOver;
    const asked = server.count('GET');
    clock.advance(600_000);
    await settle();
    expect(server.count('GET')).toBe(asked);
  });

  test('§18.3 as its client no longer waits, before the gateway came back', async () => {
    const call = startBrokenCall(() => event('e-0'));
    await expect.poll(() => server.count('tools/call')).toBe(1);
    await settle();
    call.abort();
    await expect(call.calling).rejects.toMatchObject({ failure: 'aborted' });
    await expect.poll(() => cancelled().length).toBe(1);
    clock.advance(600_000);
    await settle();
    expect(server.count('GET')).toBe(0);
  });

  test('§18.3 as its client no longer waits, on the stream that goes on', async () => {
    const call = startBrokenCall(() => event('e-0'));
    let isClosed = false;
    server.answer('GET', (res) => {
      startEvents(res).on('close', () => {
        isClosed = true;
      });
    });
    await comeBackAfter(1000);
    await settle();
    call.abort();
    await expect(call.calling).rejects.toMatchObject({ failure: 'aborted' });
    await expect.poll(() => isClosed).toBe(true);
  });

  test.each([
    ['is read', 0, () => {}],
    ['is to be read on', 1000, (res: ServerResponse) => void res.end()],
  ])('§18.3 as the gateway no longer uses the server, while the answer %s', async (_, ms, end) => {
    const call = startBrokenCall(() => event('e-0'), end);
    const isOver = expect(call.calling).rejects.toMatchObject({ failure: 'invalid' });
    await expect.poll(() => server.count('tools/call')).toBe(1);
    await settle();
    const closing = opened.upstream.close(0);
    clock.advance(0);
    await closing;
    clock.advance(ms);
    await isOver;
    expect(server.count('GET')).toBe(0);
  });
});

describe('the GET stream of a session', () => {
  const changed = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
  let streams: { res: ServerResponse; request: ScriptedRequest }[] = [];

  function listen(caller = sessionCaller()) {
    const heard: string[] = [];
    opened.upstream.listen(caller, {
      listChanged: (list) => void heard.push(list),
      resourceUpdated: (uri) => void heard.push(uri),
    });
    return heard;
  }

  function offerStreams(): void {
    streams = [];
    server.answer('initialize', (res, request) => {
      res.setHeader('mcp-session-id', 'the-session');
      const capabilities = { tools: { listChanged: true }, resources: { subscribe: true } };
      sendJson(res, toResult(request, { protocolVersion: '2025-11-25', capabilities }));
    });
    server.answer('GET', (res, request) => void streams.push({ res: startEvents(res), request }));
  }

  async function awaitStream(count: number, ms: number): Promise<void> {
    await settle();
    clock.advance(ms - 1);
    await settle();
    expect(streams).toHaveLength(count - 1);
    clock.advance(1);
    await expect.poll(() => streams.length).toBe(count);
  }

  const sentId = (at: number) => streams[at]?.request.headers['last-event-id'];

  test('§18.3 goes on after the last event, as often as the server wants; nothing counts as missed', async () => {
    offerStreams();
    const heard = listen();
    await expect.poll(() => streams.length).toBe(1);
    expect(sentId(0)).toBeUndefined();
    streams[0]?.res.end(retry(3000) + event('s-1'));
    for (const at of [1, 2, 3, 4]) {
      await awaitStream(at + 1, 3000);
      expect(sentId(at)).toBe(`s-${at}`);
      streams[at]?.res.end(event(`s-${at + 1}`));
    }
    expect(heard).toEqual([]);
    await awaitStream(6, 3000);
    streams[5]?.res.write(event('s-6', changed));
    await expect.poll(() => heard).toEqual(['tools']);
  });

  test('§18.3 numbers that begin anew with each connection hide nothing', async () => {
    offerStreams();
    const heard = listen();
    await expect.poll(() => streams.length).toBe(1);
    streams[0]?.res.end(event('1', changed));
    await expect.poll(() => heard).toEqual(['tools']);
    await awaitStream(2, 1000);
    streams[1]?.res.write(event('1', changed));
    await expect.poll(() => heard).toEqual(['tools', 'tools']);
  });

  test.each([400, 404, 410])(
    '§18.3 an event that the server has forgotten (%i): it begins anew, in the same session, and what could have been missed is told',
    async (status) => {
      offerStreams();
      const heard = listen();
      await expect.poll(() => streams.length).toBe(1);
      server.answer('GET', (res, request) => {
        if (request.headers['last-event-id'] !== undefined) res.writeHead(status).end();
        else streams.push({ res: startEvents(res), request });
      });
      streams[0]?.res.end(event('s-1'));
      await expect
        .poll(() => {
          clock.advance(1000);
          return streams.length;
        })
        .toBe(2);
      expect(server.count('GET')).toBe(3);
      expect(server.count('initialize')).toBe(1);
      await expect.poll(() => heard).toEqual(['tools']);
    },
  );

  test('§18.3 of callers without a session: what they subscribed to is asked for once', async () => {
    offerStreams();
    opened.upstream.listen(
      statelessCaller(),
      { listChanged: () => {}, resourceUpdated: () => {} },
      ['a://1'],
    );
    await expect.poll(() => server.count('resources/subscribe')).toBe(1);
    streams[0]?.res.end(event('s-1'));
    await awaitStream(2, 1000);
    await settle();
    expect(server.count('resources/subscribe')).toBe(1);
  });
});
