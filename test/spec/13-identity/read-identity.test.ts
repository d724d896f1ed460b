import { beforeEach, describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { GatewayError } from '../../../src/errors/gateway-error.ts';
import { createProviderMetadata } from '../../../src/http/oauth-client/provider-metadata.ts';
import { createIdTokenVerifier } from '../../../src/logins/auth/id-token.ts';
import { createKeySet } from '../../../src/logins/auth/key-set.ts';
import type { EarlierIdentity } from '../../../src/logins/identity/identity.ts';
import { createReadIdentity } from '../../../src/logins/identity/read-identity.ts';
import { noMetrics } from '../../../src/telemetry/metrics/metrics.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { collectLog, type LogLine } from '../../support/gateway/log.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startIssuer } from '../../support/oauth/issuer.ts';
import { fetchAt, startAnsweringServer } from './provider-answers.ts';

type Claims = Readonly<Record<string, unknown>>;

const NOW = 1_800_000_000;
const CLIENT = 'gateway-client';
const ACCESS_TOKEN = 'opaque-access-token';
const clock = manualClock(NOW * 1000);
const issuer = useShared(() => startIssuer({ clock }));
const userinfo = useShared(startAnsweringServer);

interface Options {
  readonly env?: Readonly<Record<string, string>>;
  readonly named?: readonly string[];
}

let lines: readonly LogLine[];

/** As a gateway of these settings does it; what it logs is in `lines`. */
function open({ env = {}, named = [] }: Options = {}) {
  const collected = collectLog();
  lines = collected.lines;
  const deps = { fetch: fetchAt(userinfo), clock, log: collected.log, metrics: noMetrics };
  const { oauth } = loadConfig({
    BASE_URL: 'https://gw.example.com',
    OIDC_ISSUER: issuer.url,
    OAUTH_MODE: 'broker',
    OAUTH_CLIENT_ID: CLIENT,
    ...env,
  });
  if (oauth.mode !== 'broker') throw new Error('it is broker mode');
  const metadata = createProviderMetadata(deps, issuer.url);
  const keySet = createKeySet(deps, { url: undefined, metadata });
  keySet.start();
  const readIdentity = createReadIdentity(
    {
      oauth,
      fetch: deps.fetch,
      log: deps.log,
      servers: {
        listNamedClaims: () => named,
        hasConnections: () => false,
        connections: undefined,
      },
    },
    createIdTokenVerifier(clock, keySet, {
      issuer: issuer.url,
      clientId: CLIENT,
      baseUrl: 'https://gw.example.com',
      clockToleranceSeconds: 5,
    }),
    metadata,
  );
  return async (...asked: Parameters<typeof readIdentity>) => {
    const identity = await readIdentity(...asked);
    if (identity === undefined) throw new Error('The provider has ended the login');
    return identity;
  };
}

beforeEach(() => {
  userinfo.requests.length = 0;
  userinfo.answer = { body: { sub: 'user-1' } };
  issuer.document = { userinfo_endpoint: `${userinfo.url}/userinfo` };
});

const LOGIN = { nonce: 'n', earlier: undefined };
const COMPLETE = { email: 'ada@example.com', groups: ['staff'] };

const answerOf = async (claims: Claims = {}) => ({
  access_token: ACCESS_TOKEN,
  token_type: 'Bearer',
  id_token: await issuer.sign({ aud: CLIENT, iat: NOW, nonce: 'n', ...claims }),
});

const readLogin = async (claims: Claims, options?: Options) =>
  open(options)(await answerOf(claims), LOGIN);

async function errorOf(reading: Promise<unknown>) {
  const thrown = await reading.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(thrown instanceof GatewayError)) throw thrown ?? new Error('it was accepted');
  return { key: thrown.key, message: thrown.message, facts: thrown.failure.facts };
}

describe('a login', () => {
  test('§13.2 a complete ID token is enough', async () => {
    const identity = await readLogin({ ...COMPLETE, sid: 'session-1' });
    expect(identity).toMatchObject({
      user: { issuer: issuer.url, sub: 'user-1' },
      claims: { ...COMPLETE, iss: issuer.url, sub: 'user-1' },
      sid: 'session-1',
      userinfoClaims: [],
    });
    expect(userinfo.requests).toEqual([]);
  });

  test.each([
    ['email', { groups: [] }, {}],
    ['groups', { email: 'ada@example.com' }, {}],
    ['OIDC_GROUPS_CLAIM', COMPLETE, { env: { OIDC_GROUPS_CLAIM: 'roles' } }],
    ['email_verified', COMPLETE, { env: { LOGIN_ALLOWED_EMAILS: '*@example.com' } }],
    ['LOGIN_ALLOWED_CLAIMS', COMPLETE, { env: { LOGIN_ALLOWED_CLAIMS: 'hd=example.com' } }],
    ['a claim of a rule', COMPLETE, { named: ['department'] }],
    ['what every object inherits', COMPLETE, { named: ['constructor'] }],
  ] as const)('§13.2 userinfo is asked where the ID token lacks %s', async (_, claims, options) => {
    userinfo.answer = { body: { sub: 'user-1', department: 'it', email: 'other@example.com' } };
    const identity = await readLogin(claims, options);
    expect(userinfo.requests).toEqual([
      { path: '/userinfo', authorization: `Bearer ${ACCESS_TOKEN}`, body: '' },
    ]);
    expect(identity.claims.department).toBe('it');
    expect(identity.userinfoClaims).toContain('department');
    // The ID token has the last word.
    expect(identity.claims.email).toBe('email' in claims ? claims.email : 'other@example.com');
  });

  test('§13.4 the session at the provider is that of the ID token: userinfo, which nobody signed, names none', async () => {
    userinfo.answer = { body: { sub: 'user-1', email: 'ada@example.com', sid: 'of-another' } };
    expect((await readLogin({})).sid).toBeUndefined();
    expect((await readLogin({ sid: 'session-1' })).sid).toBe('session-1');
  });

  test('§13.2 an address that Entra calls verified needs no email_verified', async () => {
    await readLogin(
      { ...COMPLETE, xms_edov: true },
      { env: { LOGIN_ALLOWED_EMAILS: '*@example.com' } },
    );
    expect(userinfo.requests).toEqual([]);
  });

  test('§13.2 of an address that userinfo has, userinfo says whether it is verified', async () => {
    userinfo.answer = {
      body: { sub: 'user-1', email: 'ada@example.com', email_verified: false, hd: 'one.example' },
    };
    const said = { groups: [], email_verified: true, hd: 'two.example' };
    expect((await readLogin(said)).claims).toMatchObject({
      email: 'ada@example.com',
      email_verified: false,
      hd: 'one.example',
    });
  });

  test('§13.2 of an address that userinfo alone has, the ID token says nothing', async () => {
    userinfo.answer = { body: { sub: 'user-1', email: 'bob@example.org' } };
    const { claims } = await readLogin({ email_verified: true, xms_edov: true, hd: 'example.org' });
    expect(claims.email).toBe('bob@example.org');
    for (const name of ['email_verified', 'xms_edov', 'hd'])
      expect(claims).not.toHaveProperty(name);
  });

  test('§13.2 of an address that the ID token has, userinfo says nothing where it has another', async () => {
    userinfo.answer = {
      body: { sub: 'user-1', email: 'bob@example.org', email_verified: true, hd: 'example.org' },
    };
    const { claims } = await readLogin({ email: 'ada@example.com' });
    expect(claims.email).toBe('ada@example.com');
    for (const name of ['email_verified', 'hd']) expect(claims).not.toHaveProperty(name);
  });

  test('§13.2 a provider without the endpoint is not asked', async () => {
    issuer.document = {};
    const { claims } = await readLogin({}, { named: ['department'] });
    expect(claims.sub).toBe('user-1');
    expect(userinfo.requests).toEqual([]);
  });

  test.each([{ sub: 'user-2' }, {}, { sub: null }, { sub: ['user-1'] }])(
    '§13.2 userinfo of somebody else ends the login: %j',
    async (body) => {
      userinfo.answer = { body };
      expect(await errorOf(readLogin({}))).toMatchObject({ key: 'unusable_identity' });
    },
  );

  const FAILURES = [
    ['hang up', 'hang up', 'upstream_failed'],
    ['500', { status: 500 }, 'upstream_failed'],
    ['429', { status: 429 }, 'upstream_failed'],
    ['302', { status: 302 }, 'upstream_failed'],
    ['401', { status: 401 }, 'unusable_identity'],
    ['403', { status: 403 }, 'unusable_identity'],
    ['a signed JWT', { type: 'application/jwt', body: 'a.b.c' }, 'unusable_identity'],
    ['a page', { type: 'text/html', body: '<p>' }, 'unusable_identity'],
    ['no JSON', { body: '{' }, 'unusable_identity'],
    ['a list', { body: [] }, 'unusable_identity'],
    ['too much', { body: { sub: 'user-1', fill: 'x'.repeat(300_000) } }, 'upstream_failed'],
  ] as const;

  test.each(FAILURES)(
    '§13.2 userinfo that fails ends a login where an operator named a claim: %s',
    async (_, answer, key) => {
      userinfo.answer = answer;
      expect((await errorOf(readLogin({}, { named: ['department'] }))).key).toBe(key);
    },
  );

  test.each(FAILURES)(
    '§13.2 userinfo that fails is logged once where nobody named a claim: %s',
    async (_, answer) => {
      userinfo.answer = answer;
      const read = open();
      expect((await read(await answerOf(), LOGIN)).claims.sub).toBe('user-1');
      expect((await read(await answerOf(), LOGIN)).claims.sub).toBe('user-1');
      const told = lines.filter(({ msg }) => msg.includes('userinfo endpoint'));
      expect(told).toHaveLength(1);
      expect(told[0]?.level).toBe('warn');
    },
  );

  test('§13.2 an answer without an ID token is no login', async () => {
    const error = await errorOf(open()({ access_token: ACCESS_TOKEN }, LOGIN));
    expect(error).toMatchObject({ key: 'unusable_id_token', facts: { member: 'id_token' } });
  });

  test('§13.2 the nonce of another login is refused', async () => {
    const error = await errorOf(open()(await answerOf({ nonce: 'other' }), LOGIN));
    expect(error.key).toBe('invalid_grant');
  });

  test('§13.2 16 KiB of claims are kept, and more are refused by size and name', async () => {
    const { claims } = await readLogin({ ...COMPLETE, fill: '' });
    const rest = 16_384 - Buffer.byteLength(JSON.stringify(claims));
    await readLogin({ ...COMPLETE, fill: 'x'.repeat(rest) });
    const error = await errorOf(readLogin({ ...COMPLETE, fill: 'x'.repeat(rest + 1) }));
    expect(error.key).toBe('unusable_identity');
    expect(error.message).toContain('have 16385 bytes; at most 16384 are kept');
    expect(error.message).toContain(`The largest are "fill" (${rest + 3} bytes), `);
  });

  test('§13.2 claims that nest too deep are refused', async () => {
    let deep: unknown = 1;
    for (let level = 0; level < 40; level += 1) deep = [deep];
    const error = await errorOf(readLogin({ ...COMPLETE, deep }));
    expect(error.message).toContain('The claim "deep" has more than 32 levels.');
  });
});

describe('groups', () => {
  const ROLES = { realm_access: { roles: ['admin'] } };
  const AT = 'OIDC_GROUPS_CLAIM';

  test.each([
    ['a list', 'groups', { groups: ['a', 'b'] }, ['a', 'b']],
    ['one text', 'groups', { groups: 'a' }, ['a']],
    ['a path', 'realm_access.roles', ROLES, ['admin']],
    ['a name with dots before a path', 'a.b', { 'a.b': ['whole'], a: { b: ['path'] } }, ['whole']],
    ['a URL', 'https://example.com/groups', { 'https://example.com/groups': ['a'] }, ['a']],
    ['a name with a dot within a path', 'x.my.app', { x: { 'my.app': ['a'] } }, ['a']],
    ['none of that name beside groups', 'roles', { groups: ['a'] }, undefined],
    ['a number', 'groups', { groups: 7 }, undefined],
    ['a list of other things', 'groups', { groups: ['a', 7] }, undefined],
    ['what every object inherits', 'constructor.name', {}, undefined],
    ['a member of a list', 'roles.length', { roles: ['a'] }, undefined],
  ] as const)('§13.2 %s', async (_, claim, claims, groups) => {
    const identity = await readLogin({ email: 'a@b.c', ...claims }, { env: { [AT]: claim } });
    expect(identity.claims.groups).toEqual(groups);
  });

  test('§13.2 a claim that says no groups is told once', async () => {
    const read = open();
    await read(await answerOf({ ...COMPLETE, groups: 7 }), LOGIN);
    await read(await answerOf({ ...COMPLETE, groups: 7 }), LOGIN);
    expect(lines.filter(({ msg }) => msg.includes('OIDC_GROUPS_CLAIM'))).toHaveLength(1);
  });
});

describe("Entra's overage", () => {
  const FOLLOW = { env: { OIDC_GROUPS_OVERAGE: 'true' } };
  const overage = (endpoint: unknown) => ({
    email: 'ada@example.com',
    _claim_names: { groups: 'src1' },
    _claim_sources: { src1: { endpoint, access_token: 'secret' } },
  });
  const GRAPH = 'https://graph.microsoft.com/v1.0/users/1/getMemberObjects';

  test.each([
    [GRAPH, '/graph.microsoft.com/v1.0/users/1/getMemberObjects'],
    [
      'https://graph.microsoft.us/v1.0/users/1/getMemberObjects',
      '/graph.microsoft.us/v1.0/users/1/getMemberObjects',
    ],
    [
      'https://graph.windows.net/tenant/users/1/getMemberObjects',
      '/graph.microsoft.com/v1.0/users/1/getMemberObjects',
    ],
  ])('§13.2 it is followed to Microsoft Graph: %s', async (endpoint, path) => {
    userinfo.answer = { body: { value: ['g1', 'g2'] } };
    const { claims } = await readLogin(overage(endpoint), FOLLOW);
    expect(claims.groups).toEqual(['g1', 'g2']);
    expect(claims).not.toHaveProperty('_claim_sources');
    expect(userinfo.requests).toEqual([
      { path, authorization: `Bearer ${ACCESS_TOKEN}`, body: '{"securityEnabledOnly":false}' },
    ]);
  });

  test.each([
    'https://graph.microsoft.com.evil.example/v1.0/users/1/getMemberObjects',
    'https://evil.example/graph.microsoft.com',
    'http://graph.microsoft.com/v1.0/users/1/getMemberObjects',
    'https://graph.microsoft.com:8443/v1.0/users/1/getMemberObjects',
    'https://user@graph.microsoft.com/v1.0/users/1/getMemberObjects',
    'https://graph.windows.net/tenant/users/1/other',
    'graph.microsoft.com',
  ])('§13.2 the access token goes nowhere else: %s', async (endpoint) => {
    const error = await errorOf(readLogin(overage(endpoint), FOLLOW));
    expect(error.key).toBe('unusable_identity');
    expect(userinfo.requests).toEqual([]);
  });

  test.each([
    [{ status: 403 }, 'unusable_identity'],
    [{ body: { value: 'g1' } }, 'unusable_identity'],
    [{ status: 503 }, 'upstream_failed'],
    ['hang up', 'upstream_failed'],
  ] as const)('§13.2 a login whose groups cannot be read fails: %j', async (answer, key) => {
    userinfo.answer = answer;
    expect((await errorOf(readLogin(overage(GRAPH), FOLLOW))).key).toBe(key);
  });

  test('§13.2 unless it is allowed nobody is asked, and the log says once what to do', async () => {
    const read = open();
    await read(await answerOf(overage(GRAPH)), LOGIN);
    const { claims } = await read(await answerOf(overage(GRAPH)), LOGIN);
    expect(claims).not.toHaveProperty('groups');
    expect(userinfo.requests).toEqual([]);
    const told = lines.filter(({ msg }) => msg.includes('OIDC_GROUPS_OVERAGE=true'));
    expect(told).toHaveLength(1);
  });
});

describe('a renewal', () => {
  const earlierOf = (over: Partial<EarlierIdentity> = {}): EarlierIdentity => ({
    user: { issuer: issuer.url, sub: 'user-1' },
    claims: { iss: issuer.url, sub: 'user-1', ...COMPLETE, department: 'it' },
    ...over,
  });
  const WITHOUT_ID_TOKEN = { access_token: ACCESS_TOKEN };
  const renewalOf = (earlier: EarlierIdentity) => ({ nonce: undefined, earlier });

  test('§13.2 what the ID token no longer says is gone', async () => {
    const read = open();
    const { claims } = await read(
      await answerOf({ nonce: undefined, email: 'ada@example.org', groups: [] }),
      renewalOf(earlierOf()),
    );
    expect(claims).toMatchObject({ email: 'ada@example.org', groups: [] });
    expect(claims).not.toHaveProperty('department');
  });

  test('§13.2 without an ID token claims keep their values, which is logged once', async () => {
    issuer.document = {};
    const read = open();
    for (const _ of [1, 2]) {
      const { claims, user } = await read(WITHOUT_ID_TOKEN, renewalOf(earlierOf()));
      expect(claims).toEqual(earlierOf().claims);
      expect(user).toEqual(earlierOf().user);
    }
    const told = lines.filter(({ msg }) => msg.includes('keep the values of the login'));
    expect(told).toHaveLength(1);
    expect(told[0]?.claims).toEqual(['groups', 'email']);
  });

  test('§13.2 what userinfo gave, and no longer gives, is gone; what the ID token gave stays', async () => {
    userinfo.answer = { body: { sub: 'user-1', groups: ['other'] } };
    const earlier = earlierOf({ userinfoClaims: ['groups', 'department'] });
    const { claims, userinfoClaims } = await open()(WITHOUT_ID_TOKEN, renewalOf(earlier));
    expect(claims).toMatchObject({ groups: ['other'], email: 'ada@example.com' });
    expect(claims).not.toHaveProperty('department');
    expect(userinfoClaims).toContain('groups');
  });

  test('§13.2 what userinfo gave stays while it is not asked', async () => {
    const earlier = earlierOf({ userinfoClaims: ['department'] });
    const answer = await answerOf({ nonce: undefined, ...COMPLETE });
    const { claims, userinfoClaims } = await open()(answer, renewalOf(earlier));
    expect(claims.department).toBe('it');
    expect(userinfoClaims).toEqual(['department']);
  });

  const SAID = { email_verified: true, xms_edov: 1, hd: 'example.com' };
  const OTHER = 'ada@other.example';

  /** What was said of the address before, and from where; then a renewal. */
  test.each<
    [
      what: string,
      earlier: Partial<EarlierIdentity>,
      idToken: Claims | undefined,
      userinfo: Claims | undefined,
    ]
  >([
    [
      'the ID token has another address, and userinfo, which said it, cannot be asked',
      { userinfoClaims: ['email_verified', 'xms_edov', 'hd'] },
      { ...COMPLETE, email: OTHER },
      undefined,
    ],
    ['userinfo has another address, and no ID token comes', {}, undefined, { email: OTHER }],
    ['userinfo has another address, and the ID token none', {}, SAID, { email: OTHER }],
  ])(
    '§13.2 what was said of an address is not kept for another: %s',
    async (_what, over, idToken, said) => {
      issuer.document = said === undefined ? {} : issuer.document;
      userinfo.answer = { body: { sub: 'user-1', ...said } };
      const earlier = earlierOf({
        claims: { iss: issuer.url, sub: 'user-1', ...COMPLETE, ...SAID },
        ...over,
      });
      const answer =
        idToken === undefined ? WITHOUT_ID_TOKEN : await answerOf({ nonce: undefined, ...idToken });
      const { claims } = await open()(answer, renewalOf(earlier));
      expect(claims.email).toBe(OTHER);
      for (const name of Object.keys(SAID)) expect(claims).not.toHaveProperty(name);
    },
  );

  test('§13.2 what an answer without an address says is not said of the address that is kept', async () => {
    issuer.document = {};
    const mine = { email: 'ada@example.com', email_verified: false };
    const earlier = earlierOf({
      claims: { sub: 'user-1', groups: [], ...mine },
      userinfoClaims: ['email'],
    });
    const answer = await answerOf({ nonce: undefined, groups: [], ...SAID });
    const { claims } = await open()(answer, renewalOf(earlier));
    expect(claims).toMatchObject(mine);
    expect(claims).not.toHaveProperty('hd');
    expect(claims).not.toHaveProperty('xms_edov');
  });

  test('§13.2 what was said of an address stays while the address does', async () => {
    issuer.document = {};
    const claims = { sub: 'user-1', ...COMPLETE, ...SAID };
    const of = earlierOf({ claims, userinfoClaims: ['email_verified', 'xms_edov', 'hd'] });
    const answer = await answerOf({ nonce: undefined, ...COMPLETE });
    expect((await open()(answer, renewalOf(of))).claims).toMatchObject(claims);
    expect((await open()(WITHOUT_ID_TOKEN, renewalOf(of))).claims).toMatchObject(claims);
  });

  test('§13.2 groups of a path are found anew in the claims that stay', async () => {
    issuer.document = {};
    const roles = { realm_access: { roles: ['admin'] }, groups: ['admin'] };
    const earlier = earlierOf({ claims: { sub: 'user-1', ...roles } });
    const read = open({ env: { OIDC_GROUPS_CLAIM: 'realm_access.roles' } });
    expect((await read(WITHOUT_ID_TOKEN, renewalOf(earlier))).claims).toMatchObject(roles);
    const answer = await answerOf({ nonce: undefined, groups: ['root'] });
    expect((await read(answer, renewalOf(earlier))).claims).not.toHaveProperty('groups');
  });

  test('§13.2 an ID token or userinfo of somebody else, and another issuer, are refused', async () => {
    const read = open();
    const another = await answerOf({ ...COMPLETE, sub: 'user-2' });
    expect((await errorOf(read(another, renewalOf(earlierOf())))).key).toBe('unusable_id_token');
    userinfo.answer = { body: { sub: 'user-2' } };
    const reading = read(WITHOUT_ID_TOKEN, renewalOf(earlierOf()));
    expect((await errorOf(reading)).key).toBe('unusable_identity');
    const moved = earlierOf({ user: { issuer: 'https://old.example', sub: 'user-1' } });
    const movedReading = read(WITHOUT_ID_TOKEN, renewalOf(moved));
    expect((await errorOf(movedReading)).key).toBe('unusable_id_token');
  });
});
