// A login where the gateway issues tokens of its own.
import { expect, test } from 'vitest';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startOwnTokens, toTokens } from '../../support/oauth/own-tokens.ts';

const own = useShared(() => startOwnTokens());

test('§5.11 login: a provider with opaque access tokens is enough, and the client calls with a token of the gateway', async () => {
  const { access, refresh, expiresIn } = await own.logIn();
  expect(access).toMatch(/^pst_[\w-]+$/);
  expect(refresh).toMatch(/^psr_[\w-]+$/);
  expect(expiresIn).toBe(3600);
  expect((await own.call(access)).status).toBe(200);
});

test.each([undefined, 'openid', 'openid profile', 'email openid', 'nothing-of-this'])(
  '§4.6, §5.11 login: of scope=%s a client is given what the consent page showed, also after a refresh, whatever the provider is asked for',
  async (scope) => {
    const client = await own.steps.register();
    const page = (await own.steps.authorize(client, { scope })).text;
    const [, permissions = ''] = /Requested permissions<\/dt>\s*<dd>(.*?)<\/dd>/s.exec(page) ?? [];
    const shown = [...permissions.matchAll(/<code>([^<]+)<\/code>/g)].map(([, name]) => name);
    const { cookie, asked } = await own.steps.approve(client, { scope });
    expect(asked.searchParams.get('scope')?.split(' ')).toEqual(
      expect.arrayContaining(['email', 'openid', 'profile']),
    );
    const back = await own.steps.callback(own.provider.logIn(asked), cookie);
    const answer = await own.steps.redeem(client, new URL(back.headers.location ?? ''));
    const tokens = toTokens(client, answer);
    expect(tokens.scope?.split(' ')).toEqual(shown);
    expect(toTokens(client, await own.refresh(tokens)).scope).toBe(tokens.scope);
    if (shown.length < 3) {
      const wider = await own.refresh(tokens, { scope: 'openid profile email' });
      expect(wider.json.error).toBe('invalid_scope');
    }
  },
);

test('§4.6, §5.11 login: of more scopes than a grant has, a client is given those that the consent page showed, and its user logs in', async () => {
  const { steps, provider } = closeAfterTest(
    await startOwnTokens({ env: { OAUTH_ALLOWED_SCOPES: '*', OAUTH_ADDED_SCOPES: 'extra' } }),
  );
  const names = Array.from({ length: 40 }, (_, index) => `s${index}`);
  // However often it is asked for, it is one.
  const scope = `${'s0 '.repeat(40)}${names.join(' ')}`;
  const client = await steps.register();
  const page = (await steps.authorize(client, { scope })).text;
  const [, permissions = ''] = /Requested permissions<\/dt>\s*<dd>(.*?)<\/dd>/s.exec(page) ?? [];
  const shown = [...permissions.matchAll(/<code>([^<]+)<\/code>/g)].map(([, name]) => name);
  expect(shown).toEqual([...names.slice(0, 31), 'extra']);
  const { cookie, asked } = await steps.approve(client, { scope });
  expect(asked.searchParams.get('scope')?.split(' ')).not.toContain('s32');
  const back = await steps.callback(provider.logIn(asked), cookie);
  const answer = await steps.redeem(client, new URL(back.headers.location ?? ''));
  expect(toTokens(client, answer).scope?.split(' ')).toEqual(shown);
});
