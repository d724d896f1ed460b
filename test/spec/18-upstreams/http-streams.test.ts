import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { GATEWAY_CALLER } from '../../../src/mcp/upstream/upstream.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { useFresh } from '../../support/lifetimes.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import {
  callTool,
  sessionCaller,
  statelessCaller,
  toRequest,
} from '../../support/upstreams/requests.ts';
import {
  type ScriptedHttp,
  sendJson,
  startEvents,
  startScriptedHttp,
  toError,
  toEvent,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const CAPABILITIES = {
  tools: { listChanged: true },
  prompts: {},
  resources: { listChanged: true, subscribe: true },
};

function listen() {
  const heard: string[] = [];
  return {
    heard,
    listener: {
      listChanged: (list: string) => void heard.push(list),
      resourceUpdated: (uri: string) => void heard.push(uri),
    },
  };
}

const changed = (what: string) => ({
  jsonrpc: '2.0',
  method: `notifications/${what}/list_changed`,
});
const updated = (uri: string) => ({
  jsonrpc: '2.0',
  method: 'notifications/resources/updated',
  params: { uri },
});

/** Lets what is on its way over loopback arrive. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
}

describe('the GET stream of a session', () => {
  const clock = manualClock();
  const server = useFresh(() => startScriptedHttp('session'));
  const opened = useFresh(() => openHttpUpstream({ url: server.url }, { clock }));
  let streams: ServerResponse[] = [];

  function offerStreams(to: ScriptedHttp): void {
    streams = [];
    to.answer('initialize', (res, request) => {
      res.setHeader('mcp-session-id', 'the-session');
      const result = { protocolVersion: '2025-11-25', capabilities: CAPABILITIES };
      sendJson(res, toResult(request, result));
    });
    to.answer('GET', (res) => void streams.push(startEvents(res)));
  }

  test('§18.3 is opened while somebody listens, with the id of the session', async () => {
    offerStreams(server);
    const caller = sessionCaller();
    const { heard, listener } = listen();
    await callTool(opened.upstream, caller, 'any');
    expect(server.count('GET')).toBe(0);
    const stop = opened.upstream.listen(caller, listener);
    await expect.poll(() => streams.length).toBe(1);
    expect(server.received.at(-1)?.headers).toMatchObject({
      'mcp-session-id': 'the-session',
      accept: 'text/event-stream',
    });
    streams[0]?.write(toEvent(changed('tools')) + toEvent(updated('a://b')));
    await expect.poll(() => heard).toEqual(['tools', 'a://b']);
    const isClosed = new Promise((resolve) => streams[0]?.once('close', resolve));
    stop();
    await isClosed;
  });

  test('§18.3 is one for all who share a session', async () => {
    offerStreams(server);
    const [one, other] = [listen(), listen()];
    opened.upstream.listen(GATEWAY_CALLER, one.listener);
    opened.upstream.listen(GATEWAY_CALLER, other.listener);
    await expect.poll(() => streams.length).toBe(1);
    await settle();
    streams[0]?.write(toEvent(changed('resources')));
    await expect.poll(() => other.heard).toEqual(['resources']);
    expect(one.heard).toEqual(['resources']);
    expect(server.count('GET')).toBe(1);
  });

  test('§18.3 is opened again after a pause, and what could have been missed is told', async () => {
    offerStreams(server);
    const { heard, listener } = listen();
    opened.upstream.listen(sessionCaller(), listener);
    await expect.poll(() => streams.length).toBe(1);
    streams[0]?.end();
    await settle();
    expect(heard).toEqual([]);
    await expect
      .poll(() => {
        clock.advance(1000);
        return streams.length;
      })
      .toBe(2);
    await expect.poll(() => heard).toEqual(['tools', 'resources']);
  });

  test.each([404, 400])(
    '§18.3 of a session that the server lost (%i): another is opened, with the same subscriptions',
    async (status) => {
      let sessions = 0;
      const subscribed: string[] = [];
      const standing: ServerResponse[] = [];
      server.answer('initialize', (res, request) => {
        sessions += 1;
        res.setHeader('mcp-session-id', `session-${sessions}`);
        const result = { protocolVersion: '2025-11-25', capabilities: CAPABILITIES };
        sendJson(res, toResult(request, result));
      });
      let lost = '';
      server.answer('GET', (res, { headers }) => {
        if (headers['mcp-session-id'] === lost) res.writeHead(status).end();
        else standing.push(startEvents(res));
      });
      server.answer('ping', (res, request) => {
        if (request.headers['mcp-session-id'] === lost) res.writeHead(status).end();
        else sendJson(res, toResult(request, {}));
      });
      server.answer('resources/subscribe', (res, request) => {
        const { uri } = request.message.params as { uri: string };
        subscribed.push(`${request.headers['mcp-session-id']} ${uri}`);
        const isThere = uri !== 'none://';
        sendJson(res, isThere ? toResult(request, {}) : toError(request, -32002, 'no'));
      });
      server.answer('resources/unsubscribe', (res, request) =>
        sendJson(res, toResult(request, {})),
      );
      const caller = sessionCaller();
      const ask = (method: string, uri: string) =>
        opened.upstream.request(caller, toRequest(method, { uri }));
      opened.upstream.listen(caller, listen().listener);
      await expect.poll(() => standing.length).toBe(1);
      await ask('resources/subscribe', 'a://1');
      await ask('resources/subscribe', 'a://2');
      await ask('resources/unsubscribe', 'a://2');
      await expect(ask('resources/subscribe', 'none://')).rejects.toMatchObject({
        failure: 'error',
      });
      lost = String(server.received.at(-1)?.headers['mcp-session-id']);
      subscribed.length = 0;
      const before = sessions;
      standing[0]?.end();
      await expect
        .poll(() => {
          clock.advance(1000);
          return standing.length;
        })
        .toBe(2);
      await expect.poll(() => subscribed).toEqual([`session-${before + 1} a://1`]);
    },
  );

  test('§18.3 tells of an elicitation by URL that is completed', async () => {
    offerStreams(server);
    const completed: string[] = [];
    opened.upstream.listen(sessionCaller(), {
      ...listen().listener,
      elicitationCompleted: (id) => void completed.push(id),
    });
    await expect.poll(() => streams.length).toBe(1);
    const complete = (params: object) =>
      toEvent({ jsonrpc: '2.0', method: 'notifications/elicitation/complete', params });
    streams[0]?.write(complete({ elicitationId: 7 }) + complete({ elicitationId: 'e-1' }));
    await expect.poll(() => completed).toEqual(['e-1']);
  });

  test('§18.3 is left alone where the server has none (405)', async () => {
    const { listener } = listen();
    opened.upstream.listen(sessionCaller(), listener);
    await expect.poll(() => server.count('GET')).toBe(1);
    await settle();
    clock.advance(600_000);
    await settle();
    expect(server.count('GET')).toBe(1);
  });

  test('§18.3 carries what servers say there about the only call under way', async () => {
    offerStreams(server);
    const caller = sessionCaller();
    opened.upstream.listen(caller, listen().listener);
    await expect.poll(() => streams.length).toBe(1);
    let finish = () => {};
    server.answer('tools/call', (res, request) => {
      finish = () => {
        finish = () => {};
        sendJson(res, toResult(request, { content: [] }));
      };
      const ask = {
        jsonrpc: '2.0',
        id: 'q',
        method: 'elicitation/create',
        params: { message: '?' },
      };
      streams[0]?.write(toEvent(ask));
    });
    server.answer('response', (res) => {
      res.writeHead(202).end();
      finish();
    });
    const onRequest = async () => ({ action: 'decline' });
    await callTool(opened.upstream, caller, 'any', {}, { onRequest });
    expect(server.received.findLast(({ message }) => message.id === 'q')?.message).toEqual({
      jsonrpc: '2.0',
      id: 'q',
      result: { action: 'decline' },
    });
    // Nobody can be asked now.
    streams[0]?.write(toEvent({ jsonrpc: '2.0', id: 'r', method: 'roots/list' }));
    await expect
      .poll(() => server.received.findLast(({ message }) => message.id === 'r')?.message)
      .toMatchObject({ error: { code: -32601 } });
  });

  test('§18.3 of callers without a session: the resources are subscribed to', async () => {
    offerStreams(server);
    opened.upstream.listen(statelessCaller(), listen().listener, ['a://1']);
    await expect.poll(() => streams.length).toBe(1);
    opened.upstream.listen(statelessCaller(), listen().listener, ['a://2']);
    const subscribed = () =>
      new Set(
        server.received
          .filter(({ message }) => message.method === 'resources/subscribe')
          .map(({ message }) => Object(message.params).uri),
      );
    await expect.poll(subscribed).toEqual(new Set(['a://1', 'a://2']));
  });
});

describe('subscriptions/listen at a stateless server', () => {
  const server = useFresh(() => startScriptedHttp('stateless'));
  const opened = useFresh(() => openHttpUpstream({ url: server.url }));
  const streams: { res: ServerResponse; filter: unknown }[] = [];

  function offerSubscriptions(capabilities: object): void {
    streams.length = 0;
    server.answer('server/discover', (res, request) =>
      sendJson(res, toResult(request, { supportedVersions: ['2026-07-28'], capabilities })),
    );
    server.answer('subscriptions/listen', (res, { message }) => {
      const filter = Object(message.params).notifications;
      const acknowledged = {
        jsonrpc: '2.0',
        method: 'notifications/subscriptions/acknowledged',
        params: { notifications: filter },
      };
      streams.push({ res: startEvents(res, acknowledged), filter });
    });
  }

  const lists = { toolsListChanged: true, resourcesListChanged: true };
  const isOpen = ({ res }: { readonly res: ServerResponse }) => !res.destroyed;

  test('§18.3 asks for what the server can tell', async () => {
    offerSubscriptions(CAPABILITIES);
    const { heard, listener } = listen();
    opened.upstream.listen(statelessCaller(), listener, ['a://1']);
    await expect.poll(() => streams.length).toBe(1);
    expect(streams[0]?.filter).toEqual({ ...lists, resourceSubscriptions: ['a://1'] });
    streams[0]?.res.write(toEvent(updated('a://1')) + toEvent(updated('a://2')));
    streams[0]?.res.write(toEvent(changed('prompts')));
    await expect.poll(() => heard).toEqual(['a://1', 'prompts']);
  });

  test('§18.3 is not sent to a server that tells nothing', async () => {
    offerSubscriptions({ tools: {} });
    opened.upstream.listen(statelessCaller(), listen().listener, ['a://1']);
    await expect.poll(() => server.count('server/discover')).toBe(1);
    await settle();
    expect(server.count('subscriptions/listen')).toBe(0);
  });

  test('§18.3 knows the resources of the session of a client, whichever replica was told', async () => {
    offerSubscriptions(CAPABILITIES);
    const caller = sessionCaller();
    const { heard, listener } = listen();
    const subscribe = (uri: string, method = 'resources/subscribe', upstream = opened.upstream) =>
      upstream.request(caller, toRequest(method, { uri }));
    expect(await subscribe('a://1')).toEqual({});
    opened.upstream.listen(caller, listener);
    await expect.poll(() => streams.length).toBe(1);
    expect(streams[0]?.filter).toEqual({ ...lists, resourceSubscriptions: ['a://1'] });

    await subscribe('a://2', 'resources/subscribe', opened.openReplica());
    await expect
      .poll(() => streams.filter(isOpen).map(({ filter }) => filter))
      .toEqual([{ ...lists, resourceSubscriptions: ['a://1', 'a://2'] }]);
    await subscribe('a://1', 'resources/unsubscribe');
    await expect
      .poll(() => streams.filter(isOpen).map(({ filter }) => filter))
      .toEqual([{ ...lists, resourceSubscriptions: ['a://2'] }]);
    // The streams followed one another without a gap: nothing was missed.
    expect(heard).toEqual([]);
    expect(server.count('resources/subscribe')).toBe(0);
  });

  test('§18.3 a session can subscribe to 200 resources at most', async () => {
    offerSubscriptions(CAPABILITIES);
    const caller = sessionCaller();
    const subscribe = (at: number) =>
      opened.upstream.request(caller, toRequest('resources/subscribe', { uri: `a://${at}` }));
    await Promise.all(Array.from({ length: 200 }, (_, at) => subscribe(at)));
    await expect(subscribe(200)).rejects.toMatchObject({
      failure: 'error',
      jsonRpcError: { code: -32602 },
    });
  });
});
