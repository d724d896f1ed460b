// §27.2: what was approved is what runs, under the rules as they are then, and at the path where it was asked for.
import { expect, test } from 'vitest';
import { ARGS, startAskingGateway, WRITE } from '../../support/approvals/asking-gateway.ts';
import { createOperator, OPERATED, PROGRAMS } from '../../support/approvals/operators.ts';
import { CLIENT_CAPABILITIES, statelessRequest } from '../../support/clients/stateless.ts';
import { CONNECTING_CLIENTS } from '../../support/connections/connecting-clients.ts';
import type { GatewayUser } from '../../support/connections/gateway-user.ts';
import { manualClock } from '../../support/gateway/clock.ts';

const ASKABLE = { [CLIENT_CAPABILITIES]: { elicitation: {} } };
const READ = { who: 'everyone', may: ['files__*'] };
const SESSION_CLIENTS = CONNECTING_CLIENTS.filter(({ era }) => era === 'session').map(
  (row) => [row.title, row] as const,
);

/** At the path of a view. */
async function callAt(url: string, { accessToken }: GatewayUser, more: object = {}) {
  const params = { name: WRITE, arguments: ARGS, ...more };
  const { message, headers } = statelessRequest('tools/call', params, { meta: ASKABLE });
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${accessToken}`,
    },
    body: JSON.stringify(message),
  });
  const { result } = JSON.parse(await answer.text());
  return result;
}

const agree = (asked: { requestState: string }) => ({
  requestState: asked.requestState,
  inputResponses: { approval: { action: 'accept', content: { decision: 'once' } } },
});

test.for(['page', 'operator'] as const)(
  '§27.2 what a form approved at the path of one view is nothing at another, where the rules ask "%s"',
  async (ask) => {
    const { gateway, files } = await startAskingGateway('user', {
      env: OPERATED,
      file: {
        views: { easy: {}, strict: {} },
        rules: [
          READ,
          { who: { views: ['easy'] }, may: [WRITE], ask: 'user' },
          { who: { views: ['strict'] }, may: [WRITE], ask },
        ],
      },
    });
    const user = await gateway.logIn('ada');
    const asked = await callAt(`${gateway.mcpUrl}/easy`, user);
    const elsewhere = await callAt(`${gateway.mcpUrl}/strict`, user, agree(asked));
    expect(elsewhere).toMatchObject({ isError: true });
    expect(files.done).toEqual([]);
    const again = await callAt(`${gateway.mcpUrl}/easy`, user);
    const here = await callAt(`${gateway.mcpUrl}/easy`, user, agree(again));
    expect(here).toMatchObject({ content: [{ text: 'written' }] });
  },
);

test('§27.2 rules that ask operators by now are not fulfilled by a form', async () => {
  const { gateway, files } = await startAskingGateway('user', { env: OPERATED });
  const user = await gateway.logIn('ada');
  const asked = await callAt(gateway.mcpUrl.href, user);
  await gateway.reload({ rules: [READ, { ...READ, may: [WRITE], ask: 'operator' }] });
  expect(await callAt(gateway.mcpUrl.href, user, agree(asked))).toMatchObject({ isError: true });
  expect(files.done).toEqual([]);
});

test.for(SESSION_CLIENTS)(
  '§27.2 client %s: whoever may not call it any more once the user agrees, does not',
  async ([, row]) => {
    for (const rules of [
      [{ ...READ, may: ['files__read_file'] }],
      [READ, { ...READ, may: [WRITE], ask: 'page' }],
    ]) {
      const { gateway, files } = await startAskingGateway('user');
      const client = await row.connect(gateway.mcpUrl, {
        async onForm() {
          await gateway.reload({ rules });
          return { action: 'accept', content: { decision: 'once' } };
        },
      });
      const ended = await client.call(WRITE, ARGS).catch((error: unknown) => String(error));
      expect(JSON.stringify(ended)).toMatch(/"isError":true|Unknown tool/);
      expect(files.done).toEqual([]);
      await client.close();
    }
  },
);

test('§27.2 a tool that has become another while somebody decided does not run', async () => {
  const clock = manualClock(1_800_000_000_000);
  const { gateway, files } = await startAskingGateway('operator', {
    clock,
    env: { ...OPERATED, APPROVAL_WAIT_SECONDS: '600' },
    file: { clients: PROGRAMS },
  });
  const operator = await createOperator(gateway);
  const user = await gateway.logIn('ada');
  const waiting = user.call(WRITE, ARGS);
  const { id } = await operator.find();
  files.redescribe('Writes a file, and sends it to everybody.');
  clock.advance(100_000);
  await expect
    .poll(async () => JSON.stringify((await user.ask('tools/list')).json), { timeout: 20_000 })
    .toContain('to everybody');
  await operator.decide(id, 'approve');
  const { isError, text } = await waiting;
  expect([isError, text]).toEqual([true, expect.stringContaining('nothing was done')]);
  expect(files.done).toEqual([]);
});
