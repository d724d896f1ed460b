// Who may log in, as the person, the client and the operator see it.
import { expect, test } from 'vitest';
import { useFresh } from '../../support/lifetimes.ts';
import { startOwnTokens, toTokens } from '../../support/oauth/own-tokens.ts';

const own = useFresh(() => startOwnTokens({ env: { LOGIN_ALLOWED_GROUPS: 'staff' } }));

test('§13.3, §5.11 who may not log in reads why on a page, and may choose another account or go back to the app', async () => {
  const client = await own.steps.register();
  const { cookie, asked } = await own.steps.approve(client);
  const { status, text } = await own.steps.callback(own.provider.logIn(asked), cookie);
  expect(status).toBe(403);
  expect(text).toContain('ada@example.com');
  expect(text).toContain('prompt=select_account');
  expect(text).toContain('error=access_denied');
  expect(own.gateway.log.some((line) => /LOGIN_ALLOWED_GROUPS/.test(JSON.stringify(line)))).toBe(
    true,
  );
});

test('§13.3, §5.11 who leaves the group is out at the next renewal, and nobody else is', async () => {
  const tokens = await own.logIn({ groups: ['staff'] });
  const bystander = await own.logIn({ sub: 'user-2', groups: ['staff'] });
  own.clock.advance(61 * 60_000);
  const still = toTokens(bystander.client, await own.refresh(bystander));
  own.provider.idToken = { groups: ['alumni'] };
  expect((await own.refresh(tokens)).json.error).toBe('invalid_grant');
  expect((await own.call(still.access)).status).toBe(200);
});
