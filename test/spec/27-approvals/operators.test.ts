// §27: operators decide, or guards in their place, and programs without a user.
import { expect, test, vi } from 'vitest';
import {
  ARGS,
  readApprovalLink,
  rulesThatAsk,
  startAskingGateway,
  WRITE,
} from '../../support/approvals/asking-gateway.ts';
import {
  createOperator,
  logInProgram,
  OPERATED,
  PROGRAMS,
} from '../../support/approvals/operators.ts';
import { type EventStream, openEvents } from '../../support/clients/event-stream.ts';
import { ASKABLE, statelessRequest } from '../../support/clients/stateless.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';
import { writeGuard } from '../../support/guards/module-guard.ts';

const start = (options: Parameters<typeof startAskingGateway>[1] = {}) =>
  startAskingGateway('operator', {
    ...options,
    env: { ...OPERATED, METRICS_ENABLED: 'true' },
    file: { clients: PROGRAMS, ...options?.file },
  });

test('§27.5 "ask": "operator": the call waits, an operator sees exactly what it would do, and it goes on', async () => {
  const { gateway, files } = await start();
  const operator = await createOperator(gateway);
  const user = await gateway.logIn('ada');
  const waiting = user.call(WRITE, ARGS);
  const call = await operator.find();
  expect(call).toMatchObject({
    user: 'ada',
    server: 'files',
    tool: 'write_file',
    name: WRITE,
    arguments: '{"content":"hello","path":"/tmp/a"}',
  });
  expect(files.done).toEqual([]);
  const scrape = async () => (await fetch(`${gateway.baseUrl}/metrics`)).text();
  expect(await scrape()).toContain('mcp_approvals_waiting 1');
  expect(await operator.decide(call.id, 'approve')).toEqual({
    status: 200,
    json: { decided: 'approved' },
  });
  expect(await waiting).toEqual({ isError: false, text: 'written' });
  expect(files.done).toEqual([JSON.stringify(ARGS)]);
  expect(await operator.list()).toEqual([]);
  // Decided once, by one.
  expect((await operator.decide(call.id, 'refuse')).status).toBe(404);
  const lines = gateway.auditLines().filter(({ event }) => event === 'approval');
  expect(lines.map(({ action, by, user: sub, tool }) => [action, by, sub, tool])).toEqual([
    ['asked', undefined, 'ada', WRITE],
    ['approved', 'operator client:ops', 'ada', WRITE],
    ['used', undefined, 'ada', WRITE],
  ]);
  expect(JSON.stringify(lines)).not.toContain('/tmp/a');
  const scraped = await scrape();
  expect(scraped).toContain('mcp_approvals_waiting 0');
  expect(scraped).toContain('mcp_approvals_total{ask="operator",outcome="used"} 1');
});

test('§27.5 an operator refuses: the call says so, and nothing runs', async () => {
  const { gateway, files } = await start();
  const operator = await createOperator(gateway);
  const user = await gateway.logIn('ada');
  const waiting = user.call(WRITE, ARGS);
  const { id } = await operator.find();
  await operator.decide(id, 'refuse');
  const { isError, text } = await waiting;
  expect([isError, text]).toEqual([true, expect.stringContaining('was not approved')]);
  expect(files.done).toEqual([]);
});

test('§27.5 nobody decides: after 40 seconds the call says so; calling again waits on, and runs once it is approved', async () => {
  const clock = manualClock(1_800_000_000_000);
  const { gateway, files } = await start({ clock });
  const operator = await createOperator(gateway);
  const user = await gateway.logIn('ada');
  const ended = vi.fn();
  const waiting = user.call(WRITE, ARGS).finally(ended);
  const { id } = await operator.find();
  clock.advance(39_000);
  expect(await operator.list()).toHaveLength(1);
  expect(ended).not.toHaveBeenCalled();
  clock.advance(1000);
  expect((await waiting).text).toContain('An operator was asked and has not decided yet');
  const again = user.call(WRITE, ARGS);
  // It waits on under the same id.
  expect((await operator.find()).id).toBe(id);
  await operator.decide(id, 'approve');
  expect(await again).toEqual({ isError: false, text: 'written' });
  expect(files.done).toHaveLength(1);
});

test.each(['session', 'stateless'] as const)(
  '§27.5 a client that wants progress (%s) is told at once that an operator was asked, and every ten seconds',
  async (era) => {
    const clock = manualClock(1_800_000_000_000);
    const { gateway } = await start({ clock, env: { ...OPERATED, APPROVAL_WAIT_SECONDS: '600' } });
    const operator = await createOperator(gateway);
    const { accessToken } = await gateway.logIn('ada');
    const port = Number(gateway.mcpUrl.port);
    const headers = {
      authorization: `Bearer ${accessToken}`,
      accept: 'application/json, text/event-stream',
    };
    const ask = (request: { message: object; headers?: object }) =>
      openEvents({ port, headers: { ...headers, ...request.headers }, body: request.message });
    const meta = { progressToken: 'p' };
    const params = { name: WRITE, arguments: ARGS };
    let stream: EventStream;
    if (era === 'stateless')
      stream = await ask(statelessRequest('tools/call', params, { meta: { ...ASKABLE, ...meta } }));
    else {
      const opened = await ask({ message: INITIALIZE_REQUEST });
      const session = { 'mcp-session-id': String(opened.headers['mcp-session-id']) };
      const message = {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { ...params, _meta: meta },
      };
      stream = await ask({ message, headers: session });
    }
    const said = { progressToken: 'p', message: expect.stringContaining('An operator was asked') };
    expect(await stream.next()).toMatchObject({ params: { ...said, progress: 0.001 } });
    clock.advance(10_000);
    expect(await stream.next()).toMatchObject({ params: { ...said, progress: 0.002 } });
    const { id } = await operator.find();
    await operator.decide(id, 'approve');
    const rest = await stream.rest();
    expect(rest.at(-1).result.content).toEqual([{ type: 'text', text: 'written' }]);
    // Nothing more is told about what was decided.
    expect(JSON.stringify(rest)).not.toContain('An operator was asked');
  },
);

test('§27.5 a request that nobody has decided for ten minutes is gone', async () => {
  const clock = manualClock(1_800_000_000_000);
  const { gateway } = await start({ clock });
  const operator = await createOperator(gateway);
  const user = await gateway.logIn('ada');
  void user.call(WRITE, ARGS).catch(() => {});
  const { id } = await operator.find();
  clock.advance(601_000);
  expect(await operator.list()).toEqual([]);
  expect((await operator.decide(id, 'approve')).status).toBe(404);
});

test('§27.5 what operators decide no user does, what users decide no operator does, and nobody else asks either', async () => {
  const { gateway, files } = await start({
    file: {
      clients: PROGRAMS,
      rules: [
        { who: 'everyone', may: ['files__write_file'], ask: 'operator' },
        { who: 'everyone', may: ['files__copy_file'], ask: 'page' },
      ],
    },
  });
  const operator = await createOperator(gateway);
  const user = await gateway.logIn('ada');
  void user.call(WRITE, ARGS).catch(() => {});
  const { id } = await operator.find();
  const browser = gateway.createBrowser({ person: 'ada' });
  const page = await browser.open(`${gateway.baseUrl}/approvals/${id}`);
  expect(page.text).toContain('Waiting for an operator');
  expect(page.html).not.toContain('<form');
  const ofPage = readApprovalLink((await user.call('files__copy_file', ARGS)).text);
  const own = await browser.open(ofPage);
  const forged = await browser.submitTo(`${gateway.baseUrl}/approvals`, own, {
    action: 'approve',
    request: id,
  });
  expect(forged.status).toBe(400);
  const pageId = ofPage.split('/').at(-1) ?? '';
  expect((await operator.decide(pageId, 'approve')).status).toBe(404);
  expect((await operator.list()).map((call) => call.id)).toEqual([id]);
  const headers = { authorization: `Bearer ${user.accessToken}` };
  expect((await fetch(`${gateway.baseUrl}/admin/api/approvals`, { headers })).status).toBe(403);
  expect(files.done).toEqual([]);
  await operator.decide(id, 'refuse');
});

test('§27.5 a body that is no decision is refused, and says what is one', async () => {
  const { gateway } = await start();
  const operator = await createOperator(gateway);
  for (const [id, decision] of [
    ['x', 'approve'],
    ['a'.repeat(43), 'yes'],
  ] as const) {
    const { status, json } = await operator.decide(id, decision);
    expect([status, JSON.stringify(json)]).toEqual([400, expect.stringContaining('decision')]);
  }
  expect((await operator.decide('a'.repeat(43), 'approve')).status).toBe(404);
});

test('§27.5 a program without a user: what asks a user is refused and says why; an operator can decide', async () => {
  for (const ask of ['user', 'page', 'operator'] as const) {
    const { gateway, files } = await start({
      file: { clients: PROGRAMS, rules: rulesThatAsk(ask) },
    });
    const token = await logInProgram(gateway, 'ci');
    const { message, headers } = statelessRequest('tools/call', { name: WRITE, arguments: ARGS });
    const waiting = fetch(gateway.mcpUrl, {
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
      },
      body: JSON.stringify(message),
    }).then((answer) => answer.text());
    if (ask === 'operator') {
      const operator = await createOperator(gateway);
      const { id, user } = await operator.find();
      expect(user).toBe('client:ci');
      await operator.decide(id, 'approve');
      expect(await waiting).toContain('written');
      expect(files.done).toHaveLength(1);
    } else {
      expect(await waiting).toContain('\\"ask\\": \\"operator\\"');
      expect(files.done).toEqual([]);
    }
  }
});

test('§27.5 a guard that wants the call to be another has approved none: operators decide', async () => {
  const use = await writeGuard(
    `return { decision: 'change', value: { ...message.value, arguments: { path: '/tmp/safe' } } };`,
  );
  const guards = [{ name: 'four-eyes', on: ['approval'], use }];
  const { gateway, files } = await start({ file: { clients: PROGRAMS, guards } });
  const operator = await createOperator(gateway);
  const user = await gateway.logIn('ada');
  const waiting = user.call(WRITE, ARGS);
  await operator.decide((await operator.find()).id, 'refuse');
  expect((await waiting).isError).toBe(true);
  expect(files.done).toEqual([]);
});

test('§27.5 a guard decides in place of operators; one that fails leaves it to them', async () => {
  const use = await writeGuard(`
    const { content } = message.value.arguments;
    if (content === 'fails') throw new Error('down');
    return content === 'bad' ? { decision: 'refuse', message: 'Not today.' } : { decision: 'pass' };
  `);
  const guards = [{ name: 'four-eyes', on: ['approval'], use }];
  const { gateway, files } = await start({ file: { clients: PROGRAMS, guards } });
  const operator = await createOperator(gateway);
  const user = await gateway.logIn('ada');
  expect(await user.call(WRITE, ARGS)).toEqual({ isError: false, text: 'written' });
  expect((await user.call(WRITE, { ...ARGS, content: 'bad' })).isError).toBe(true);
  expect(files.done).toHaveLength(1);
  const waiting = user.call(WRITE, { ...ARGS, content: 'fails' });
  await operator.decide((await operator.find()).id, 'approve');
  expect((await waiting).isError).toBe(false);
  const decided = gateway
    .auditLines()
    .filter(({ event, by }) => event === 'approval' && by !== undefined);
  expect(decided.map(({ by }) => by)).toEqual(['guard', 'guard four-eyes', 'operator client:ops']);
});
