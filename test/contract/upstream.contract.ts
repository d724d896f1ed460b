// What every transport to a server behind the gateway must do, in both eras. The server has the tools of
// test/support/upstreams/sdk-1-tools.ts, or sdk-2-tools.ts.
import { describe, expect, test } from 'vitest';
import type { Era } from '../../src/mcp/protocol/revisions.ts';
import type { Upstream, UpstreamQuestion } from '../../src/mcp/upstream/upstream.ts';
import type { JsonObject } from '../../src/platform/json.ts';
import { useShared } from '../support/lifetimes.ts';
import {
  callTool,
  sessionCaller,
  statelessCaller,
  toRequest,
} from '../support/upstreams/requests.ts';

export interface UpstreamHarness {
  readonly upstream: Upstream;
  close(): Promise<void>;
}

export interface UpstreamTraits {
  readonly era: Era;
  /** Whether the server's requests reach `onRequest`: not where nobody knows whose call they belong to. */
  readonly canAsk: boolean;
}

const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

/**
 * `open` starts a server, and an upstream to it whose calls end after `timeoutMs`. One serves the whole contract, in its
 * order: the first test finds it unused, and the last one closes it.
 */
export function describeUpstream(
  name: string,
  { era, canAsk }: UpstreamTraits,
  open: (timeoutMs: number) => Promise<UpstreamHarness>,
): void {
  describe(`an upstream over ${name}`, () => {
    const harness = useShared(() => open(30_000));
    const caller = sessionCaller();
    const said = (text: string) => expect.objectContaining({ content: [{ type: 'text', text }] });
    const readWaits = async (): Promise<JsonObject> => {
      const { content } = await callTool(harness.upstream, caller, 'waits');
      return JSON.parse(Object(Object(content)[0]).text);
    };

    test('§18.3 describe says what the server says of itself, and that it is up', async () => {
      expect(harness.upstream.isUp).toBeUndefined();
      const description = await harness.upstream.describe(caller);
      expect(description).toMatchObject({
        era,
        protocolVersion: era === 'session' ? '2025-11-25' : '2026-07-28',
        serverInfo: { name: era === 'session' ? 'contract-1' : 'contract-2' },
        instructions: 'Call echo.',
      });
      expect(description.capabilities).toHaveProperty('tools');
      expect(harness.upstream.isUp).toBe(true);
    });

    test('§18.3 a request has the result of the server, whole', async () => {
      const result = await callTool(harness.upstream, caller, 'echo', { text: 'hällo ☃' });
      expect(result).toEqual(said('hällo ☃'));
    });

    test('§18.3 requests at the same time each get their own answer', async () => {
      const texts = Array.from({ length: 50 }, (_, at) => `text ${at}`);
      const results = await Promise.all(
        texts.map((text) => callTool(harness.upstream, caller, 'echo', { text })),
      );
      expect(results).toEqual(texts.map(said));
    });

    test('§18.3 an error of the server is told with its code and message', async () => {
      const failure = harness.upstream.request(caller, toRequest('no/such/method', {}));
      await expect(failure).rejects.toMatchObject({
        failure: 'error',
        jsonRpcError: { code: -32601 },
      });
    });

    test('§18.3 progress is asked for only where somebody wants it, and told in order', async () => {
      const heard: unknown[] = [];
      const onProgress = ({ progress }: JsonObject) => void heard.push(progress);
      expect(await callTool(harness.upstream, caller, 'progress')).toEqual(said('without'));
      expect(await callTool(harness.upstream, caller, 'progress', {}, { onProgress })).toEqual(
        said('done'),
      );
      expect(heard).toEqual([1, 2, 3]);
    });

    test('§18.3 log messages reach the request that they belong to', async () => {
      const heard: unknown[] = [];
      const result = await callTool(
        harness.upstream,
        caller,
        'log',
        {},
        {
          logLevel: 'debug',
          onLog: ({ data }) => void heard.push(data),
        },
      );
      expect(result).toEqual(said('done'));
      if (canAsk) expect(heard).toEqual(['logged']);
    });

    test('§18.3 an aborted request ends at once, and the server is told; one aborted before it began is never sent', async () => {
      const never = callTool(harness.upstream, caller, 'wait', {}, { signal: AbortSignal.abort() });
      await expect(never).rejects.toMatchObject({ failure: 'aborted' });
      expect(await readWaits()).toEqual({ started: 0, cancelled: 0 });
      const stop = new AbortController();
      const call = callTool(harness.upstream, caller, 'wait', {}, { signal: stop.signal });
      const ended = expect(call).rejects.toMatchObject({ failure: 'aborted' });
      await expect.poll(readWaits).toMatchObject({ started: 1 });
      stop.abort();
      await ended;
      await expect.poll(readWaits).toEqual({ started: 1, cancelled: 1 });
    });

    test('§18.3 unknown members and trace context are no hindrance', async () => {
      const params = { name: 'echo', arguments: { text: 'traced' }, _meta: { 'a.b/c': { d: 1 } } };
      const trace = { traceparent: TRACEPARENT };
      const request = toRequest('tools/call', params, { trace });
      expect(await harness.upstream.request(caller, request)).toEqual(said('traced'));
    });

    if (era === 'session' && canAsk) {
      test('§18.3 a question of the server is answered by the request that it belongs to', async () => {
        const asked: UpstreamQuestion[] = [];
        const result = await callTool(
          harness.upstream,
          caller,
          'ask',
          {},
          {
            async onRequest(question) {
              asked.push(question);
              return { action: 'accept', content: { colour: 'red' } };
            },
          },
        );
        expect(result).toEqual(said('{"action":"accept","content":{"colour":"red"}}'));
        expect(asked).toMatchObject([
          { method: 'elicitation/create', params: { message: 'Which colour?' } },
        ]);
      });
    }

    if (era === 'session') {
      test('§18.3 a question that nobody can answer gets an error, and the call goes on', async () => {
        const result = await callTool(harness.upstream, caller, 'ask');
        expect(result).toMatchObject({ isError: true });
      });
    }

    if (era === 'stateless') {
      test('§18.3 a question in a result is passed on, and its answer with the next request', async () => {
        const result = await callTool(harness.upstream, caller, 'ask');
        expect(result).toMatchObject({
          resultType: 'input_required',
          inputRequests: { colour: { method: 'elicitation/create' } },
        });
        const answered = await harness.upstream.request(
          caller,
          toRequest('tools/call', {
            name: 'ask',
            arguments: {},
            inputResponses: { colour: { action: 'decline' } },
            ...('requestState' in result && { requestState: result.requestState }),
          }),
        );
        expect(answered).toEqual(said('{"action":"decline"}'));
      });
    }

    test('§18.3 who listens hears that lists and subscribed resources have changed', async () => {
      const heard: string[] = [];
      const stop = harness.upstream.listen(caller, {
        listChanged: (list) => void heard.push(list),
        resourceUpdated: (uri) => void heard.push(uri),
      });
      const params = { uri: 'test://changing' };
      await harness.upstream.request(caller, toRequest('resources/subscribe', params));
      const change = async () => {
        await callTool(harness.upstream, caller, 'change');
        return new Set(heard);
      };
      await expect.poll(change).toEqual(new Set(['tools', 'test://changing']));
      stop();
    });

    test('§18.3 a subscription without a session hears of its own resources alone', async () => {
      const heard: string[] = [];
      const others: string[] = [];
      const stateless = statelessCaller();
      const listen = (to: string[], uri: string) =>
        harness.upstream.listen(
          stateless,
          { listChanged: () => {}, resourceUpdated: (changed) => void to.push(changed) },
          [uri],
        );
      const stop = listen(others, 'test://other');
      const stopOther = listen(heard, 'test://changing');
      const change = async () => {
        await callTool(harness.upstream, stateless, 'change');
        return heard.length > 0;
      };
      await expect.poll(change).toBe(true);
      expect(others).toEqual([]);
      stop();
      stopOther();
    });

    test('§18.3 after close nothing is taken', async () => {
      await harness.upstream.close(0);
      const call = callTool(harness.upstream, caller, 'echo', { text: 'late' });
      await expect(call).rejects.toMatchObject({ failure: 'unavailable' });
    });
  });

  test(`§18.4 ${name}: a call without progress ends after its time-out, and the server is told`, async () => {
    const harness = await open(1000);
    try {
      const caller = sessionCaller();
      await harness.upstream.describe(caller);
      const call = callTool(harness.upstream, caller, 'wait');
      await expect(call).rejects.toMatchObject({ failure: 'timeout' });
      const count = async () => callTool(harness.upstream, caller, 'waits');
      await expect
        .poll(count)
        .toMatchObject({ content: [{ text: '{"started":1,"cancelled":1}' }] });
    } finally {
      await harness.close();
    }
  });
}
