// Approving a call in a browser: what its user sees and presses, and how the pages look.
import { expect, test } from 'vitest';
import {
  ARGS,
  readApprovalLink,
  rulesThatAsk,
  WRITE,
} from '../support/approvals/asking-gateway.ts';
import { startFilesServer } from '../support/approvals/files-server.ts';
import { startConnectingGateway } from '../support/connections/connecting-gateway.ts';
import { useShared } from '../support/lifetimes.ts';
import { expectGoodLooks, logInAs, openPage } from '../support/site/own-pages.ts';
import { INSTALLATION_MS, openBrowser } from '../support/tools/chromium.ts';

const own = useShared(async () => {
  const files = await startFilesServer();
  const gateway = await startConnectingGateway({
    servers: { files: { url: files.url } },
    file: { rules: rulesThatAsk('page') },
  });
  return {
    files,
    gateway,
    async close() {
      await gateway.close();
      await files.close();
    },
  };
});
const browser = useShared(openBrowser, INSTALLATION_MS);

const LONG = { ...ARGS, content: 'A line of text.\n'.repeat(200) };

test('§27.4 a link in a browser: its user logs in, sees the call, approves it, and it runs', async () => {
  const user = await own.gateway.logIn('Ada');
  const { page, errors } = await openPage(
    browser,
    readApprovalLink((await user.call(WRITE, LONG)).text),
  );
  await logInAs(page, 'Ada');
  await expectGoodLooks(page, 'Allow this app to do this?');
  await page.getByText('/tmp/a').waitFor();
  await page.getByRole('button', { name: 'Approve' }).click();
  await expectGoodLooks(page, 'Approved');
  expect(await user.call(WRITE, LONG)).toEqual({ isError: false, text: 'written' });
  expect(errors).toEqual([]);
});

test('§27.4 the list in a browser: what waits, one of it refused, and nothing left', async () => {
  const user = await own.gateway.logIn('Bob');
  await user.call(WRITE, ARGS);
  const { page, errors } = await openPage(browser, `${own.gateway.baseUrl}/approvals`);
  await logInAs(page, 'Bob');
  await expectGoodLooks(page, 'Waiting for approval');
  await page.getByRole('link', { name: `Review the call: ${WRITE}` }).click();
  await page.getByRole('button', { name: 'Refuse' }).click();
  await expectGoodLooks(page, 'Refused');
  await page.getByRole('link', { name: 'Waiting for you' }).click();
  await page.getByText('There is nothing to decide.').waitFor();
  expect((await user.call(WRITE, ARGS)).text).toContain('was not approved');
  expect(errors).toEqual([]);
});

test('§27.4 a link in a browser: somebody else sees nothing of the call, and can log in as who it is for', async () => {
  const user = await own.gateway.logIn('Carol');
  const { page } = await openPage(browser, readApprovalLink((await user.call(WRITE, ARGS)).text));
  await logInAs(page, 'Mallory');
  await expectGoodLooks(page, 'This link is for another user');
  expect(await page.content()).not.toContain('/tmp/a');
  await page.getByRole('button', { name: 'Log in as another user' }).click();
  await logInAs(page, 'Carol');
  await expectGoodLooks(page, 'Allow this app to do this?');
});
