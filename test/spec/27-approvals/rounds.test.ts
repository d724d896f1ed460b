// §27, MCP 2026-07-28: what a client brings back is sealed, of one call, and runs it once; further questions of the server do not
// ask about it again.
import { expect, test } from 'vitest';
import { ARGS, startAskingGateway, WRITE } from '../../support/approvals/asking-gateway.ts';
import { CLIENT_CAPABILITIES } from '../../support/clients/stateless.ts';
import type { GatewayUser, RpcAnswer } from '../../support/connections/gateway-user.ts';
import { manualClock } from '../../support/gateway/clock.ts';

const COPY = 'files__copy_file';
const ASKABLE = { [CLIENT_CAPABILITIES]: { elicitation: {} } };
const ONCE = { action: 'accept', content: { decision: 'once' } };

const call = (user: GatewayUser, name: string, args: object, more: object = {}) =>
  user.ask('tools/call', { name, arguments: args, ...more }, ASKABLE);

const bring = ({ json }: RpcAnswer, answer: unknown) => ({
  requestState: json.result.requestState,
  inputResponses: Object.fromEntries(
    Object.keys(json.result.inputRequests).map((key) => [key, answer]),
  ),
});

const textOf = ({ json }: RpcAnswer): string => json.result.content[0].text;

test('§27.2 an approval survives the questions of the server, is asked for once, and no state that is sent again runs anything', async () => {
  const { gateway, files } = await startAskingGateway('user');
  const user = await gateway.logIn('ada');
  const first = await call(user, COPY, ARGS);
  expect(first.json.result.inputRequests.approval.params.message).toContain('copy_file of files');
  const agreed = bring(first, ONCE);
  const second = await call(user, COPY, ARGS, agreed);
  // The server's own question, which is called the same.
  expect(second.json.result.inputRequests.approval.params.message).toContain('Where to?');
  const answered = bring(second, { action: 'accept', content: { name: 'b' } });
  expect(textOf(await call(user, COPY, ARGS, answered))).toBe('copied');
  expect(files.done).toHaveLength(1);
  expect(files.done[0]).toContain('"name":"b"');
  // Not what the user answered to the gateway.
  expect(files.done[0]).not.toContain('decision');
  for (const again of [agreed, answered]) {
    const replayed = await call(user, COPY, ARGS, again);
    expect(replayed.json.result.isError).toBe(true);
    expect(textOf(replayed)).toContain('has been used');
  }
  expect(files.done).toHaveLength(1);
});

test('§27.3 the answer "session", which this era does not offer, runs nothing', async () => {
  const { gateway, files } = await startAskingGateway('user');
  const user = await gateway.logIn('ada');
  const unoffered = { action: 'accept', content: { decision: 'session' } };
  const agreed = bring(await call(user, WRITE, ARGS), unoffered);
  expect(textOf(await call(user, WRITE, ARGS, agreed))).toContain('It was not decided');
  expect(files.done).toEqual([]);
});

test('§27.2 of many that send the same approval at once, one runs', async () => {
  const { gateway, files } = await startAskingGateway('user');
  const user = await gateway.logIn('ada');
  const agreed = bring(await call(user, WRITE, ARGS), ONCE);
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => call(user, WRITE, ARGS, agreed)),
  );
  expect(answers.filter(({ json }) => json.result.isError !== true)).toHaveLength(1);
  expect(files.done).toHaveLength(1);
});

test('§27.2 a state of another call, another user, another client, or none, and one that is made up, do nothing', async () => {
  const { gateway, files } = await startAskingGateway('user');
  const user = await gateway.logIn('ada');
  const agreed = bring(await call(user, WRITE, ARGS), ONCE);
  const others = [await gateway.logIn('grace'), await gateway.logIn('ada')];
  for (const other of others) {
    const { json } = await call(other, WRITE, ARGS, agreed);
    expect(json.error !== undefined || json.result.isError === true).toBe(true);
  }
  const elsewhere = await call(user, WRITE, { ...ARGS, content: 'other' }, agreed);
  expect(elsewhere.json.error.code).toBe(-32602);
  const madeUp = await call(user, WRITE, ARGS, { ...agreed, requestState: 'made-up' });
  expect(madeUp.json.error.code).toBe(-32602);
  const { inputResponses } = agreed;
  // Answers that nobody asked for are none: the user is asked.
  const unasked = await call(user, WRITE, ARGS, { inputResponses });
  expect(unasked.json.result.resultType).toBe('input_required');
  expect(files.done).toEqual([]);
});

test('§27.2 a state without the answer, and one that is answered too late, do nothing and say so', async () => {
  const clock = manualClock(1_800_000_000_000);
  const { gateway, files } = await startAskingGateway('user', { clock });
  const user = await gateway.logIn('ada');
  const { requestState } = bring(await call(user, WRITE, ARGS), ONCE);
  const silent = await call(user, WRITE, ARGS, { requestState, inputResponses: {} });
  expect(textOf(silent)).toContain('It was not decided');
  const late = bring(await call(user, WRITE, ARGS), ONCE);
  clock.advance(601_000);
  const answer = await call(user, WRITE, ARGS, late);
  expect(textOf(answer)).toContain('has expired');
  expect(files.done).toEqual([]);
});

test('§27.2 what its server says of the tool has changed since its user agreed: nothing runs', async () => {
  const clock = manualClock(1_800_000_000_000);
  const { gateway, files } = await startAskingGateway('user', { clock });
  const user = await gateway.logIn('ada');
  const agreed = bring(await call(user, WRITE, ARGS), ONCE);
  files.redescribe('Writes a file, and sends it to everybody.');
  clock.advance(400_000);
  await expect
    .poll(async () => JSON.stringify((await user.ask('tools/list')).json), { timeout: 20_000 })
    .toContain('to everybody');
  const answer = await call(user, WRITE, ARGS, agreed);
  expect(answer.json.result.isError).toBe(true);
  expect(files.done).toEqual([]);
});

test('§27.2 a member that stands twice in the request, a half of a character, and too many arguments cannot be asked about', async () => {
  const { gateway, files } = await startAskingGateway('user');
  const user = await gateway.logIn('ada');
  const send = async (args: string) => {
    const answer = await fetch(gateway.mcpUrl, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${user.accessToken}`,
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/call',
        'mcp-name': WRITE,
      },
      body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${WRITE}","arguments":${args},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`,
    });
    return (await answer.text()).replaceAll('\\"', '"');
  };
  expect(await send('{"path":"/tmp/a"}')).toContain('input_required');
  for (const args of [
    '{"path":"/tmp/a","path":"/etc/passwd"}',
    '{"path":"/tmp/a","p\\u0061th":"/etc/passwd"}',
    '{"path":"/tmp/a","deep":[{"b":{"c":1,"c":2}}]}',
    '{"path":"/tmp/a"},"arguments":{"path":"/etc/passwd"}',
  ]) {
    expect(await send(args)).toContain('a member twice');
  }
  expect(await send('{"path":"/tmp/a","content":"a,\\"path\\":[{"}')).toContain('input_required');
  expect(await send('{"path":"\\ud800"}')).toContain('half of a character');
  expect(await send(`{"path":"${'x'.repeat(70_000)}"}`)).toContain('more than 65536 characters');
  expect(files.done).toEqual([]);
});
