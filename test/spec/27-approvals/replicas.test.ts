// §27: whichever replica is asked, and after a restart: a decision is of one call, and of one run.
import { expect, test } from 'vitest';
import {
  APPROVE,
  ARGS,
  readApprovalLink,
  startAskingGateway,
  WRITE,
} from '../../support/approvals/asking-gateway.ts';
import { CONNECTING_CLIENTS } from '../../support/connections/connecting-clients.ts';

test('§27.2 two replicas: asked at one, approved at the other, taken by one of many that call at once', async () => {
  const { gateway, files } = await startAskingGateway('page', { replicas: 2 });
  const user = await gateway.logIn('ada');
  const { text } = await user.call(WRITE, ARGS);
  const browser = gateway.createBrowser({ person: 'ada', replica: 1 });
  await browser.press(await browser.open(readApprovalLink(text)), APPROVE);
  const answers = await Promise.all(Array.from({ length: 6 }, () => user.call(WRITE, ARGS)));
  expect(answers.filter(({ isError }) => !isError)).toHaveLength(1);
  expect(files.done).toHaveLength(1);
  // The others wait for a decision of their own: one and the same.
  const links = new Set(
    answers.filter(({ isError }) => isError).map((answer) => readApprovalLink(answer.text)),
  );
  expect(links.size).toBe(1);
});

test.for(CONNECTING_CLIENTS.map((row) => [row.title, row] as const))(
  '§27.2 two replicas, client %s: a call that waits at one goes on when the other is told',
  async ([, row]) => {
    const { gateway, files } = await startAskingGateway('page', { replicas: 2 });
    const browser = gateway.createBrowser({ person: 'ada', replica: 1 });
    const client = await row.connect(gateway.mcpUrl, {
      person: 'ada',
      fetch: gateway.on(0).fetch,
      async onUrl({ url }) {
        void browser.open(url).then((page) => browser.press(page, APPROVE));
        return 'accept';
      },
    });
    expect((await client.call(WRITE, ARGS)).isError).toBe(false);
    expect(files.done).toHaveLength(1);
    await client.close();
  },
);

test('§27.2 a restart loses neither what waits nor what was approved', async () => {
  const { gateway, files } = await startAskingGateway('page');
  const user = await gateway.logIn('ada');
  const { text } = await user.call(WRITE, ARGS);
  await gateway.restart();
  const browser = gateway.createBrowser({ person: 'ada' });
  await browser.press(await browser.open(readApprovalLink(text)), APPROVE);
  await gateway.restart();
  expect(await user.call(WRITE, ARGS)).toEqual({ isError: false, text: 'written' });
  expect((await user.call(WRITE, ARGS)).isError).toBe(true);
  expect(files.done).toHaveLength(1);
});

test('§27.2 one user has twenty calls that wait, and keeps nobody else from asking', async () => {
  const { gateway } = await startAskingGateway('page');
  const user = await gateway.logIn('ada');
  for (let count = 0; count < 20; count += 1)
    readApprovalLink((await user.call(WRITE, { ...ARGS, content: String(count) })).text);
  const { text } = await user.call(WRITE, { ...ARGS, content: 'one more' });
  expect(text).toContain('Too many calls wait');
  readApprovalLink((await user.call(WRITE, { ...ARGS, content: '7' })).text);
  const other = await gateway.logIn('grace');
  readApprovalLink((await other.call(WRITE, ARGS)).text);
  const browser = gateway.createBrowser({ person: 'ada' });
  const list = await browser.open(`${gateway.baseUrl}/approvals`);
  expect(list.html.match(/Review the call<\/a>/g)).toHaveLength(20);
});

test('§27.2 a user who asks for a hundred at the same moment has no more than twenty that wait', async () => {
  const { gateway } = await startAskingGateway('page');
  const user = await gateway.logIn('ada');
  const ended = await Promise.all(
    Array.from({ length: 100 }, (_, at) => user.call(WRITE, { ...ARGS, content: String(at) })),
  );
  const waiting = ended.filter(({ text }) => text.includes('/approvals/'));
  expect(waiting.length).toBeLessThanOrEqual(20);
  expect(ended.filter(({ text }) => text.includes('Too many calls wait')).length).toBe(
    100 - waiting.length,
  );
});
