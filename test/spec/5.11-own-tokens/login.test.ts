// A login where the gateway issues tokens of its own.
import { expect, test } from 'vitest';
import { useShared } from '../../support/lifetimes.ts';
import { startOwnTokens } from '../../support/oauth/own-tokens.ts';

const own = useShared(() => startOwnTokens());

test('§5.11 login: a provider with opaque access tokens is enough, and the client calls with a token of the gateway', async () => {
  const { access, refresh, expiresIn } = await own.logIn();
  expect(access).toMatch(/^pst_[\w-]+$/);
  expect(refresh).toMatch(/^psr_[\w-]+$/);
  expect(expiresIn).toBe(3600);
  expect((await own.call(access)).status).toBe(200);
});
