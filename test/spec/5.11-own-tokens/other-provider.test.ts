// After a change of OIDC_ISSUER: what the provider before gave for a login is sent to no other.
import { expect, test } from 'vitest';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startOwnTokens } from '../../support/oauth/own-tokens.ts';
import { startOpaqueProvider } from '../../support/providers/opaque-provider.ts';

test.each([
  { when: 'at once', minutes: 0 },
  { when: 'when it would be renewed', minutes: 61 },
])(
  '§5.11, RFC 9700 §4.4: a login at the provider before ends at a refresh, $when, and the new one is told nothing of it',
  async ({ minutes }) => {
    const own = closeAfterTest(await startOwnTokens({ isReplicated: true }));
    const tokens = await own.logIn();
    const provider = closeAfterTest(await startOpaqueProvider({ clock: own.clock }));
    const after = await own.open(provider.env);
    own.clock.advance(minutes * 60_000);
    const refused = await after.refresh(tokens);
    expect([refused.status, refused.json.error]).toEqual([400, 'invalid_grant']);
    expect(provider.asked).toMatchObject({ refresh: 0, revoke: 0 });
  },
);

test('§5.11, RFC 9700 §4.4: to revoke such a login sends its tokens to no other provider', async () => {
  const own = closeAfterTest(await startOwnTokens({ isReplicated: true }));
  const tokens = await own.logIn();
  const provider = closeAfterTest(await startOpaqueProvider({ clock: own.clock }));
  const after = await own.open(provider.env);
  const form = { token: tokens.refresh, client_id: tokens.client.id };
  expect((await after.steps.post('/oauth/revoke', form)).status).toBe(200);
  expect(provider.asked.revoke).toBe(0);
  expect((await own.call(tokens.access)).status).toBe(401);
});
