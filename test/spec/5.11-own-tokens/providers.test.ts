// What each provider is used to, as far as the gateway has to cope with it. Its habits are those of test/support/providers,
// where each has its source.
import { describe, expect, test } from 'vitest';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import type { Tokens } from '../../support/oauth/own-tokens.ts';
import { EMULATED } from '../../support/providers/emulators.ts';
import type { Habits } from '../../support/providers/habits.ts';
import { ADA } from '../../support/providers/login-page.ts';
import { type LoginsAtProvider, startLoginsAt } from '../../support/providers/logins-at.ts';

const MINUTE_MS = 60_000;

async function startAt(name: string, env: Readonly<Record<string, string>> = {}) {
  return closeAfterTest(await startLoginsAt(findHabits(name), env));
}

function findHabits(name: string): Habits {
  const habits = EMULATED.get(name);
  if (habits === undefined) throw new Error(`There is no ${name}.`);
  return habits;
}

/** After that a refresh asks the provider whether the user still may. */
async function renew(own: LoginsAtProvider, tokens: Tokens) {
  own.clock.advance(61 * MINUTE_MS);
  const { status, json } = await own.refresh(tokens);
  return { status, error: json.error, refresh: json.refresh_token };
}

const sortScopes = (scope: string | null) => scope?.split(' ').sort();

const ALL_SCOPES = 'openid profile email offline_access';

interface Row {
  readonly name: string;
  /** What it is asked beside what every provider is. */
  readonly asked: Readonly<Record<string, string | null>>;
  readonly hasGroups: boolean;
  /** How a refresh is answered after one for which the provider's answer was lost. */
  readonly afterLoss: 200 | 400;
}

const NO_RESOURCE = { resource: null, audience: null };
const GITHUB_SCOPES = 'read:user user:email read:org';

const ROWS: readonly Row[] = [
  {
    name: 'google',
    asked: {
      ...NO_RESOURCE,
      scope: 'openid profile email',
      access_type: 'offline',
      prompt: 'consent',
    },
    hasGroups: false,
    afterLoss: 200,
  },
  {
    name: 'github',
    asked: { ...NO_RESOURCE, scope: GITHUB_SCOPES, nonce: null },
    hasGroups: true,
    afterLoss: 200,
  },
  {
    name: 'github-app',
    asked: { ...NO_RESOURCE, scope: GITHUB_SCOPES, nonce: null },
    hasGroups: true,
    afterLoss: 400,
  },
  {
    name: 'entra',
    asked: { ...NO_RESOURCE, scope: ALL_SCOPES },
    hasGroups: true,
    afterLoss: 200,
  },
  {
    name: 'okta',
    asked: { ...NO_RESOURCE, scope: ALL_SCOPES },
    hasGroups: false,
    afterLoss: 400,
  },
  {
    name: 'auth0',
    asked: { ...NO_RESOURCE, scope: ALL_SCOPES },
    hasGroups: false,
    afterLoss: 400,
  },
  {
    name: 'cognito',
    asked: { ...NO_RESOURCE, scope: 'openid profile email' },
    hasGroups: true,
    afterLoss: 200,
  },
  {
    name: 'slack',
    asked: { ...NO_RESOURCE, scope: 'openid profile email' },
    hasGroups: false,
    afterLoss: 200,
  },
  {
    name: 'keycloak',
    asked: { ...NO_RESOURCE, scope: ALL_SCOPES },
    hasGroups: true,
    afterLoss: 200,
  },
  {
    name: 'hydra',
    asked: { ...NO_RESOURCE, scope: ALL_SCOPES },
    hasGroups: false,
    afterLoss: 400,
  },
  {
    name: 'dex',
    asked: { ...NO_RESOURCE, scope: `${ALL_SCOPES} groups` },
    hasGroups: true,
    afterLoss: 400,
  },
];

describe.each(ROWS)(
  '$name',
  ({ name, asked: { scope = null, ...parameters }, hasGroups, afterLoss }) => {
    const own = useShared(() =>
      startLoginsAt(findHabits(name), {
        LOGIN_ALLOWED_EMAILS: '*@example.com',
        ...(hasGroups && { LOGIN_ALLOWED_GROUPS: 'developers' }),
      }),
    );

    test(`§5.11, §13.2 ${name} is asked for what it knows, and for nothing else, whatever the client asks for`, async () => {
      const { asked } = await own.steps.approve(await own.steps.register(), {
        scope: `${ALL_SCOPES} everything`,
        resource: 'https://gw.example/mcp',
      });
      expect(sortScopes(asked.searchParams.get('scope'))).toEqual(sortScopes(scope));
      for (const [parameter, value] of Object.entries(parameters)) {
        expect(asked.searchParams.get(parameter), parameter).toBe(value);
      }
      // And it takes no offence.
      expect(own.emulator.logIn(asked).code).toMatch(/./);
    });

    test(`§13.2 ${name}: the user has the claims that it says, wherever it says them`, async () => {
      const { access } = await own.logIn();
      const { message, headers } = statelessRequest('resources/read', { uri: 'user://profile' });
      const { json } = await own.gateway.request({
        method: 'POST',
        path: '/mcp',
        headers: { authorization: `Bearer ${access}`, ...headers },
        body: message,
      });
      const { sub, ...profile } = JSON.parse(json.result.contents[0].text);
      expect(sub).toMatch(/./);
      expect(profile).toEqual({
        name: ADA.name,
        email: ADA.email,
        ...(hasGroups && { groups: ADA.groups }),
      });
    });

    // A refresh token may have been used, and some hold that against one.
    test(`§5.11 renewal: where the answer of ${name} to one is lost, nobody is logged out, and the next is answered ${afterLoss}`, async () => {
      const tokens = await own.logIn();
      own.emulator.behave('lost');
      const during = await renew(own, tokens);
      expect(during.status).toBe(200);
      own.emulator.behave('ok');
      const after = await renew(own, { ...tokens, refresh: during.refresh });
      const error = afterLoss === 200 ? undefined : 'invalid_grant';
      expect([after.status, after.error]).toEqual([afterLoss, error]);
    });
  },
);

test.each(['google', 'keycloak', 'auth0'])(
  '§5.11 %s: the end of one login is told to it once the user has no other, as it would end them all',
  async (name) => {
    const own = await startAt(name);
    const [one, other] = [await own.logIn(), await own.logIn()];
    const revoke = ({ client, refresh }: Tokens) =>
      own.steps.post('/oauth/revoke', { client_id: client.id, token: refresh });
    await revoke(one);
    expect((await renew(own, other)).status).toBe(200);
    expect(own.emulator.revoked).toEqual([]);
    await revoke(other);
    await expect.poll(() => own.emulator.revoked).toHaveLength(1);
  },
);

test('§5.11 google: without prompt=consent the second login of a user has no refresh token, and lives for its time', async () => {
  const own = await startAt('google', { OAUTH_ADDED_PARAMETERS: 'access_type=offline' });
  await own.logIn();
  const second = await own.logIn();
  const renewed = await renew(own, second);
  expect([renewed.status, own.emulator.asked.refresh]).toEqual([200, 0]);
  own.clock.advance(8 * 60 * MINUTE_MS);
  expect(await own.refresh({ ...second, refresh: renewed.refresh })).toMatchObject({ status: 400 });
});

test.each([
  ['hd=example.com', 303],
  ['hd=example.org', 403],
] as const)(
  '§13.3 google: a login from example.com with LOGIN_ALLOWED_CLAIMS=%s is answered %i',
  async (allowed, status) => {
    const own = await startAt('google', { LOGIN_ALLOWED_CLAIMS: allowed });
    const { cookie, asked } = await own.steps.approve(await own.steps.register());
    const back = await own.steps.callback({ ...own.emulator.logIn(asked) }, cookie);
    expect(back.status).toBe(status);
  },
);

test.each([
  [true, 303],
  [false, 403],
])(
  '§13.3 entra: xms_edov stands for email_verified, which it never says: verified %s is answered %i',
  async (isEmailVerified, status) => {
    const own = await startAt('entra', { LOGIN_ALLOWED_EMAILS: '*@example.com' });
    const { cookie, asked } = await own.steps.approve(await own.steps.register());
    const back = own.emulator.logIn(asked, { ...ADA, isEmailVerified });
    expect((await own.steps.callback({ ...back }, cookie)).status).toBe(status);
  },
);

test('§13.2 entra: groups that are too many for a token are said to be missing, once', async () => {
  const own = await startAt('entra');
  own.emulator.person = { ...ADA, groups: Array.from({ length: 201 }, (_, index) => `g-${index}`) };
  await own.logIn();
  await own.logIn();
  const said = own.gateway.log.filter(({ msg }) => String(msg).includes('OIDC_GROUPS_OVERAGE'));
  expect(said).toHaveLength(1);
});

test('§5.2 entra: the address of version 1 names another issuer, and nobody logs in by it', async () => {
  const { emulator } = await startAt('entra');
  const own = closeAfterTest(
    await startLoginsAt(emulator.habits, { OIDC_ISSUER: emulator.issuer.url.replace('/v2.0', '') }),
  );
  const question = await own.steps.ask(await own.steps.register());
  expect((await own.steps.decide(question)).status).toBeGreaterThanOrEqual(400);
  expect(JSON.stringify(own.gateway.log)).toContain('https://sts.windows.net/');
});

test.each(['okta', 'hydra'])(
  '§4.7 %s takes the secret by Basic alone: with OAUTH_CLIENT_AUTH=post nobody logs in, and the log says why',
  async (name) => {
    const own = await startAt(name, { OAUTH_CLIENT_AUTH: 'post' });
    await expect(own.logIn()).rejects.toThrow();
    expect(JSON.stringify(own.gateway.log)).toContain('OAUTH_CLIENT_AUTH');
  },
);
