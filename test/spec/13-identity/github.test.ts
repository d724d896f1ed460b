// OIDC_PROVIDER=github: no discovery, no key set, no ID token; GitHub's API says who logs in.
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { closeAfterTest, useFresh } from '../../support/lifetimes.ts';
import { readCookie } from '../../support/oauth/account-steps.ts';
import { answerJson, renew, startEmulatedLogins } from '../../support/oauth/emulated-logins.ts';
import { toTokens } from '../../support/oauth/own-tokens.ts';
import { GITHUB, GITHUB_APP, toGitHubId } from '../../support/providers/github.ts';
import { ADA } from '../../support/providers/login-page.ts';

const MINUTE_MS = 60_000;
describe('an OAuth app', () => {
  const own = useFresh(() => startEmulatedLogins(GITHUB));

  test('§13.2 github: number, name, verified address, organizations and teams are the claims', async () => {
    own.person = { ...ADA, sub: '583231', groups: ['acme', 'acme/devs'] };
    const { access } = await own.logIn();
    expect(await own.readProfile(access)).toEqual({
      sub: '583231',
      name: 'Ada',
      email: 'ada@example.com',
      groups: ['acme', 'acme/devs'],
    });
  });

  test('§13.2 github: it is asked by its own scopes, with PKCE and without a nonce', async () => {
    const client = await own.steps.register();
    const { asked } = await own.steps.approve(client, { scope: 'openid email offline_access' });
    expect(asked.href).toContain(`${own.emulator.origin}/login/oauth/authorize?`);
    expect(asked.searchParams.get('scope')).toBe('read:user user:email read:org');
    expect(asked.searchParams.get('code_challenge_method')).toBe('S256');
    expect(asked.searchParams.has('nonce')).toBe(false);
  });

  test('§13.2 github: a client is granted what it asked for, and refreshes with it', async () => {
    const tokens = await own.logIn({}, { scope: 'openid email' });
    expect(tokens.scope?.split(' ')).toEqual(expect.arrayContaining(['openid', 'email']));
    expect((await own.refresh(tokens, { scope: 'openid email' })).status).toBe(200);
  });

  test('§13.2 github: lists are read over all their pages', async () => {
    const orgs = Array.from({ length: 230 }, (_, at) => `org-${at}`);
    own.person = { ...ADA, groups: orgs };
    const { access } = await own.logIn();
    expect(await own.readProfile(access)).toMatchObject({ groups: orgs });
  });

  test('§13.2 github: a page at another host is not asked: the access token goes nowhere else', async () => {
    own.change = ({ pathname, searchParams }) =>
      pathname.endsWith('/user/orgs') && !searchParams.has('page')
        ? answerJson(200, [{ login: 'acme' }], {
            link: '<http://127.0.0.1:9/api/v3/user/orgs?page=2>; rel="next"',
          })
        : undefined;
    const { access } = await own.logIn();
    expect(own.requests.some((one) => one.includes(':9/'))).toBe(false);
    expect(await own.readProfile(access)).toMatchObject({
      groups: ['acme', 'developers/compilers'],
    });
  });

  test('§13.2 github: pages without end are left after the tenth', async () => {
    own.change = ({ href, pathname }) =>
      pathname.endsWith('/user/teams')
        ? answerJson(200, [], { link: `<${href}>; rel="next"` })
        : undefined;
    await own.logIn();
    expect(own.requests.filter((one) => one.includes('/user/teams'))).toHaveLength(10);
  });

  test('RFC 9207 §2.4 github: it may name itself as its own metadata does, and no other', async () => {
    const logIn = async (iss: string) => {
      const { cookie, asked } = await own.steps.approve(await own.steps.register());
      return own.steps.callback({ ...own.emulator.logIn(asked), iss }, cookie);
    };
    expect((await logIn(`${own.emulator.origin}/login/oauth`)).status).toBe(303);
    expect((await logIn('https://other.example')).status).toBe(400);
  });

  test.each([
    { error: 'bad_verification_code', said: /refused the login.*bad_verification_code/ },
    { error: 'incorrect_client_credentials', said: /rejected the gateway's own client/ },
    {
      error: 'redirect_uri_mismatch',
      page: /error is &quot;redirect_uri_mismatch&quot;/,
    },
  ])('§13.2 github: $error with status 200 is an error', async ({ error, said, page }) => {
    own.change = ({ pathname }) =>
      pathname.endsWith('/access_token')
        ? answerJson(200, { error, error_description: 'Something about it.' })
        : undefined;
    const { cookie, asked } = await own.steps.approve(await own.steps.register());
    const { status, headers, text } = await own.steps.callback(
      { ...own.emulator.logIn(asked) },
      cookie,
    );
    if (page !== undefined) {
      expect(status).toBe(502);
      expect(text).toMatch(page);
      return;
    }
    const back = new URL(headers.location ?? '').searchParams;
    expect(back.get('error')).toBe('server_error');
    expect(back.get('error_description')).toMatch(said ?? /never/);
  });

  test('§3, §5.11 github: the login outlives OAUTH_GRANT_UNRENEWED_SECONDS, as its token asks again each hour', async () => {
    let tokens = await own.logIn();
    for (let hour = 0; hour < 10; hour += 1) {
      own.clock.advance(61 * MINUTE_MS);
      tokens = await renew(own, tokens);
    }
    own.person = { ...own.person, name: 'Countess' };
    expect((await own.call(tokens.access)).status).toBe(200);
    expect(own.requests.filter((one) => one.endsWith('/api/v3/user'))).toHaveLength(11);
  });

  test('§3, §5.11 github: 401 ends the login at the next renewal, and nobody else’s', async () => {
    const ada = await own.logIn();
    own.person = { ...ADA, sub: 'bob', name: 'Bob' };
    const bob = await own.logIn();
    own.emulator.disable(ADA.sub);
    own.clock.advance(61 * MINUTE_MS);
    expect((await own.refresh(ada)).json.error).toBe('invalid_grant');
    expect((await own.refresh(bob)).status).toBe(200);
  });

  test.each<{ what: string; status: number; body?: object; headers?: Record<string, string> }>([
    { what: 'a rate limit', status: 403, headers: { 'x-ratelimit-remaining': '0' } },
    { what: 'a secondary rate limit', status: 403, body: { message: 'secondary rate limit' } },
    { what: 'a refusal without a reason', status: 403 },
    { what: '429', status: 429 },
    { what: '502', status: 502 },
    { what: 'no JSON object', status: 200, body: [] },
  ])('§3, §5.11 github: $what deletes nothing', async ({ status, body = {}, headers = {} }) => {
    let tokens = await own.logIn();
    own.change = ({ pathname }) =>
      pathname.includes('/api/v3/') ? answerJson(status, body, headers) : undefined;
    own.clock.advance(61 * MINUTE_MS);
    tokens = await renew(own, tokens);
    expect((await own.call(tokens.access)).status).toBe(200);
    own.clock.advance(62 * MINUTE_MS);
    expect((await own.refresh(tokens)).status).toBe(503);
    own.change = undefined;
    own.clock.advance(2 * MINUTE_MS);
    tokens = await renew(own, tokens);
    expect(await own.readProfile(tokens.access)).toMatchObject({ email: 'ada@example.com' });
  });

  test('§13.2 github: a token that turns out to be somebody else’s renews nothing', async () => {
    const tokens = await own.logIn();
    own.change = ({ pathname }) =>
      pathname.endsWith('/api/v3/user') ? answerJson(200, { id: 4711, login: 'eve' }) : undefined;
    own.clock.advance(61 * MINUTE_MS);
    const next = await renew(own, tokens);
    expect(await own.readProfile(next.access)).toMatchObject({ sub: String(toGitHubId(ADA.sub)) });
  });

  test('§5.11 github: where a login ends here, its token is revoked there', async () => {
    const { client, refresh } = await own.logIn();
    await own.steps.post('/oauth/revoke', { token: refresh, client_id: client.id });
    await expect.poll(() => own.emulator.revoked).toHaveLength(1);
    expect(own.requests).toContain('DELETE /api/v3/applications/gateway-at-provider/token');
  });

  test('§5.11 github: the token of a login at /account, which nobody keeps, is revoked there, and no other', async () => {
    const tokens = await own.logIn();
    const begun = await own.steps.get('/account');
    const back = own.emulator.logIn(new URL(begun.headers.location ?? ''));
    expect(
      (await own.steps.callback({ ...back }, readCookie(begun.headers['set-cookie']))).status,
    ).toBe(303);
    await expect.poll(() => own.emulator.revoked).toHaveLength(1);
    own.clock.advance(61 * MINUTE_MS);
    expect((await own.refresh(tokens)).status).toBe(200);
  });

  test('§4.3 github: the gateway is ready, and its metadata names no key set', async () => {
    expect((await own.gateway.request({ path: '/health/ready' })).status).toBe(200);
    const { status, json } = await own.gateway.request({
      path: '/.well-known/oauth-authorization-server',
    });
    expect([status, json.jwks_uri]).toEqual([200, undefined]);
  });

  test('§7.1 github: a token of GitHub lets nobody in', async () => {
    expect((await own.call(`gho_${'a'.repeat(36)}`)).json.error.data.reason).toBe('invalid_token');
  });

  test('§13.2 github: where no setting needs groups, their want is told once', async () => {
    own.change = ({ pathname }) =>
      /user\/(orgs|teams|emails)$/.test(pathname) ? answerJson(404, {}) : undefined;
    const { access } = await own.logIn();
    await own.logIn();
    expect(await own.readProfile(access)).toEqual({
      sub: expect.any(String),
      name: 'Ada',
      groups: [],
    });
    const told = own.gateway.log.filter(({ msg }) => /does not let the app read/.test(msg));
    expect(told).toHaveLength(3);
  });
});

describe('by groups', () => {
  const team = useFresh(() => startEmulatedLogins(GITHUB, { LOGIN_ALLOWED_GROUPS: 'acme/devs' }));

  test('§13.3 github: LOGIN_ALLOWED_GROUPS names teams, and is asked again at each renewal', async () => {
    const { cookie, asked } = await team.steps.approve(await team.steps.register());
    expect((await team.steps.callback({ ...team.emulator.logIn(asked) }, cookie)).status).toBe(403);
    team.person = { ...ADA, groups: ['acme', 'acme/devs'] };
    const tokens = await team.logIn();
    team.change = ({ pathname }) =>
      pathname.endsWith('/user/teams') ? answerJson(200, []) : undefined;
    team.clock.advance(61 * MINUTE_MS);
    expect((await team.refresh(tokens)).json.error).toBe('invalid_grant');
  });

  test('§13.3 github: without the scope nobody knows the groups, and nobody gets in', async () => {
    team.change = ({ pathname }) =>
      pathname.endsWith('/user/orgs')
        ? answerJson(403, { message: 'You need read:org' })
        : undefined;
    const { cookie, asked } = await team.steps.approve(await team.steps.register());
    const { headers } = await team.steps.callback({ ...team.emulator.logIn(asked) }, cookie);
    const said = new URL(headers.location ?? '').searchParams.get('error_description');
    expect(said).toContain('The information about the user (/user/orgs)');
    expect(JSON.stringify(team.gateway.log)).toContain('read:org');
  });
});

test.each([
  { allowed: 'groups=acme', path: '/user/orgs' },
  { allowed: 'groups=acme/devs', path: '/user/teams' },
  { allowed: 'email_verified=true', path: '/user/emails' },
])(
  '§13.2, §13.3 github: with LOGIN_ALLOWED_CLAIMS=$allowed, an app that may read $path no more signs nobody out',
  async ({ allowed, path }) => {
    const own = closeAfterTest(
      await startEmulatedLogins(GITHUB, { LOGIN_ALLOWED_CLAIMS: allowed }),
    );
    own.person = { ...ADA, groups: ['acme', 'acme/devs'] };
    const tokens = await own.logIn();
    own.change = ({ pathname }) => (pathname.endsWith(path) ? answerJson(403, {}) : undefined);
    own.clock.advance(61 * MINUTE_MS);
    expect((await own.refresh(tokens)).status).toBe(200);
  },
);

describe('a GitHub App', () => {
  const app = useFresh(() => startEmulatedLogins(GITHUB_APP));

  test('§5.11 github app: its tokens expire and are refreshed, each refresh token once', async () => {
    let tokens = await app.logIn();
    for (let hour = 0; hour < 10; hour += 1) {
      app.clock.advance(61 * MINUTE_MS);
      tokens = await renew(app, tokens);
    }
    expect(app.emulator.asked.refresh).toBe(10);
    app.emulator.disable(ADA.sub);
    app.clock.advance(61 * MINUTE_MS);
    expect((await app.refresh(tokens)).json.error).toBe('invalid_grant');
  });

  test('§5.11 github app: a refused client at a renewal logs nobody out', async () => {
    const tokens = await app.logIn();
    app.emulator.behave('refuse');
    app.clock.advance(61 * MINUTE_MS);
    const next = toTokens(tokens.client, await app.refresh(tokens));
    app.emulator.behave('ok');
    app.clock.advance(61 * MINUTE_MS);
    expect((await app.refresh(next)).status).toBe(200);
  });
});

const BROKER = {
  BASE_URL: 'https://mcp.example.com',
  OIDC_PROVIDER: 'github',
  OAUTH_MODE: 'broker',
  OAUTH_CLIENT_ID: 'Iv1.1',
  OAUTH_CLIENT_SECRET: 'secret',
};

test('§13.2 github: five lines are enough, and OIDC_ISSUER is not one of them', () => {
  const { oauth } = loadConfig(BROKER);
  expect(oauth.provider?.issuer).toBe('https://github.com');
  const enterprise = loadConfig({ ...BROKER, GITHUB_URL: 'https://github.example.com/' });
  expect(enterprise.oauth.provider?.issuer).toBe('https://github.example.com');
});

test.each<{ env: Record<string, string>; said: RegExp }>([
  {
    env: { OIDC_ISSUER: 'https://gitlab.com' },
    said: /^OIDC_ISSUER: .* whose issuer is GITHUB_URL/,
  },
  { env: { OAUTH_MODE: 'proxy' }, said: /^OAUTH_MODE=proxy cannot work with OIDC_PROVIDER=github/ },
  { env: { OAUTH_MODE: '' }, said: /^OAUTH_MODE \(proxy\) cannot work with OIDC_PROVIDER=github/ },
  {
    env: { OAUTH_ACCEPT_PROVIDER_TOKENS: 'true', OIDC_AUDIENCE: 'x' },
    said: /^OAUTH_ACCEPT_PROVIDER_TOKENS=true cannot work with/,
  },
  { env: { OAUTH_CLIENT_SECRET: '' }, said: /^OAUTH_CLIENT_SECRET is missing/ },
  { env: { OIDC_JWKS_URL: 'https://github.com/keys' }, said: /^OIDC_JWKS_URL has no effect/ },
  {
    env: { OAUTH_REVOCATION_URL: 'https://github.com/x' },
    said: /^OAUTH_REVOCATION_URL has no effect/,
  },
  { env: { OIDC_GROUPS_CLAIM: 'teams' }, said: /^OIDC_GROUPS_CLAIM has no effect/ },
  { env: { ID_JAG: 'true' }, said: /^ID_JAG=true cannot work with only OIDC_PROVIDER=github/ },
  { env: { GITHUB_URL: 'http://github.example.com' }, said: /^GITHUB_URL: .*It must be https/ },
  { env: { GITHUB_URL: 'https://example.com/github' }, said: /^GITHUB_URL: .*without a path/ },
  {
    env: {
      OIDC_PROVIDER: '',
      OIDC_ISSUER: 'https://id.example',
      GITHUB_URL: 'https://github.example.com',
    },
    said: /^GITHUB_URL has no effect without OIDC_PROVIDER=github/,
  },
])('§13.2 github: $env stops the start, and the error names the variable', ({ env, said }) => {
  expect(() => loadConfig({ ...BROKER, ...env })).toThrow(said);
});
