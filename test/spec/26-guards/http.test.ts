// §26.2, §26.3: guards that are asked over HTTP, in the shapes of SEP-2624.
import { expect, test } from 'vitest';
import { callTool, sendToolCall } from '../../support/clients/stateless.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { startGuardServer } from '../../support/guards/guard-server.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { sendJson, startRawServer } from '../../support/upstreams/raw-server.ts';

const raw = useShared(() =>
  startRawServer((res, id, { params }) =>
    sendJson(res, {
      id,
      result: { content: [{ type: 'text', text: say(params.arguments) }] },
    }),
  ),
);

/** What it was called with, or as many letters as that asks for. */
const say = (args: unknown): string =>
  typeof args === 'object' && args !== null && 'times' in args
    ? 'x'.repeat(Number(args.times))
    : JSON.stringify(args);

const startGuard = async (judge?: (body: { payload: object }) => unknown) =>
  closeAfterTest(await startGuardServer(judge));

const start = (url: string, more: object = {}, options: object = {}, server: string = raw.url) =>
  startForTest({
    file: {
      mcpServers: { raw: server },
      guards: [
        {
          name: 'far',
          on: ['tools/call'],
          use: {
            http: { url, headers: { authorization: 'Bearer of-the-guard' }, timeout: 10_000 },
          },
          ...more,
        },
      ],
    },
    ...options,
  });

const textIn = ({ json }: { json: { result: { content: { text: string }[] } } }) =>
  json.result.content[0]?.text;

test('§26.2 it is sent what an interceptor is invoked with, with its own headers alone', async () => {
  const guard = await startGuard();
  const gateway = await start(guard.url);
  const token = await gateway.issuer.sign({ email: 'ada@example.com', groups: ['staff'] });
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  await callTool(gateway, 'raw__any', { a: 1 }, { token, meta: { traceparent } });
  const [asked] = guard.asked;
  expect(asked?.body).toMatchObject({
    version: 'sep-2624',
    name: 'far',
    event: 'tools/call',
    phase: 'request',
    payload: { name: 'raw__any', arguments: { a: 1 } },
    timeoutMs: 10_000,
    context: {
      principal: { type: 'user', claims: { email: 'ada@example.com', groups: ['staff'] } },
      traceId: '0af7651916cd43dd8448eb211c80319c',
      server: 'raw',
      item: 'raw__any',
    },
  });
  expect(asked?.headers).toMatchObject({ authorization: 'Bearer of-the-guard', traceparent });
  expect(JSON.stringify(asked)).not.toContain(token);
});

const CHANGED = { name: 'raw__any', arguments: { a: 2 } };

const ANSWERS = [
  { title: 'pass', answer: { decision: 'pass' }, said: '{"a":1}' },
  { title: 'change', answer: { decision: 'change', value: CHANGED }, said: '{"a":2}' },
  { title: 'refuse', answer: { decision: 'refuse', message: 'No.' }, said: 'No.' },
  { title: 'valid', answer: { type: 'validation', valid: true }, said: '{"a":1}' },
  {
    title: 'not valid',
    answer: { valid: false, severity: 'error', messages: [{ message: 'No.', severity: 'error' }] },
    said: 'No.',
  },
  { title: 'not valid, a warning', answer: { valid: false, severity: 'warn' }, said: '{"a":1}' },
  { title: 'modified', answer: { modified: true, payload: CHANGED }, said: '{"a":2}' },
  { title: 'not modified', answer: { modified: false, payload: CHANGED }, said: '{"a":1}' },
] as const;

test.each(ANSWERS)('§26.2 an answer may be: $title', async ({ answer, said }) => {
  const guard = await startGuard(() => answer);
  const gateway = await start(guard.url);
  expect(textIn(await callTool(gateway, 'raw__any', { a: 1 }))).toBe(said);
});

const FAILURES = [
  { title: 'answers no JSON', answer: 'pass', status: 200, reason: 'not JSON' },
  { title: 'answers 500', answer: { decision: 'pass' }, status: 500, reason: 'it answered 500' },
  { title: 'redirects', answer: { decision: 'pass' }, status: 302, reason: 'cannot be reached' },
  { title: 'answers neither', answer: { ok: true }, status: 200, reason: 'neither' },
  {
    title: 'answers too much',
    answer: `{"decision":"pass","more":"${'x'.repeat(9_000_000)}"}`,
    status: 200,
    reason: 'could not be read',
  },
] as const;

test.each(FAILURES)('§26.3 a guard that $title has failed', async ({ answer, status, reason }) => {
  const guard = await startGuard();
  guard.answer(() => answer, status);
  const refusing = await start(guard.url);
  expect(textIn(await callTool(refusing, 'raw__any', { a: 1 }))).toContain('could not check this');
  const [line] = refusing.log.filter(({ msg }) => msg.startsWith('The guard far failed'));
  expect(line?.msg).toContain(reason);
  const passing = await start(guard.url, { onError: 'pass' });
  expect(textIn(await callTool(passing, 'raw__any', { a: 1 }))).toBe('{"a":1}');
});

test('§26.3 one that is down has failed, and is asked again', async () => {
  const guard = await startGuardServer();
  await guard.close();
  const gateway = await start(guard.url);
  expect(textIn(await callTool(gateway, 'raw__any'))).toContain('could not check this');
});

test('§26.3 one that does not answer in time has failed', async () => {
  const guard = await startGuard(() => undefined);
  const clock = manualClock();
  const gateway = await start(guard.url, {}, { clock });
  const calling = callTool(gateway, 'raw__any');
  await expect.poll(() => guard.asked.length).toBe(1);
  clock.advance(10_001);
  expect(textIn(await calling)).toContain('could not check this');
  const [line] = gateway.log.filter(({ msg }) => msg.startsWith('The guard far failed'));
  expect(line?.msg).toContain('it did not answer within 10000 ms');
});

test('§26.3 a call that is given up gives up the question to the guard, and does not pass', async () => {
  const guard = await startGuard(() => undefined);
  const gateway = await start(guard.url, {
    onError: 'pass',
    use: { http: { url: guard.url, timeout: 60_000 } },
  });
  const sent = await sendToolCall(gateway, 'raw__any');
  sent.on('error', () => {});
  await expect.poll(() => guard.asked.length).toBe(1);
  sent.destroy();
  await expect.poll(() => guard.left.count).toBe(1);
  const readMetrics = async () => (await gateway.request({ path: '/metrics' })).text;
  const refused = 'guard_decisions_total{guard="far",on="tools/call",outcome="refused"} 1';
  await expect.poll(readMetrics).toContain(refused);
  expect(gateway.log.filter(({ msg }) => msg.startsWith('The guard far failed'))).toEqual([]);
});

test('§26.3 what is too large to be asked about is refused, whatever onError says', async () => {
  const guard = await startGuard();
  const gateway = await start(guard.url, { onError: 'pass', on: ['tools/result'] });
  const refused = await callTool(gateway, 'raw__any', { times: 5_000_000 });
  expect(textIn(refused)).toContain('The guard far cannot check this now');
  expect(guard.asked).toHaveLength(0);
  expect(textIn(await callTool(gateway, 'raw__any', { times: 5 }))).toContain('xxxxx');
});

/** JSON within so many arrays. */
const nest = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

test.each([
  ['nests deeper than its answer may', { _meta: { 'test/x': nest(195) } }],
  ['has more values than its answer may', { _meta: { 'test/x': Array(499_990).fill(1) } }],
  [
    'is larger than its answer may be, once it is escaped',
    { _meta: { 'test/x': 'é'.repeat(2e6) } },
  ],
])('§26.3 a result that %s gets around no guard that lets pass where it fails', async (_, more) => {
  const server = closeAfterTest(
    await startRawServer((res, id) =>
      sendJson(res, { id, result: { content: [{ type: 'text', text: 'a secret' }], ...more } }),
    ),
  );
  // As a guard of Python writes it: all but ASCII is escaped.
  const guard = await startGuard(({ payload }) => {
    const value = { ...payload, content: [{ type: 'text', text: 'redacted' }] };
    const answer = JSON.stringify({ decision: 'change', value, by: [[[[[[]]]]]] });
    return answer.replace(
      /[\u0080-\uffff]/g,
      (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
  });
  const gateway = await start(guard.url, { on: ['tools/result'], onError: 'pass' }, {}, server.url);
  const { json } = await callTool(gateway, 'raw__any', {});
  expect(JSON.stringify(json)).not.toContain('a secret');
  expect(JSON.stringify(json)).toContain('cannot check this');
});
