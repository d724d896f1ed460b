// Every official client through every emulated provider: nothing is configured but the profile, the address and the client.
import { describe, expect, test } from 'vitest';
import { specCatalog } from '../support/catalogs/spec-catalog.ts';
import { OFFICIAL_CLIENTS } from '../support/clients/official-clients.ts';
import { manualClock } from '../support/gateway/clock.ts';
import { collectLog } from '../support/gateway/log.ts';
import { noInternet } from '../support/gateway/no-internet.ts';
import { useShared } from '../support/lifetimes.ts';
import { startEmulator } from '../support/providers/emulator.ts';
import { EMULATED } from '../support/providers/emulators.ts';
import { startGatewayInFront } from '../support/providers/gateway-in-front.ts';
import type { Habits } from '../support/providers/habits.ts';
import { ADA } from '../support/providers/login-page.ts';

const MINUTE_MS = 60_000;
const HELLO = [{ type: 'text', text: 'Postern MCP Server: hello' }];

/** Minutes after which the provider has been asked again: OAUTH_RENEWAL_SECONDS. */
const RENEWED = 61;

/** The others say nothing until they are asked; a logout token that never expires is refused. */
const tellsOfLogouts = ({ logoutTokenNames, logoutTokenSeconds }: Habits): boolean =>
  logoutTokenNames.length > 0 && logoutTokenSeconds !== undefined;

/** Providers that give no refresh token: they are asked again by the access token, which lives until it is revoked. */
const WITHOUT_REFRESH: ReadonlySet<string> = new Set(['github', 'slack']);

describe.each([...EMULATED])('%s', (name, habits) => {
  const own = useShared(async () => {
    const clock = manualClock();
    const emulator = await startEmulator(habits, { clock });
    const { log, lines } = collectLog();
    const deps = { clock, log, catalog: specCatalog, network: noInternet };
    const gateway = await startGatewayInFront({ emulator, deps });
    emulator.logoutUrl = `${gateway.baseUrl}/oauth/backchannel-logout`;
    return {
      clock,
      emulator,
      lines,
      mcpUrl: gateway.mcpUrl,
      async close() {
        await gateway.close();
        await emulator.close();
      },
    };
  });

  test.for(OFFICIAL_CLIENTS.map((row) => [row.title, row] as const))(
    `§5.11 ${habits.title}, official client %s: logs in, calls, is refreshed and renewed, and is out once its user is disabled there`,
    async ([title, { connect }]) => {
      const { clock, emulator } = own;
      const sub = `user of ${title}`;
      emulator.person = { ...ADA, sub };
      const before = emulator.asked.refresh;
      const client = await connect(own.mcpUrl);
      const { tokens, authorizations } = client.memory.saved;
      const ping = async () => (await client.call('service_ping', { message: 'hello' })).content;
      expect(await ping()).toEqual(HELLO);
      expect(tokens[0]?.access_token).toMatch(/^pst_/);

      clock.advance(RENEWED * MINUTE_MS);
      expect(await ping()).toEqual(HELLO);
      expect([tokens.length, authorizations.length]).toEqual([2, 1]);
      expect(emulator.asked.refresh - before).toBe(WITHOUT_REFRESH.has(name) ? 0 : 1);
      // And once more: with what the renewal brought.
      clock.advance(RENEWED * MINUTE_MS);
      expect(await ping()).toEqual(HELLO);
      expect(emulator.asked.refresh - before).toBe(WITHOUT_REFRESH.has(name) ? 0 : 2);

      emulator.disable(sub);
      clock.advance(RENEWED * MINUTE_MS);
      await expect(ping()).rejects.toThrow(/Unauthorized/);
      expect(authorizations).toHaveLength(2);
      await client.close();
    },
  );

  test.for(tellsOfLogouts(habits) ? OFFICIAL_CLIENTS.map((row) => [row.title, row] as const) : [])(
    `§13.4 ${habits.title}, official client %s: is out at the next call once its user logged out there`,
    async ([title, { connect }]) => {
      const { emulator } = own;
      const sub = `who logs out of ${title}`;
      emulator.person = { ...ADA, sub };
      const client = await connect(own.mcpUrl);
      const ping = async () => (await client.call('service_ping', { message: 'hello' })).content;
      expect(await ping()).toEqual(HELLO);
      const sent = await emulator.logOutUser({ sub });
      expect(sent.map(({ status }) => status)).toEqual([200]);
      await expect(ping()).rejects.toThrow(/Unauthorized/);
      await client.close();
    },
  );

  test(`§5.11 ${habits.title}: the gateway has nothing to warn of`, () => {
    expect(own.lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
  });
});
