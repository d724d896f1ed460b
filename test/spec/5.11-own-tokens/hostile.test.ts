// What a hostile review of tokens of the gateway's own found.
import { expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/define.ts';
import { useFresh } from '../../support/lifetimes.ts';
import { startOwnTokens, toTokens } from '../../support/oauth/own-tokens.ts';

const HOUR_MS = 3_600_000;

const catalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'show_token',
      description: 'The token of the provider, and the scopes of the call.',
      inputSchema: { type: 'object', properties: {} },
      async run(_args, context) {
        const text = `${await context.providerToken()} ${context.user?.claims.scope}`;
        return { content: [{ type: 'text', text }] };
      },
    }),
  ],
});

const own = useFresh(() => startOwnTokens({ deps: { catalog } }));

/** The token of the provider that a tool gets, and the scopes. */
async function showToken(access: string): Promise<string> {
  const opened = await own.call(access);
  const { json } = await own.gateway.rpc(
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'show_token', arguments: {} } },
    { token: access, session: String(opened.headers['mcp-session-id']) },
  );
  return json.result.content[0].text;
}

test('§5.11 hostile: an access token with fewer scopes keeps them, whatever is refreshed later', async () => {
  const first = await own.logIn();
  const narrow = toTokens(first.client, await own.refresh(first, { scope: 'openid' }));
  own.clock.advance(40 * 60_000);
  const wide = toTokens(first.client, await own.refresh(narrow));
  expect(await showToken(narrow.access)).toMatch(/ openid$/);
  expect(await showToken(wide.access)).toMatch(/ openid profile/);
});

test('§5.11 hostile: a replaced token brought for other scopes gets none, and ends nothing', async () => {
  const first = await own.logIn();
  own.clock.advance(31 * 60_000);
  const second = toTokens(first.client, await own.refresh(first));
  const { status, json } = await own.refresh(first, { scope: 'openid' });
  expect([status, json.error]).toEqual([400, 'invalid_grant']);
  expect((await own.call(second.access)).status).toBe(200);
});

test('§5.11 hostile: an answer for somebody else is no renewal, and its tokens reach nobody', async () => {
  const first = await own.logIn();
  expect(await showToken(first.access)).toMatch(/^opaque-/);
  own.provider.idToken = { sub: 'user-2' };
  own.clock.advance(HOUR_MS + 1000);
  const second = toTokens(first.client, await own.refresh(first));
  expect(await showToken(second.access)).toMatch(/^undefined/);
});

test('§5.11 hostile: /account shows nothing of what stands in its address', async () => {
  const text = 'Your access was suspended. Call +1 555';
  const query = new URLSearchParams({ error: 'x', error_description: text });
  expect((await own.steps.get(`/account?${query}`)).text).not.toContain('suspended');
});

test('§5.11 hostile: who sits at the browser counts as asked where the provider says so', async () => {
  await own.logIn();
  await own.logIn();
  const begun = await own.steps.get('/account');
  const cookie = String(begun.headers['set-cookie']).split(';')[0] ?? '';
  const asked = new URL(begun.headers.location ?? '');
  const back = await own.steps.callback(own.provider.logIn(asked, { auth_time: 1 }), cookie);
  const session = `${cookie}; ${String(back.headers['set-cookie']).split(';')[0]}`;
  const page = (await own.steps.get('/account?all=1', session)).text;
  expect(page).toContain('Log out everywhere');
  expect(page).not.toContain('everywhere now');
});

test('§5.11 hostile: a login ends when OAUTH_GRANT_MAX_SECONDS says, however often it is refreshed', async () => {
  const { logIn, clock, refresh, call, close } = await startOwnTokens({
    env: { OAUTH_GRANT_MAX_SECONDS: '1800' },
  });
  const tokens = await logIn();
  expect(tokens.expiresIn).toBe(1800);
  clock.advance(1_799_000);
  const last = toTokens(tokens.client, await refresh(tokens, { scope: 'openid' }));
  expect(last.expiresIn).toBeLessThanOrEqual(1);
  clock.advance(1000);
  expect((await refresh(last)).json.error).toBe('invalid_grant');
  expect((await call(last.access)).status).toBe(401);
  await close();
});
