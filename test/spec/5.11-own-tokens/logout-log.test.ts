// The log says who logged out, of which client, and by what: one line, whichever way it was.
import { expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import {
  logOutEverywhere,
  openAccount,
  readCsrf,
  readGrants,
} from '../../support/oauth/account-steps.ts';
import {
  ask,
  listGrants,
  logInBy,
  PAGE,
  startOperatedGateways,
} from '../../support/oauth/operator-logins.ts';
import { type Tokens, toTokens } from '../../support/oauth/own-tokens.ts';

const MINUTE_MS = 60_000;

const own = useFresh(() => startOperatedGateways());

async function endAtAccount(): Promise<void> {
  const { cookie } = await openAccount(own);
  const page = (await own.steps.get('/account', cookie)).text;
  const form = { csrf: readCsrf(page), action: 'end', grant: readGrants(page)[0] ?? '' };
  expect((await own.steps.post('/account', form, cookie)).status).toBe(303);
}

async function endByOperator(path: string): Promise<void> {
  const { access } = await logInBy(own, PAGE);
  expect((await ask(own, access, path, 'DELETE')).status).toBeLessThan(300);
}

const revoke = ({ client, refresh }: Tokens) =>
  own.steps.post('/oauth/revoke', { token: refresh, client_id: client.id });

test.each<{ way: string; by: string; end(tokens: Tokens): Promise<unknown> }>([
  {
    way: 'the client, which does so twice',
    by: 'client',
    async end(tokens) {
      await revoke(tokens);
      await revoke(tokens);
    },
  },
  { way: 'the user', by: 'user', end: endAtAccount },
  { way: 'the user, everywhere', by: 'user', end: () => logOutEverywhere(own) },
  {
    way: 'an operator',
    by: 'operator',
    async end() {
      const { access } = await logInBy(own, PAGE);
      const [grant] = await listGrants(own, access, '?user=user-1');
      await endByOperator(`/grants/${grant?.id}`);
    },
  },
  {
    way: 'an operator, who ends all of the user',
    by: 'operator',
    end: () => endByOperator('/grants?user=user-1'),
  },
  {
    way: 'a refresh token that was used again',
    by: 'reuse',
    async end(tokens) {
      own.clock.advance(31 * MINUTE_MS);
      await own.refresh(toTokens(tokens.client, await own.refresh(tokens)));
      own.clock.advance(2 * MINUTE_MS);
      await own.refresh(tokens);
    },
  },
])('§5.11 log: a login that ends is one line: by $way', async ({ by, end }) => {
  const tokens = await own.logIn();
  await end(tokens);
  const lines = own.gateway.log.filter(({ msg }) => msg === 'Logged out.');
  const clientName = expect.stringMatching(/./);
  const grant = expect.stringMatching(/^[\w-]{22}$/);
  const facts = { level: 'info', user: 'user-1', client: tokens.client.id, clientName, grant, by };
  expect(lines).toMatchObject([facts]);
  for (const secret of ['pst_', 'psr_', 'opaque-', 'refresh-']) {
    expect(JSON.stringify(lines)).not.toContain(secret);
  }
});
