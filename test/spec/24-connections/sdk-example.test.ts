// Servers of the official SDKs with their own checks of tokens, behind a line of `auth`.
import { expect, test } from 'vitest';
import { connectBy, readLink } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { startSdk1Example } from '../../support/connections/sdk-1-example.ts';
import { startSdk2Example } from '../../support/connections/sdk-2-example.ts';
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

async function startSdk2(era: string, tools: readonly string[]) {
  const { url, issuer, clientId, close } = await startSdk2Example(tools);
  closeAfterTest({ close });
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: { demo: { url, era, auth: { type: 'oauth', clientId } } },
    }),
  );
  const browserOf = (person: string) =>
    gateway.createBrowser({ person, names: { [issuer]: `${person}-there` } });
  return { gateway, browserOf };
}

test.for(['session', 'stateless'])(
  '§24.1 a server of SDK 2 that checks tokens itself, %s era: each user calls by the account they connected, and nobody else does',
  async (era) => {
    const { gateway, browserOf } = await startSdk2(era, ['whoami']);
    for (const person of ['ada', 'bob']) {
      const user = await gateway.logIn(person);
      const refused = await user.call('demo__whoami');
      expect(refused.isError).toBe(true);
      await connectBy(browserOf(person), readLink(refused.text));
      expect(await user.call('demo__whoami')).toEqual({
        isError: false,
        text: `whoami of ${person}-there`,
      });
    }
    const carol = await gateway.logIn('carol');
    expect((await carol.call('demo__whoami')).isError).toBe(true);
  },
);

test('§24.3 connect: a server’s own tool of this name is hidden, with a warning that says so, and is never called; the gateway’s stays', async () => {
  const { gateway, browserOf } = await startSdk2('session', ['connect', 'whoami']);
  const user = await gateway.logIn('ada');
  expect(await user.listToolNames()).toEqual(['demo__connect']);
  await connectBy(browserOf('ada'), readLink((await user.call('demo__connect')).text));
  expect(await user.listToolNames()).toEqual(['demo__whoami']);
  const { isError, text } = await user.call('demo__connect');
  expect([isError, text]).toEqual([false, expect.stringMatching(/^Connected to demo\b/)]);
  const warnings = gateway.log
    .filter(({ level }) => level === 'warn')
    .map((line) => JSON.stringify(line));
  expect(warnings).toContainEqual(
    expect.stringContaining('reserved for the tool by which users log in to the server'),
  );
});
