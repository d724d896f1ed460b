// §27.2: `_meta` of a call is a part of what somebody agrees to, as long as the same call may have it again.
import { expect, test } from 'vitest';
import {
  APPROVE,
  ARGS,
  type Ask,
  readApprovalLink,
  rulesThatAsk,
  startAskingGateway,
  WRITE,
} from '../../support/approvals/asking-gateway.ts';
import { startFilesServer } from '../../support/approvals/files-server.ts';
import { createOperator, OPERATED, PROGRAMS } from '../../support/approvals/operators.ts';
import { lastOf, openClient } from '../../support/clients/session-client.ts';
import { CLIENT_CAPABILITIES, statelessRequest } from '../../support/clients/stateless.ts';
import type { GatewayUser, RpcAnswer } from '../../support/connections/gateway-user.ts';
import { writeGuard } from '../../support/guards/module-guard.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';

const ASKABLE = { [CLIENT_CAPABILITIES]: { elicitation: {} } };
const MINE = { 'com.example/to': 'the archive', 'com.example/ids': [1, 2] };
const OTHERS = [
  { ...MINE, 'com.example/to': 'everybody' },
  { ...MINE, 'com.example/more': true },
  { 'com.example/to': 'the archive' },
  {},
];
/** What clients write anew for each call. */
const anew = (id: string) => ({
  progressToken: id,
  traceparent: `00-${id.repeat(32)}-${id.repeat(16)}-01`,
  'io.modelcontextprotocol/related-task': { taskId: id },
  'claudecode/toolUseId': id,
  'vscode.requestId': id,
});

const call = (user: GatewayUser, meta: object, more: object = {}) =>
  user.ask('tools/call', { name: WRITE, arguments: ARGS, ...more }, { ...ASKABLE, ...meta });

const agree = ({ json }: RpcAnswer) => ({
  requestState: json.result.requestState,
  inputResponses: { approval: { action: 'accept', content: { decision: 'once' } } },
});

test('§27.2 a form shows `_meta`, and what was agreed to for one is nothing for another', async () => {
  const { gateway, files } = await startAskingGateway('user');
  const user = await gateway.logIn('ada');
  const other = await gateway.logIn('grace');
  for (const changed of OTHERS) {
    const asked = await call(user, MINE);
    const { message } = asked.json.result.inputRequests.approval.params;
    expect(message).toContain('"com.example/to":"the archive"');
    for (const [sender, meta] of [
      [user, changed],
      [other, MINE],
    ] as const) {
      const { json } = await call(sender, meta, agree(asked));
      expect(json.error !== undefined || json.result.isError === true).toBe(true);
    }
  }
  expect(files.done).toEqual([]);
  const asked = await call(user, MINE);
  expect((await call(user, MINE, agree(asked))).json.result.content[0].text).toBe('written');
  expect(files.metas).toEqual([MINE]);
});

test('§27.2 `_meta` that is made anew for each call is neither shown nor bound, and no server gets what was not shown', async () => {
  const { gateway, files } = await startAskingGateway('user');
  const user = await gateway.logIn('ada');
  const asked = await call(user, { ...MINE, ...anew('a') });
  const { message } = asked.json.result.inputRequests.approval.params;
  for (const key of Object.keys(anew('a'))) expect(message).not.toContain(key);
  await call(user, { ...MINE, ...anew('b') }, agree(asked));
  const [{ traceparent, progressToken: _, ...meta } = {}] = files.metas.map((one) => ({
    traceparent: undefined,
    progressToken: undefined,
    ...one,
  }));
  expect(meta).toEqual(MINE);
  expect(traceparent).toMatch(/^00-b{32}-/);
  // Alone, it is no `_meta`.
  const bare = await call(user, anew('c'));
  expect(bare.json.result.inputRequests.approval.params.message).not.toContain('_meta');
});

test('§27.2 numbers of `_meta` count as they are spelled, and a half of a character in it cannot be asked about', async () => {
  const { gateway, files } = await startAskingGateway('user');
  const user = await gateway.logIn('ada');
  async function send(id: string, more: object = {}) {
    const params = { name: WRITE, arguments: ARGS, ...more };
    const { message, headers } = statelessRequest('tools/call', params, {
      meta: { ...ASKABLE, 'com.example/id': 'THE ID' },
    });
    const answer = await fetch(gateway.mcpUrl, {
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${user.accessToken}`,
      },
      body: JSON.stringify(message).replace('"THE ID"', id),
    });
    const { result } = JSON.parse(await answer.text());
    return result;
  }
  const asked = await send('7205759403792793601');
  expect(asked.inputRequests.approval.params.message).toContain('7205759403792793601');
  const answer = { action: 'accept', content: { decision: 'once' } };
  const agreed = { requestState: asked.requestState, inputResponses: { approval: answer } };
  expect((await send('7205759403792793600', agreed)).isError).toBe(true);
  const half = await send('"\\ud800"');
  expect(half.content[0].text).toContain('_meta has a half of a character');
  expect(files.done).toEqual([]);
});

test('§27.2 "for this session" is for the same `_meta` alone', async () => {
  const files = closeAfterTest(await startFilesServer());
  const mcpServers = { files: files.url };
  const gateway = await startForTest({
    file: { builtIn: false, mcpServers, rules: rulesThatAsk('user') },
  });
  const client = await openClient(gateway, { capabilities: { elicitation: {} } });
  const send = (meta: object) => {
    const params = { name: WRITE, arguments: ARGS, _meta: meta };
    return client.send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  };
  const stream = await send({ ...MINE, ...anew('a') });
  const { id } = await stream.next();
  await client.answer(id, { action: 'accept', content: { decision: 'session' } });
  expect((await lastOf(stream)).result.content[0].text).toBe('written');
  const again = await lastOf(await send({ ...MINE, ...anew('b') }));
  expect(again.result.content[0].text).toBe('written');
  const asked = await send(OTHERS[0] ?? {});
  expect((await asked.next()).method).toBe('elicitation/create');
  asked.hangUp();
  expect(files.done).toHaveLength(2);
});

test.for(['page', 'operator'] as const)(
  '§27.4 "ask": "%s" shows `_meta`, and another one is another call',
  async (ask: Ask) => {
    const { gateway, files } = await startAskingGateway(ask, {
      env: OPERATED,
      file: { clients: PROGRAMS },
    });
    const user = await gateway.logIn('ada');
    if (ask === 'page') {
      const { json } = await call(user, { ...MINE, 'claudecode/toolUseId': '1' });
      const browser = gateway.createBrowser({ person: 'ada' });
      const page = await browser.open(readApprovalLink(json.result.content[0].text));
      expect(page.text).toContain('the archive');
      await browser.press(page, APPROVE);
      for (const changed of OTHERS)
        expect((await call(user, changed)).json.result.isError).toBe(true);
      await call(user, { ...MINE, 'claudecode/toolUseId': '2' });
    } else {
      const operator = await createOperator(gateway);
      const waiting = call(user, MINE);
      const { id, meta } = await operator.find();
      expect(meta).toBe('{"com.example/ids":[1,2],"com.example/to":"the archive"}');
      await operator.decide(id, 'approve');
      await waiting;
    }
    expect(files.metas).toEqual([MINE]);
  },
);

test('§27.5 a guard in place of operators sees `_meta`, and a guard on the call has changed it before', async () => {
  const change = `if (message.on === 'tools/call') return { decision: 'change', value: { ...message.value, _meta: { added: 7 } } };`;
  const refuse = `return message.value._meta?.added === 7 ? { decision: 'pass' } : { decision: 'refuse', message: 'no' };`;
  const guard = await writeGuard(`${change}\n${refuse}`);
  const { gateway, files } = await startAskingGateway('operator', {
    env: OPERATED,
    file: { guards: [{ name: 'g', on: ['tools/call', 'approval'], use: guard }] },
  });
  const user = await gateway.logIn('ada');
  const { json } = await call(user, MINE);
  expect(json.result.content[0].text).toBe('written');
  expect(files.metas).toEqual([{ added: 7 }]);
});
