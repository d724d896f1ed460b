import { describe, expect, test } from 'vitest';
import { checkConfig } from '../../../src/config/check-config.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import { createFindLoginRefusal } from '../../../src/logins/identity/login-policy.ts';

type Claims = Readonly<Record<string, unknown>>;
type Env = Readonly<Record<string, string>>;

const BROKER: Env = {
  BASE_URL: 'https://gw.example.com',
  OIDC_ISSUER: 'https://id.example.com',
  OAUTH_MODE: 'broker',
  OAUTH_CLIENT_ID: 'gateway',
};
const GOOGLE: Env = { OIDC_PROVIDER: 'google', OIDC_ISSUER: 'https://accounts.google.com' };

function readIdentityConfig(env: Env) {
  const { oauth } = loadConfig({ ...BROKER, ...env });
  if (oauth.mode !== 'broker') throw new Error('it is broker mode');
  return oauth.identity;
}

function refusalOf(env: Env, claims: Claims) {
  const find = createFindLoginRefusal(readIdentityConfig(env), 'Acme <Tools>');
  return find({ user: { issuer: 'https://id.example.com', sub: 'user-1' }, claims });
}

/** The text of the page for the person. */
const readPage = (refusal: ReturnType<typeof refusalOf>): string =>
  String(refusal?.renderPage('https://gw.example.com/', 'https://app.example/').body)
    .replace(/<[^>]*>/g, '')
    .replaceAll('&#39;', "'");

const problemsOf = (env: Env): readonly string[] => {
  try {
    readIdentityConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
};

const EMAILS = { LOGIN_ALLOWED_EMAILS: '*@example.com, Grace@Other.example' };
const GROUPS = { LOGIN_ALLOWED_GROUPS: 'staff,ops' };
const CLAIMS = { LOGIN_ALLOWED_CLAIMS: 'hd=example.com,hd=example.org,level=3,org.unit=it' };
const verified = (email: unknown, over: Claims = {}): Claims => ({
  email,
  email_verified: true,
  ...over,
});

describe('who may log in', () => {
  test.each<[string, Env, Claims, string | undefined]>([
    ['anybody without a policy', {}, {}, undefined],
    ['an address of the domain', EMAILS, verified('ada@example.com'), undefined],
    ['in another case', EMAILS, verified('ADA@Example.COM'), undefined],
    ['an address by name', EMAILS, verified('grace@other.example'), undefined],
    ['somebody else there', EMAILS, verified('ada@other.example'), 'EMAILS'],
    ['a domain that ends like it', EMAILS, verified('ada@evil-example.com'), 'EMAILS'],
    ['a domain below it', EMAILS, verified('ada@sub.example.com'), 'EMAILS'],
    ['a domain that begins like it', EMAILS, verified('ada@example.com.evil'), 'EMAILS'],
    ['two addresses in one', EMAILS, verified('ada@evil.example@example.com'), 'EMAILS'],
    ['a line more', EMAILS, verified('ada@example.com\n'), 'EMAILS'],
    [
      'the Kelvin sign for a k',
      { LOGIN_ALLOWED_EMAILS: '*@kk.example' },
      verified('a@\u212Ak.example'),
      'EMAILS',
    ],
    ['no address', EMAILS, {}, 'EMAILS'],
    ['an empty address', EMAILS, verified(''), 'EMAILS'],
    ['a list of addresses', EMAILS, verified(['ada@example.com']), 'EMAILS'],
    ['one that nobody verified', EMAILS, { email: 'ada@example.com' }, 'EMAILS'],
    [
      'one that is not verified',
      EMAILS,
      verified('ada@example.com', { email_verified: false }),
      'EMAILS',
    ],
    [
      'one that is verified in words',
      EMAILS,
      verified('ada@example.com', { email_verified: 'true' }),
      undefined,
    ],
    [
      'one with null for it',
      EMAILS,
      verified('ada@example.com', { email_verified: null }),
      'EMAILS',
    ],
    ['one that Entra verified', EMAILS, { email: 'ada@example.com', xms_edov: true }, undefined],
    [
      'an organization at Google',
      { ...GOOGLE, ...EMAILS },
      verified('ada@example.com', { hd: 'example.com' }),
      undefined,
    ],
    [
      'an address that somebody brought to Google',
      { ...GOOGLE, ...EMAILS },
      verified('ada@example.com'),
      'EMAILS',
    ],
    [
      'the same with an empty hd',
      { ...GOOGLE, ...EMAILS },
      verified('ada@example.com', { hd: '' }),
      'EMAILS',
    ],
    [
      'hd without a verified address',
      { ...GOOGLE, ...EMAILS },
      { email: 'ada@example.com', hd: 'example.com' },
      'EMAILS',
    ],
    [
      'Gmail',
      { ...GOOGLE, LOGIN_ALLOWED_EMAILS: 'ada@gmail.com' },
      verified('ada@gmail.com'),
      undefined,
    ],
    ['hd of another provider', EMAILS, { email: 'ada@example.com', hd: 'example.com' }, 'EMAILS'],
    ['one of the groups', GROUPS, { groups: ['guests', 'ops'] }, undefined],
    ['none of the groups', GROUPS, { groups: ['guests'] }, 'GROUPS'],
    ['a group in another case', GROUPS, { groups: ['Staff'] }, 'GROUPS'],
    ['no groups', GROUPS, {}, 'GROUPS'],
    ['an empty list', GROUPS, { groups: [] }, 'GROUPS'],
    ['a text that is the group', GROUPS, { groups: 'staff' }, 'GROUPS'],
    ['all claims', CLAIMS, { hd: 'example.org', level: 3, org: { unit: ['hr', 'it'] } }, undefined],
    ['a claim with another value', CLAIMS, { hd: 'evil', level: 3, org: { unit: 'it' } }, 'CLAIMS'],
    ['a claim that is not there', CLAIMS, { hd: 'example.com', level: 3 }, 'CLAIMS'],
    [
      'an object that looks like it',
      { LOGIN_ALLOWED_CLAIMS: 'a=[object Object]' },
      { a: {} },
      'CLAIMS',
    ],
    ['null for a value', { LOGIN_ALLOWED_CLAIMS: 'a=null' }, { a: null }, 'CLAIMS'],
    [
      'all lists',
      { ...EMAILS, ...GROUPS },
      verified('ada@example.com', { groups: ['ops'] }),
      undefined,
    ],
    [
      'one list of two',
      { ...EMAILS, ...GROUPS },
      verified('ada@example.com', { groups: [] }),
      'GROUPS',
    ],
    ['the other list of two', { ...EMAILS, ...GROUPS }, { groups: ['ops'] }, 'EMAILS'],
  ])('§13.3 %s', (_what, env, claims, setting) => {
    const refusal = refusalOf(env, claims);
    if (setting === undefined) return expect(refusal).toBeUndefined();
    expect(refusal?.forLog.startsWith(`LOGIN_ALLOWED_${setting} allows `)).toBe(true);
  });

  test('§13.3 the log says what was found, and the page who one is', () => {
    const refusal = refusalOf(EMAILS, verified('eve@evil.example'));
    expect(refusal?.forLog).toBe(
      'LOGIN_ALLOWED_EMAILS allows *@example.com, Grace@Other.example; the email of the user is "eve@evil.example".',
    );
    expect(readPage(refusal)).toContain(
      'You are logged in as eve@evil.example, who may not use this gateway.\nIf you have another account, use that one. Otherwise ask the administrator of this gateway for access.\n',
    );
    const unverified = refusalOf(EMAILS, { email: 'ada@example.com' });
    expect(readPage(unverified)).toContain('does not say that this e-mail address is yours');
    expect(refusalOf(GROUPS, { groups: ['guests'] })?.forLog).toBe(
      'LOGIN_ALLOWED_GROUPS allows staff, ops; the groups of the user (OIDC_GROUPS_CLAIM=groups) are ["guests"].',
    );
  });

  test.each([
    [{ email: 'a@b.c', preferred_username: 'ada', name: 'Ada' }, 'a@b.c'],
    [{ preferred_username: 'ada', name: 'Ada' }, 'ada'],
    [{ email: '', name: 'Ada' }, 'Ada'],
    [{ email: 7 }, 'user-1'],
  ])('§13.3 somebody is called as they know it: %j', (claims, who) => {
    expect(readPage(refusalOf(GROUPS, claims))).toContain(`logged in as ${who}, who`);
  });
});

describe('the page', () => {
  /** To another account, and back to the client. */
  const LINKS = [
    'https://gw.example.com/oauth/authorize?a=1&prompt=select_account',
    'https://app.example/callback?error=access_denied&state=s',
  ] as const;

  test('§13.3 it says who one is, and leads to another account and back to the client', () => {
    const page = refusalOf(GROUPS, { email: 'a@b.c' })?.renderPage(...LINKS);
    expect(page?.status).toBe(403);
    expect(page?.headers).toMatchObject({
      'Content-Type': 'text/html; charset=utf-8',
      'Cache-Control': 'no-store',
    });
    const html = String(page?.body);
    expect(html).toContain('<strong><bdi>a@b.c</bdi></strong>');
    expect(html).toContain(
      'href="https://gw.example.com/oauth/authorize?a=1&amp;prompt=select_account"',
    );
    expect(html).toContain('href="https://app.example/callback?error=access_denied&amp;state=s"');
    expect(html).toContain('Acme &lt;Tools&gt;');
  });

  test('§13.3 whatever a user is called is text, seen as it is', () => {
    const name = `<script>alert(1)</script>\u202e\u200b${'x'.repeat(300)}`;
    const html = String(refusalOf(GROUPS, { name })?.renderPage(...LINKS).body);
    expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;\ufffd\ufffdxxx');
    expect(html).not.toContain('<script>');
    expect(html).toContain('xxx…</bdi>');
  });
});

describe('the settings', () => {
  test('§13.3 without any of them nobody is refused', () => {
    expect(readIdentityConfig({})).toEqual({
      groupsClaim: 'groups',
      followsGroupsOverage: false,
      allowedEmails: [],
      allowedGroups: [],
      allowedClaims: [],
      exemptClients: [],
      emailAuthority: undefined,
    });
  });

  test('§13.3 they are read as they are written', () => {
    const config = readIdentityConfig({
      ...EMAILS,
      LOGIN_ALLOWED_GROUPS: '["CN=staff,OU=groups"]',
      LOGIN_ALLOWED_CLAIMS: 'hd=example.com, hd=a=b ,department=Research and Development',
      OIDC_GROUPS_CLAIM: 'https://example.com/groups',
      OIDC_GROUPS_OVERAGE: 'true',
    });
    expect(config).toMatchObject({
      groupsClaim: 'https://example.com/groups',
      followsGroupsOverage: true,
      allowedEmails: ['*@example.com', 'Grace@Other.example'],
      allowedGroups: ['CN=staff,OU=groups'],
      allowedClaims: [
        ['hd', 'example.com'],
        ['hd', 'a=b'],
        ['department', 'Research and Development'],
      ],
    });
  });

  test.each([{}, GOOGLE])('§13.3 a Config with all of them is complete: %j', (env) => {
    const config = loadConfig({ ...BROKER, ...EMAILS, ...GROUPS, ...CLAIMS, ...env });
    expect(() => checkConfig(config)).not.toThrow();
    const { oauth } = config;
    const broken = { ...config, oauth: { ...oauth, identity: { allowedClaims: [[]] } } };
    // @ts-expect-error a program without types may have left something out.
    expect(() => checkConfig(broken)).toThrow(ConfigError);
  });

  test.each([
    ['LOGIN_ALLOWED_EMAILS', 'example.com', 'each with one @'],
    ['LOGIN_ALLOWED_EMAILS', '*', 'each with one @'],
    ['LOGIN_ALLOWED_EMAILS', '*@example.com,', 'each with one @'],
    ['LOGIN_ALLOWED_EMAILS', 'a@b@c', 'each with one @'],
    ['LOGIN_ALLOWED_EMAILS', `*@${'x'.repeat(600)}`, 'each with one @'],
    ['LOGIN_ALLOWED_GROUPS', 'CN=staff,OU=groups', 'JSON array'],
    ['LOGIN_ALLOWED_CLAIMS', 'hd', 'name=value'],
    ['LOGIN_ALLOWED_CLAIMS', 'hd=', 'name=value'],
    ['LOGIN_ALLOWED_CLAIMS', '=example.com', 'name=value'],
    ['LOGIN_ALLOWED_CLAIMS', 'email=ada@example.com', 'LOGIN_ALLOWED_EMAILS'],
    ['OIDC_GROUPS_CLAIM', 'my groups', 'the name of a claim'],
    ['OIDC_GROUPS_OVERAGE', 'yes', 'true or false'],
  ])('§13.3 %s=%s is refused at start', (variable, text, allowed) => {
    const [problem, ...others] = problemsOf({ [variable]: text });
    expect(others).toEqual([]);
    expect(problem?.startsWith(`${variable}: `)).toBe(true);
    expect(problem).toContain(allowed);
  });
});
