// A chain of two gateways: the inner one, in broker mode with its own tokens, is the server that the outer one connects to.
import { expect, test } from 'vitest';
import { GO_ON, readLink } from '../../support/connections/connect-steps.ts';
import { CONNECTING_CLIENTS } from '../../support/connections/connecting-clients.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const HELLO = { isError: false, text: 'Postern MCP Server: hello' };

const ROWS = CONNECTING_CLIENTS.flatMap((row) =>
  (['session', 'stateless'] as const).map((era) => [row.title, era, row] as const),
);

test.for(ROWS)(
  '§24 client %s, a chain in the %s era: one connects at the outer gateway, approves it at the inner one, and calls through both, before and after tokens expire',
  async ([, era, row]) => {
    const clock = manualClock();
    const inner = closeAfterTest(
      await startConnectingGateway({ clock, servers: {}, file: { builtIn: true } }),
    );
    const outer = closeAfterTest(
      await startConnectingGateway({
        clock,
        servers: {
          inner: { url: inner.mcpUrl.href, era, auth: { type: 'oauth' } },
        },
      }),
    );
    const client = await row.connect(outer.mcpUrl, { person: 'ada' });
    const call = () => client.call('inner__service_ping', { message: 'hello' });
    const refused = await call();
    expect(refused.isError).toBe(true);

    // At the inner one the same person has another name.
    const names = { [inner.provider.origin]: 'ada-inside' };
    const browser = outer.createBrowser({ person: 'ada', names });
    const consent = await browser.press(await browser.open(readLink(refused.text)), GO_ON);
    expect(consent.url.origin).toBe(inner.baseUrl);
    const done = await browser.press(consent, /^Approve$/);
    expect([done.status, done.url.origin]).toEqual([200, outer.baseUrl]);
    expect(await call()).toEqual(HELLO);

    clock.sleep(2 * 3_600_000);
    expect(await call()).toEqual(HELLO);
    const people = inner.auditLines().map(({ user }) => user);
    expect(JSON.stringify(people)).toContain('ada-inside');
    await client.close();
  },
);
