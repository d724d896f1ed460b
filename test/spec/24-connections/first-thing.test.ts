// One line of `auth` before a server that wants a login, and nothing else: a person connects it while a call waits, or by the
// link in its answer, with official clients of both eras.
import { expect, test } from 'vitest';
import type { Browser } from '../../support/connections/browser.ts';
import { connectBy, readLink } from '../../support/connections/connect-steps.ts';
import {
  type AskedUrl,
  CONNECTING_CLIENTS,
  type OnUrl,
} from '../../support/connections/connecting-clients.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const ROWS = CONNECTING_CLIENTS.flatMap((row) =>
  (['session', 'stateless'] as const).map((era) => [row.title, era, row] as const),
);

async function start(era: 'session' | 'stateless', replicas = 1) {
  const server = closeAfterTest(await startProtectedServer({ era }));
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: { wiki: { url: server.url, auth: { type: 'oauth' } } },
      replicas,
    }),
  );
  return { server, gateway };
}

/** A person who is shown the address, says yes, and connects while the call waits. */
function createPerson(browser: Browser) {
  let connecting: Promise<unknown> = Promise.resolve();
  const onUrl: OnUrl = async ({ url }) => {
    connecting = connectBy(browser, url);
    return 'accept';
  };
  return { onUrl, hasConnected: () => connecting };
}

const asksFor = (baseUrl: string) => (asked: readonly AskedUrl[]) => {
  expect(asked).toHaveLength(1);
  expect(asked[0]?.url).toMatch(new RegExp(`^${baseUrl}/connections/wiki\\?request=[\\w-]{16,}$`));
  expect(asked[0]?.message).toContain('wiki');
};

test.for(ROWS)(
  '§24.3 client %s, %s-era server: asked by URL, the person connects in the browser, and the call goes on by itself; the connection outlives a restart',
  async ([, era, row]) => {
    const { server, gateway } = await start(era);
    const browser = gateway.createBrowser({ person: 'ada', account: 'ada@work' });
    const person = createPerson(browser);
    const client = await row.connect(gateway.mcpUrl, { person: 'ada', onUrl: person.onUrl });
    expect(await client.call('wiki__whoami')).toEqual({ isError: false, text: 'ada@work' });
    await person.hasConnected();
    asksFor(gateway.baseUrl)(client.asked);
    expect(server.calls()).toEqual(['ada@work']);

    await gateway.restart();
    expect(await client.call('wiki__whoami')).toEqual({ isError: false, text: 'ada@work' });
    expect(client.asked).toHaveLength(1);
    expect(server.seen('token')).toHaveLength(1);
    await client.close();
  },
);

test.for(ROWS)(
  '§24.3 client %s, %s-era server: one that cannot be asked gets a link, the person opens it, and the next call goes through',
  async ([, era, row]) => {
    const { server, gateway } = await start(era);
    const client = await row.connect(gateway.mcpUrl, { person: 'ada' });
    const refused = await client.call('wiki__whoami');
    expect(refused.isError).toBe(true);
    expect(refused.text).toMatch(/wiki/);
    expect(refused.text).toMatch(/call .*again/i);
    expect(server.calls()).toEqual([]);

    const browser = gateway.createBrowser({ person: 'ada', account: 'ada@work' });
    const page = await connectBy(browser, readLink(refused.text));
    expect(page.text).toMatch(/\bconnected\b/i);
    expect(await client.call('wiki__whoami')).toEqual({ isError: false, text: 'ada@work' });
    expect(await client.listToolNames()).toEqual(['wiki__whoami', 'wiki__slow', 'wiki__write']);

    await gateway.restart();
    expect(await client.call('wiki__whoami')).toEqual({ isError: false, text: 'ada@work' });
    await client.close();
  },
);

test.for(CONNECTING_CLIENTS.map((row) => [row.title, row] as const))(
  '§24.3 client %s, two replicas: the call waits at one, the browser connects at the other, and both go on; a restart of all changes nothing',
  async ([, row]) => {
    const { server, gateway } = await start(row.era, 2);
    const browser = gateway.createBrowser({ person: 'ada', account: 'ada@work', replica: 1 });
    const person = createPerson(browser);
    const client = await row.connect(gateway.mcpUrl, {
      person: 'ada',
      onUrl: person.onUrl,
      fetch: gateway.on(0).fetch,
    });
    const isDone = { isError: false, text: 'ada@work' };
    expect(await client.call('wiki__whoami')).toEqual(isDone);
    await person.hasConnected();
    const other = await gateway.logIn('ada', 1);
    expect(await other.call('wiki__whoami')).toEqual(isDone);
    expect(server.seen('register')).toHaveLength(1);

    await gateway.restart();
    for (const replica of [0, 1]) {
      const user = await gateway.logIn('ada', replica);
      expect(await user.call('wiki__whoami')).toEqual(isDone);
    }
    expect(server.seen('register')).toHaveLength(1);
    expect(server.seen('token')).toHaveLength(1);
    await client.close();
  },
);
