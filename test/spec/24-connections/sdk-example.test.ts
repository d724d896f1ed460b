// The OAuth example of the official SDK 1.x, as it comes, behind one line of `auth`.
import { expect, test } from 'vitest';
import { connectBy, readLink } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { startSdk1Example } from '../../support/connections/sdk-1-example.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

test('§24.1 the example of SDK 1.32 needs one line: it is connected by the link and called', async () => {
  const server = closeAfterTest(await startSdk1Example());
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: { demo: { url: server.url, auth: { type: 'oauth' } } },
    }),
  );
  const user = await gateway.logIn('ada');
  const refused = await user.call('demo__whoami');
  expect(refused.isError).toBe(true);
  const browser = gateway.createBrowser({ person: 'ada' });
  expect((await connectBy(browser, readLink(refused.text))).text).toMatch(/\bconnected\b/i);
  // It says of nobody who they are.
  expect(await user.call('demo__whoami')).toEqual({ isError: false, text: 'undefined' });
  expect(await user.listToolNames()).toEqual(['demo__whoami', 'demo__slow', 'demo__write']);
});
