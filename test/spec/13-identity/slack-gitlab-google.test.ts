// What Slack, GitLab and Google say of people, each in its way.
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { useFresh } from '../../support/lifetimes.ts';
import {
  answerJson,
  type EmulatedLogins,
  renew,
  startEmulatedLogins,
} from '../../support/oauth/emulated-logins.ts';
import { GITLAB } from '../../support/providers/gitlab.ts';
import { GOOGLE } from '../../support/providers/google.ts';
import { ADA } from '../../support/providers/login-page.ts';
import { SLACK } from '../../support/providers/slack.ts';

const MINUTE_MS = 60_000;

async function tryLogIn(own: EmulatedLogins) {
  const { cookie, asked } = await own.steps.approve(await own.steps.register());
  return own.steps.callback({ ...own.emulator.logIn(asked, own.person) }, cookie);
}

const TEAM = 'https://slack.com/team_id';

describe('Slack', () => {
  const slack = useFresh(() =>
    startEmulatedLogins(SLACK, { LOGIN_ALLOWED_CLAIMS: `${TEAM}=T0LAB` }),
  );

  test('§13.3 slack: LOGIN_ALLOWED_CLAIMS names the workspace', async () => {
    const { access } = await slack.logIn();
    expect(await slack.readProfile(access)).toMatchObject({ sub: 'user-1', name: 'Ada' });
  });

  test('§13.2 slack: it is asked for the three scopes that it knows, whatever clients ask for', async () => {
    const client = await slack.steps.register();
    const { asked } = await slack.steps.approve(client, { scope: 'openid email offline_access' });
    expect(asked.searchParams.get('scope')).toBe('openid profile email');
  });

  test.each([
    { error: 'invalid_code', said: /refused the login.*invalid_code/ },
    { error: 'bad_client_secret', said: /rejected the gateway's own client/ },
  ])('§13.2 slack: ok: false with $error and status 200 is an error', async ({ error, said }) => {
    slack.change = ({ pathname }) =>
      pathname.endsWith('connect.token') ? answerJson(200, { ok: false, error }) : undefined;
    const back = new URL((await tryLogIn(slack)).headers.location ?? '').searchParams;
    expect(back.get('error_description')).toMatch(said);
  });

  test.each(['token_revoked', 'account_inactive', 'invalid_auth'])(
    '§3, §5.11 slack: %s ends the login at the next renewal',
    async (error) => {
      const tokens = await slack.logIn();
      slack.change = ({ pathname }) =>
        pathname.endsWith('userInfo') ? answerJson(200, { ok: false, error }) : undefined;
      slack.clock.advance(61 * MINUTE_MS);
      expect((await slack.refresh(tokens)).json.error).toBe('invalid_grant');
    },
  );

  test.each(['ratelimited', 'internal_error', 'no_idea'])(
    '§3, §5.11 slack: %s at a renewal deletes nothing',
    async (error) => {
      const tokens = await slack.logIn();
      slack.change = ({ pathname }) =>
        pathname.endsWith('userInfo') ? answerJson(200, { ok: false, error }) : undefined;
      slack.clock.advance(61 * MINUTE_MS);
      const next = await renew(slack, tokens);
      slack.change = undefined;
      slack.clock.advance(61 * MINUTE_MS);
      expect((await slack.refresh(next)).status).toBe(200);
    },
  );

  test('§3, §5.11 slack: the claims of the ID token stay, and those of userinfo are taken anew', async () => {
    let tokens = await slack.logIn();
    slack.change = ({ pathname }) =>
      pathname.endsWith('userInfo')
        ? answerJson(200, { ok: true, sub: 'user-1', name: 'Countess' })
        : undefined;
    slack.clock.advance(61 * MINUTE_MS);
    tokens = await renew(slack, tokens);
    expect(await slack.readProfile(tokens.access)).toMatchObject({
      name: 'Countess',
      email: 'ada@example.com',
    });
  });
});

describe('another workspace', () => {
  const elsewhere = useFresh(() =>
    startEmulatedLogins(SLACK, { LOGIN_ALLOWED_CLAIMS: `${TEAM}=T0OTHER` }),
  );

  test('§13.3 slack: who is of another workspace is told so', async () => {
    expect((await tryLogIn(elsewhere)).status).toBe(403);
  });
});

describe('GitLab', () => {
  const gitlab = useFresh(() => startEmulatedLogins(GITLAB, { LOGIN_ALLOWED_GROUPS: 'acme/devs' }));

  test('§13.2 gitlab: groups are those of userinfo, subgroups with their whole path', async () => {
    expect((await tryLogIn(gitlab)).status).toBe(403);
    gitlab.person = { ...ADA, groups: ['acme', 'acme/devs'] };
    const tokens = await gitlab.logIn();
    expect(await gitlab.readProfile(tokens.access)).toMatchObject({
      groups: ['acme', 'acme/devs'],
    });
    gitlab.clock.advance(61 * MINUTE_MS);
    await renew(gitlab, tokens);
    expect(gitlab.emulator.asked.refresh).toBe(1);
  });
});

describe('GitLab, by another claim', () => {
  const direct = useFresh(() =>
    startEmulatedLogins(GITLAB, { OIDC_GROUPS_CLAIM: 'groups_direct' }),
  );

  test('§13.2 gitlab: OIDC_GROUPS_CLAIM=groups_direct takes those of the ID token', async () => {
    direct.person = { ...ADA, groups: ['acme', 'acme/devs'] };
    const { access } = await direct.logIn();
    expect(await direct.readProfile(access)).toMatchObject({ groups: ['acme'] });
  });
});

describe('Google', () => {
  const google = useFresh(() =>
    startEmulatedLogins(GOOGLE, { LOGIN_ALLOWED_CLAIMS: 'hd=example.com,hd=example.org' }),
  );

  test.each([
    { email: 'ada@example.com', status: 303 },
    { email: 'ada@example.org', status: 303 },
    { email: 'ada@gmail.com', status: 403 },
    { email: 'ada@example.net', status: 403 },
  ])('§13.3 google: by hd, $email gets $status', async ({ email, status }) => {
    google.person = { ...ADA, email };
    expect((await tryLogIn(google)).status).toBe(status);
  });

  test('§13.2 google: offline_access, which it refuses, is not sent on; the client is granted it', async () => {
    const tokens = await google.logIn({}, { scope: 'openid email offline_access' });
    expect(tokens.scope).toContain('offline_access');
    google.clock.advance(61 * MINUTE_MS);
    await renew(google, tokens);
    expect(google.emulator.asked.refresh).toBe(1);
  });
});

test.each(['slack', 'gitlab'])(
  '§5.11 %s: only with tokens of the gateway’s own, and the start-up error says why',
  (name) => {
    const env = {
      BASE_URL: 'https://mcp.example.com',
      OIDC_PROVIDER: name,
      OIDC_ISSUER: `https://${name}.com`,
      OAUTH_CLIENT_ID: 'c',
    };
    const broker = { ...env, OAUTH_MODE: 'broker' };
    expect(() => loadConfig(broker)).not.toThrow();
    expect(() => loadConfig(env)).toThrow(
      /^OAUTH_MODE \(proxy\) cannot work with .* ID tokens are valid for/,
    );
    const accepting = { OAUTH_ACCEPT_PROVIDER_TOKENS: 'true', OIDC_AUDIENCE: 'x' };
    expect(() => loadConfig({ ...broker, ...accepting })).toThrow(
      /^OAUTH_ACCEPT_PROVIDER_TOKENS=true cannot work with .*access tokens are opaque/,
    );
  },
);
