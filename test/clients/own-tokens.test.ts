// The gateway's own tokens in the hands of real clients, before a provider whose tokens nobody else can read.
import { expect, test } from 'vitest';
import { OFFICIAL_CLIENTS } from '../support/clients/official-clients.ts';
import { useFresh } from '../support/lifetimes.ts';
import { openAccount, readCsrf, readGrants } from '../support/oauth/account-steps.ts';
import { startOwnTokenReplicas } from '../support/oauth/own-token-replicas.ts';

const MINUTE_MS = 60_000;
const HELLO = [{ type: 'text', text: 'Postern MCP Server: hello' }];

const own = useFresh(() => startOwnTokenReplicas({ OAUTH_ACCESS_TTL_SECONDS: '600' }));

/** The person, in a browser, at the other replica. */
async function logOut(): Promise<void> {
  const { elsewhere: steps, provider } = own;
  const { cookie } = await openAccount({ steps, provider });
  const page = (await steps.get('/account', cookie)).text;
  const [grant = ''] = readGrants(page);
  const form = { csrf: readCsrf(page), action: 'end', grant };
  const { status } = await steps.post('/account', form, cookie);
  expect(status).toBe(303);
}

test.for(OFFICIAL_CLIENTS.map((row) => [row.title, row] as const))(
  '§5.11 official client %s: logs in, calls, is refreshed, survives a restart, and is out once its user has logged it out elsewhere',
  async ([, { connect }]) => {
    const client = await connect(own.mcpUrl);
    const { tokens, authorizations } = client.memory.saved;
    const ping = async () => (await client.call('service_ping', { message: 'hello' })).content;
    expect(await ping()).toEqual(HELLO);
    expect(tokens[0]?.access_token).toMatch(/^pst_/);

    own.clock.advance(11 * MINUTE_MS);
    expect(await ping()).toEqual(HELLO);
    expect(tokens).toHaveLength(2);

    await own.restart();
    expect(await ping()).toEqual(HELLO);
    expect([tokens.length, authorizations.length]).toEqual([2, 1]);

    await logOut();
    await expect(ping()).rejects.toThrow(/Unauthorized/);
    expect(client.sent.filter((line) => line.startsWith('POST tools/call')).at(-1)).toBe(
      'POST tools/call 401',
    );
    // It asks the person to log in again.
    expect(authorizations).toHaveLength(2);
    expect(own.provider.revoked).toHaveLength(1);
    await client.close();
  },
);
