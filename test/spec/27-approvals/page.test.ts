// §27: a client that cannot be asked: the link, the page of approvals, and the call that goes on by what it is about.
import { expect, test } from 'vitest';
import {
  APPROVE,
  ARGS,
  REFUSE,
  readApprovalLink,
  startAskingGateway,
  WRITE,
} from '../../support/approvals/asking-gateway.ts';

test.for(['user', 'page'] as const)(
  '§27.4 "ask": "%s" without elicitation: nothing runs, the link leads its user to the exact call, and once they approve the same call runs once',
  async (ask) => {
    const { gateway, files } = await startAskingGateway(ask);
    const user = await gateway.logIn('ada');
    const first = await user.call(WRITE, ARGS);
    expect(first.isError).toBe(true);
    expect(first.text).toContain('call again');
    expect(files.done).toEqual([]);
    // What no rule asks about runs at once.
    expect(await user.call('files__read_file', { path: 'a' })).toEqual({
      isError: false,
      text: 'read a',
    });

    const browser = gateway.createBrowser({ person: 'ada' });
    const page = await browser.open(readApprovalLink(first.text));
    expect(page.status).toBe(200);
    for (const shown of ['write_file', 'files', '/tmp/a', 'hello', 'Test'])
      expect(page.text).toContain(shown);
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(page.headers.get('cache-control')).toBe('no-store');
    // The same call leads to the same page while nobody has decided.
    expect((await user.call(WRITE, ARGS)).text).toBe(first.text);
    const approved = await browser.press(page, APPROVE);
    expect(approved.text).toContain('Approved');
    expect(files.done).toEqual([]);

    expect(await user.call(WRITE, ARGS)).toEqual({ isError: false, text: 'written' });
    expect(files.done).toEqual([JSON.stringify(ARGS)]);
    // It was good for one call.
    expect((await user.call(WRITE, ARGS)).isError).toBe(true);
    expect(files.done).toHaveLength(1);
    expect((await browser.open(page.url)).status).toBe(410);
  },
);

test('§27.2 members in another order are the same call, and anything else is another', async () => {
  const { gateway, files } = await startAskingGateway('page');
  const user = await gateway.logIn('ada');
  const browser = gateway.createBrowser({ person: 'ada' });
  const { text } = await user.call(WRITE, ARGS);
  await browser.press(await browser.open(readApprovalLink(text)), APPROVE);
  for (const args of [
    { ...ARGS, content: 'hello ' },
    { ...ARGS, content: ['hello'] },
    { ...ARGS, mode: 'append' },
    { path: ARGS.path },
  ]) {
    expect((await user.call(WRITE, args)).isError).toBe(true);
  }
  expect(files.done).toEqual([]);
  const { content, path } = ARGS;
  expect((await user.call(WRITE, { content, path })).isError).toBe(false);
});

test('§27.2 an approval is of one user by one client: for others it is nothing', async () => {
  const { gateway, files } = await startAskingGateway('page');
  const ada = await gateway.logIn('ada');
  const browser = gateway.createBrowser({ person: 'ada' });
  const { text } = await ada.call(WRITE, ARGS);
  const link = readApprovalLink(text);
  await browser.press(await browser.open(link), APPROVE);
  // Each login of the test registers a client of its own.
  const otherApp = await gateway.logIn('ada');
  const other = await gateway.logIn('grace');
  for (const user of [otherApp, other]) {
    const refused = await user.call(WRITE, ARGS);
    expect(refused.isError).toBe(true);
    expect(readApprovalLink(refused.text)).not.toBe(link);
  }
  expect(files.done).toEqual([]);
  expect((await ada.call(WRITE, ARGS)).isError).toBe(false);
  expect(files.done).toHaveLength(1);
});

test('§27.4 somebody else neither sees nor decides: by the link, by the form, in the list', async () => {
  const { gateway, files } = await startAskingGateway('page');
  const ada = await gateway.logIn('ada');
  const grace = gateway.createBrowser({ person: 'grace' });
  const { text } = await ada.call(WRITE, { ...ARGS, content: 'secret of ada' });
  const link = readApprovalLink(text);
  const page = await grace.open(link);
  expect(page.status).toBe(403);
  expect(page.html).not.toContain('secret of ada');
  expect(page.html).not.toContain('write_file');
  const request = link.split('/').at(-1) ?? '';
  const forged = await grace.submitTo(`${gateway.baseUrl}/approvals`, page, {
    action: 'approve',
    request,
  });
  expect(forged.status).toBe(403);
  expect((await grace.open(`${gateway.baseUrl}/approvals`)).text).toContain(
    'There is nothing to decide.',
  );
  expect((await ada.call(WRITE, { ...ARGS, content: 'secret of ada' })).isError).toBe(true);
  expect(files.done).toEqual([]);
  // Whose it is sees it in the list.
  const own = gateway.createBrowser({ person: 'ada' });
  expect((await own.open(`${gateway.baseUrl}/approvals`)).text).toContain(WRITE);
});

test('§27.4 a form without the token of its page decides nothing', async () => {
  const { gateway, files } = await startAskingGateway('page');
  const ada = await gateway.logIn('ada');
  const browser = gateway.createBrowser({ person: 'ada' });
  const { text } = await ada.call(WRITE, ARGS);
  const page = await browser.open(readApprovalLink(text));
  const answer = await browser.submit(page, APPROVE, { csrf: 'a'.repeat(43) });
  expect(answer.status).toBe(400);
  expect((await ada.call(WRITE, ARGS)).isError).toBe(true);
  expect(files.done).toEqual([]);
});

test('§27.4 whoever refuses is not asked again for the same call for ten minutes, and the call says so', async () => {
  const { gateway, files } = await startAskingGateway('page');
  const ada = await gateway.logIn('ada');
  const browser = gateway.createBrowser({ person: 'ada' });
  const { text } = await ada.call(WRITE, ARGS);
  const page = await browser.open(readApprovalLink(text));
  expect((await browser.press(page, REFUSE)).text).toContain('Refused');
  const { isError, text: refused } = await ada.call(WRITE, ARGS);
  expect([isError, refused]).toEqual([true, expect.stringContaining('was not approved')]);
  // The first decision counts.
  expect((await browser.press(page, APPROVE)).text).toContain('Refused');
  expect((await ada.call(WRITE, ARGS)).isError).toBe(true);
  expect(files.done).toEqual([]);
});

test('§27.4 apps are named as on the consent page, in the list and beside the call, and two of one name are told apart', async () => {
  const { gateway } = await startAskingGateway('page');
  const sly = 'Bank\u202e\u200b” by Ada';
  const texts: string[] = [];
  for (const name of [sly, 'Claude', 'Claude']) {
    texts.push((await (await gateway.logIn('ada', undefined, name)).call(WRITE, ARGS)).text);
  }
  const bob = await gateway.logIn('bob', undefined, sly);
  texts.push((await bob.call(WRITE, ARGS)).text);
  const links = texts.map(readApprovalLink);
  const browser = gateway.createBrowser({ person: 'ada' });
  const [first, second, third] = [
    await browser.open(links[0] ?? ''),
    await browser.open(links[1] ?? ''),
    await browser.open(links[2] ?? ''),
  ];
  const list = await browser.open(new URL('/approvals', links[0]).href);
  for (const { text } of [first, list]) {
    expect(text).toContain("“ Bank ' by Ada ”");
    expect(text).not.toMatch(/[\u200b\u202a-\u202e]/);
  }
  const readId = (text: string) => /has this name (\S+)/.exec(text)?.[1];
  const ids = [readId(second.text), readId(third.text)];
  expect(new Set(ids).size).toBe(2);
  for (const id of ids) expect(list.text).toContain(String(id));
  // Somebody else's app of that name is none of hers.
  expect(readId(first.text)).toBeUndefined();
});
