// §4.11: logins by the gateway's own tokens are counted.
import { expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import { startOwnTokens, toTokens } from '../../support/oauth/own-tokens.ts';

const MINUTE_MS = 60_000;

const own = useFresh(() => startOwnTokens({ env: { METRICS_ENABLED: 'true' } }));

const countOf = async (series: string) => {
  const { text } = await own.gateway.request({ path: '/metrics' });
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.split(' ')[1] ?? 0,
  );
};

test('§4.11 metrics: grants that were issued, refreshed and ended, each once', async () => {
  const first = await own.logIn();
  await own.logIn({ sub: 'user-2' });
  await own.refresh(first);
  own.clock.advance(31 * MINUTE_MS);
  const second = toTokens(first.client, await own.refresh(first));
  const form = { token: second.access, client_id: first.client.id };
  await own.steps.post('/oauth/revoke', form);
  await own.steps.post('/oauth/revoke', form);
  expect(await countOf('oauth_grants_total{status="issued"}')).toBe(2);
  expect(await countOf('oauth_grants_total{status="refreshed"}')).toBe(1);
  expect(await countOf('oauth_grants_total{status="ended"}')).toBe(1);
});

test('§4.11 metrics: renewals at the provider, by how they ended', async () => {
  const ada = await own.logIn({ sub: 'ada' });
  const bob = await own.logIn({ sub: 'bob' });
  const carol = await own.logIn({ sub: 'carol' });
  own.clock.advance(61 * MINUTE_MS);
  await own.refresh(ada);
  own.provider.disable('bob');
  await own.refresh(bob);
  own.provider.behave('down');
  await own.refresh(carol);
  for (const status of ['renewed', 'ended', 'failed']) {
    expect(await countOf(`oauth_grant_renewals_total{status="${status}"}`)).toBe(1);
  }
  expect(await countOf('oauth_grants_total{status="ended"}')).toBe(1);
});
