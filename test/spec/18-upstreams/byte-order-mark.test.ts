// §18.4: servers that begin what they send with a byte order mark, as some runtimes do by themselves.
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import { openHttpUpstream } from '../../support/upstreams/http-upstream.ts';
import { callTool, sessionCaller, statelessCaller } from '../../support/upstreams/requests.ts';
import {
  startScriptedHttp,
  toError,
  toEvent,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const MARK = '\uFEFF';

/** So many of the first bytes come one by one. */
async function sendSlowly(res: ServerResponse, text: string, alone: number): Promise<void> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < alone; at += 1) {
    await new Promise((sent) => res.write(bytes.subarray(at, at + 1), sent));
    await new Promise(setImmediate);
  }
  res.end(bytes.subarray(alone));
}

const resultOf = (size: number) => ({ content: [{ type: 'text', text: 'x'.repeat(size) }] });

describe.each(['session', 'stateless'] as const)('a server of the %s era', (era) => {
  const server = useFresh(() => startScriptedHttp(era));
  const opened = useFresh(() => openHttpUpstream({ url: server.url }));
  const caller = era === 'session' ? sessionCaller() : statelessCaller();
  const call = () => callTool(opened.upstream, caller, 'any');
  const answer = (type: string, write: (id: unknown) => string, alone: number) =>
    server.answer('tools/call', (res, { message }) => {
      res.writeHead(200, { 'content-type': type });
      void sendSlowly(res, write(message.id), alone);
    });

  // Each size is parsed in a way of its own.
  const rows = [100, 1000, 5000, 50_000].flatMap((size) => [
    { size, alone: 0 },
    { size, alone: 1 },
    { size, alone: 4 },
  ]);

  test.each(rows)(
    '§18.4 one before JSON of $size characters is left out, $alone bytes one by one',
    async ({ alone, size }) => {
      const result = resultOf(size);
      answer(
        'application/json',
        (id) => MARK + JSON.stringify({ jsonrpc: '2.0', id, result }),
        alone,
      );
      expect(await call()).toEqual(result);
    },
  );

  test.each(rows)(
    '§18.4 one before events of $size characters is left out, $alone bytes one by one',
    async ({ alone, size }) => {
      const result = resultOf(size);
      answer('text/event-stream', (id) => MARK + toEvent({ jsonrpc: '2.0', id, result }), alone);
      expect(await call()).toEqual(result);
    },
  );

  test('§18.4 one before a refusal is left out', async () => {
    server.answer('tools/call', (res, request) => {
      res.writeHead(400).end(MARK + JSON.stringify(toError(request, -32602, 'wrong')));
    });
    await expect(call()).rejects.toMatchObject({ jsonRpcError: { message: 'wrong' } });
  });

  test.each([
    ['a second one', (text: string) => MARK + MARK + text],
    ['half of one', (text: string) => `\u00ef${text}`],
    ['one behind the value', (text: string) => text + MARK],
  ])('§18.4 %s is no JSON', async (_what, write) => {
    server.answer('tools/call', (res, request) => {
      res.writeHead(200, { 'content-type': 'application/json' });
      res.end(write(JSON.stringify(toResult(request, {}))));
    });
    await expect(call()).rejects.toMatchObject({ failure: 'invalid' });
  });

  test('WHATWG HTML §9.2: one in the middle of a stream belongs to the name of its line', async () => {
    server.answer('tools/call', (res, request) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      const events = [
        toEvent({ jsonrpc: '2.0', method: 'notifications/message', params: {} }),
        MARK + toEvent({ ...toResult(request, {}), id: 987_654 }),
        toEvent(toResult(request, resultOf(1))),
      ];
      const writeNext = () => {
        const next = events.shift();
        if (next === undefined) res.end();
        else res.write(next, () => setImmediate(writeNext));
      };
      writeNext();
    });
    expect(await call()).toEqual(resultOf(1));
  });
});
