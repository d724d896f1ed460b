// §27.1, §24.3: a server whose tools are not known before its user logs in at it: nothing of it runs without the question.
import { expect, test } from 'vitest';
import { APPROVE } from '../../support/approvals/asking-gateway.ts';
import { connectBy } from '../../support/connections/connect-steps.ts';
import { CONNECTING_CLIENTS } from '../../support/connections/connecting-clients.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

test.for(CONNECTING_CLIENTS.map((row) => [row.title, row] as const))(
  '§27.1 client %s: the user connects first, and the call that led there runs nothing that is asked about',
  async ([, row]) => {
    const server = closeAfterTest(await startProtectedServer());
    const gateway = closeAfterTest(
      await startConnectingGateway({
        servers: { wiki: server.configure() },
        file: {
          rules: [
            { who: 'everyone', may: ['wiki__*'] },
            // It is not known of a tool before its server has said what it has.
            { when: '!has(tool.annotations.readOnlyHint)', may: ['wiki__whoami'], ask: 'page' },
          ],
        },
      }),
    );
    const browser = gateway.createBrowser({ person: 'ada', account: 'ada@work' });
    const client = await row.connect(gateway.mcpUrl, {
      person: 'ada',
      async onUrl({ url }) {
        if (url.includes('/connections/')) void connectBy(browser, url);
        else void browser.open(url).then((page) => browser.press(page, APPROVE));
        return 'accept';
      },
    });
    const { isError, text } = await client.call('wiki__whoami');
    expect([isError, text]).toEqual([true, expect.stringContaining('Call again')]);
    expect(server.calls()).toEqual([]);
    expect((await client.call('wiki__whoami')).text).toBe('ada@work');
    expect(client.asked.map(({ url }) => new URL(url).pathname.split('/')[1])).toEqual([
      'connections',
      'approvals',
    ]);
    await client.close();
  },
);

test('§27.1 to connect a server is not asked about, whatever the rule says', async () => {
  const server = closeAfterTest(await startProtectedServer());
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: { wiki: server.configure() },
      file: { rules: [{ who: 'everyone', may: ['wiki__*'], ask: 'page' }] },
    }),
  );
  const user = await gateway.logIn('ada');
  expect((await user.call('wiki__connect')).text).toContain('/connections/wiki');
});
