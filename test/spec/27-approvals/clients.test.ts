// §27: real clients of both eras that are asked by a form, by an address, or not at all.
import { expect, test } from 'vitest';
import {
  APPROVE,
  ARGS,
  REFUSE,
  readApprovalLink,
  startAskingGateway,
  WRITE,
} from '../../support/approvals/asking-gateway.ts';
import {
  type AskedForm,
  CONNECTING_CLIENTS,
  type FormAnswer,
} from '../../support/connections/connecting-clients.ts';
import { manualClock } from '../../support/gateway/clock.ts';

const ROWS = CONNECTING_CLIENTS.map((row) => [row.title, row] as const);

const decide = (decision: string): FormAnswer => ({ action: 'accept', content: { decision } });

test.for(ROWS)(
  '§27.3 client %s, by a form: its user sees server, tool and arguments, and each call is asked about',
  async ([, row]) => {
    const { gateway, files } = await startAskingGateway('user');
    const forms: AskedForm[] = [];
    const client = await row.connect(gateway.mcpUrl, {
      onForm: async (asked) => {
        forms.push(asked);
        return decide('once');
      },
    });
    const args = { ...ARGS, content: 'a\u202eb\u200bc' };
    expect(await client.call(WRITE, args)).toEqual({ isError: false, text: 'written' });
    expect(await client.call(WRITE, args)).toEqual({ isError: false, text: 'written' });
    expect(forms).toHaveLength(2);
    const [form] = forms;
    expect(form?.message).toContain('write_file of files');
    expect(form?.message).toContain('"path":"/tmp/a"');
    // What is not seen is shown.
    expect(form?.message).toContain('a\\u202eb\\u200bc');
    expect(form?.choices).toEqual(
      row.era === 'session' ? ['once', 'session', 'refuse'] : ['once', 'refuse'],
    );
    expect(files.done).toEqual([JSON.stringify(args), JSON.stringify(args)]);
    await client.close();
  },
);

test.for(
  ROWS.flatMap(([title, row]) =>
    (
      [
        ['refuses', decide('refuse')],
        ['declines', { action: 'decline' }],
        ['closes the form', { action: 'cancel' }],
        ['accepts without an answer', { action: 'accept', content: {} }],
        ['answers what was not offered', decide('always')],
      ] as const
    ).map(([how, answer]) => [title, how, row, answer] as const),
  ),
)('§27.3 client %s: whoever %s stops the call', async ([, , row, answer]) => {
  const { gateway, files } = await startAskingGateway('user');
  const client = await row.connect(gateway.mcpUrl, { onForm: async () => answer });
  const { isError, text } = await client.call(WRITE, ARGS);
  expect([isError, text]).toEqual([true, expect.stringContaining('nothing was done')]);
  expect(files.done).toEqual([]);
  await client.close();
});

test.for(ROWS.filter(([, { era }]) => era === 'session'))(
  '§27.3 client %s: "for this session" is for exactly the same call in that session',
  async ([, row]) => {
    const { gateway, files } = await startAskingGateway('user');
    const answers: FormAnswer[] = [];
    let asked = 0;
    const onForm = async () => {
      asked += 1;
      return answers.shift() ?? decide('refuse');
    };
    const client = await row.connect(gateway.mcpUrl, { onForm });
    answers.push(decide('session'));
    expect((await client.call(WRITE, ARGS)).isError).toBe(false);
    expect((await client.call(WRITE, ARGS)).isError).toBe(false);
    expect(asked).toBe(1);
    expect((await client.call(WRITE, { ...ARGS, content: 'other' })).isError).toBe(true);
    expect(asked).toBe(2);
    const other = await row.connect(gateway.mcpUrl, { onForm });
    expect((await other.call(WRITE, ARGS)).isError).toBe(true);
    expect(asked).toBe(3);
    expect(files.done).toHaveLength(2);
    await client.close();
    await other.close();
  },
);

test.for(ROWS)(
  '§27.4 client %s, by an address: it leads to the page, and the call goes on once its user approves',
  async ([, row]) => {
    for (const ask of ['user', 'page'] as const) {
      const { gateway, files } = await startAskingGateway(ask);
      const browser = gateway.createBrowser({ person: 'ada' });
      const client = await row.connect(gateway.mcpUrl, {
        person: 'ada',
        async onUrl({ url }) {
          void browser.open(url).then((page) => browser.press(page, APPROVE));
          return 'accept';
        },
      });
      expect(await client.call(WRITE, ARGS)).toEqual({ isError: false, text: 'written' });
      expect(client.asked.map(({ url }) => url)).toEqual([
        expect.stringMatching(new RegExp(`^${gateway.baseUrl}/approvals/`)),
      ]);
      expect(files.done).toEqual([JSON.stringify(ARGS)]);
      await client.close();
    }
  },
);

test.for(ROWS)(
  '§27.4 client %s, by an address: a refusal at the page, or of the question, ends the call',
  async ([, row]) => {
    const { gateway, files } = await startAskingGateway('page');
    const browser = gateway.createBrowser({ person: 'ada' });
    let action: 'accept' | 'decline' = 'decline';
    const client = await row.connect(gateway.mcpUrl, {
      person: 'ada',
      async onUrl({ url }) {
        if (action === 'accept') void browser.open(url).then((page) => browser.press(page, REFUSE));
        return action;
      },
    });
    expect((await client.call(WRITE, ARGS)).isError).toBe(true);
    action = 'accept';
    const { isError, text } = await client.call(WRITE, ARGS);
    expect([isError, text]).toEqual([true, expect.stringContaining('was not approved')]);
    expect(files.done).toEqual([]);
    await client.close();
  },
);

test.for(ROWS)(
  '§27.4 client %s: "page" never asks by a form, which a client may fill in by itself',
  async ([, row]) => {
    const { gateway, files } = await startAskingGateway('page');
    const client = await row.connect(gateway.mcpUrl, { onForm: async () => decide('once') });
    const { isError, text } = await client.call(WRITE, ARGS);
    expect(isError).toBe(true);
    expect(readApprovalLink(text)).toContain('/approvals/');
    expect(files.done).toEqual([]);
    await client.close();
  },
);

test.for(ROWS)(
  '§27.3 client %s: arguments that are too long for a form are shown at the page',
  async ([, row]) => {
    const { gateway, files } = await startAskingGateway('user');
    const client = await row.connect(gateway.mcpUrl, {
      person: 'ada',
      onForm: async () => decide('once'),
    });
    const args = { ...ARGS, content: 'x'.repeat(5000) };
    const { text } = await client.call(WRITE, args);
    const browser = gateway.createBrowser({ person: 'ada' });
    const page = await browser.open(readApprovalLink(text));
    expect(page.text).toContain('x'.repeat(5000));
    await browser.press(page, APPROVE);
    expect((await client.call(WRITE, args)).isError).toBe(false);
    expect(files.done).toEqual([JSON.stringify(args)]);
    await client.close();
  },
);

test.for(ROWS)(
  '§27.4 client %s: a user who never decides ends the wait after five minutes',
  async ([, row]) => {
    const clock = manualClock(1_800_000_000_000);
    const { gateway, files } = await startAskingGateway('page', { clock });
    const client = await row.connect(gateway.mcpUrl, {
      person: 'ada',
      onUrl: async () => 'accept',
    });
    let isOver = false;
    const waiting = client.call(WRITE, ARGS).finally(() => {
      isOver = true;
    });
    const began = clock.now();
    while (!isOver) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      if (!isOver && client.asked.length > 0) clock.advance(5000);
    }
    const { isError, text } = await waiting;
    expect([isError, text]).toEqual([true, expect.stringContaining('did not decide in time')]);
    expect(clock.now() - began).toBeGreaterThan(290_000);
    expect(files.done).toEqual([]);
    await client.close();
  },
);
