// Who gets in by an assertion (ID-JAG), what log and audit say of it, how it is counted, and which settings make no sense.
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { createAuditLog } from '../../support/gateway/audit-log.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { assertUser, bringAssertion, type Change, ID_JAG_ENV } from '../../support/oauth/id-jag.ts';
import { basic, fileOf, SECRET, withSecret } from '../../support/oauth/machine-clients.ts';
import { BASE, startOwnTokens } from '../../support/oauth/own-tokens.ts';

async function start(env: Readonly<Record<string, string>> = {}) {
  const file = await fileOf([withSecret('agent', { scopes: ['read'] }), withSecret('other')]);
  const own = closeAfterTest(
    await startOwnTokens({ env: { ...ID_JAG_ENV, ...env }, deps: { file } }),
  );
  const bring = async (change?: Change) =>
    bringAssertion(own.gateway, await assertUser(own.provider.issuer, own.clock.now(), change));
  return { ...own, bring };
}

test.each<[string, string, Change['claims'], Change['claims']]>([
  ['LOGIN_ALLOWED_EMAILS', '*@example.com', {}, { email: 'ada@elsewhere.example' }],
  ['LOGIN_ALLOWED_EMAILS', 'ada@example.com', {}, { email_verified: false }],
  ['LOGIN_ALLOWED_EMAILS', 'ada@example.com', {}, { email_verified: undefined }],
  ['LOGIN_ALLOWED_EMAILS', 'ada@example.com', {}, { email: undefined }],
  ['LOGIN_ALLOWED_GROUPS', 'staff', { groups: ['staff'] }, { groups: ['alumni'] }],
  ['LOGIN_ALLOWED_GROUPS', 'staff', { groups: 'staff' }, {}],
  ['LOGIN_ALLOWED_CLAIMS', 'hd=example.com', { hd: 'example.com' }, { hd: 'example.org' }],
])('§13.3, §13.7 ID-JAG: %s=%s lets in %j and not %j', async (name, value, right, wrong) => {
  const own = await start({ [name]: value });
  expect((await own.bring({ claims: { ...right } })).status).toBe(200);
  const { status, json, text } = await own.bring({ claims: { ...wrong } });
  expect([status, json.error]).toEqual([400, 'invalid_grant']);
  // Whom the settings let in is for operators.
  expect(text).not.toContain(value);
  expect(own.gateway.log.some((line) => JSON.stringify(line).includes(name))).toBe(true);
});

test('§13.2, §13.7 ID-JAG: groups come from the claim that OIDC_GROUPS_CLAIM names', async () => {
  const own = await start({
    OIDC_GROUPS_CLAIM: 'realm.roles',
    LOGIN_ALLOWED_GROUPS: 'staff',
  });
  expect((await own.bring({ claims: { realm: { roles: ['staff'] } } })).status).toBe(200);
  expect((await own.bring({ claims: { groups: ['staff'] } })).status).toBe(400);
});

test('§21.1, §13.7 ID-JAG: a login is a line, one that fails is a line with its reason, and neither has the assertion', async () => {
  const audit = await createAuditLog();
  const own = await start(audit.env);
  const now = own.clock.now();
  const right = await assertUser(own.provider.issuer, now);
  const wrong = await assertUser(own.provider.issuer, now, { claims: { aud: `${BASE}/` } });
  const { access_token: token } = (await bringAssertion(own.gateway, right)).json;
  await bringAssertion(own.gateway, wrong);
  const said = audit.lines().map(({ event, outcome, user, client, reason }) => ({
    event,
    outcome,
    user,
    client,
    reason,
  }));
  expect(said).toEqual([
    { event: 'login', outcome: 'success', user: 'user-1', client: 'agent', reason: undefined },
    {
      event: 'login',
      outcome: 'failure',
      user: undefined,
      client: 'agent',
      reason: 'unusable_assertion',
    },
  ]);
  const log = own.gateway.log.map((line) => JSON.stringify(line)).join('\n');
  expect(log).toContain(`"member":"aud"`);
  expect(log).toContain('Logged in.');
  for (const secret of [right, wrong, token, SECRET]) {
    expect(audit.text() + log).not.toContain(secret);
  }
});

test('§8, §13.7 ID-JAG: a client is counted as one that logs in as itself, and others go on', async () => {
  const own = await start({ OAUTH_CLIENT_CREDENTIALS_GRANT_RATE_LIMIT_MAX: '3' });
  const statuses: number[] = [];
  for (let at = 0; at < 5; at += 1) {
    statuses.push((await own.bring({ claims: { sub: `user-${at}` } })).status);
  }
  expect(statuses).toEqual([200, 200, 200, 429, 429]);
  const assertion = await assertUser(own.provider.issuer, own.clock.now(), {
    claims: { client_id: 'other' },
  });
  const other = await bringAssertion(own.gateway, assertion, {
    authorization: basic('other', SECRET),
  });
  expect(other.status).toBe(200);
});

const BROKER = {
  BASE_URL: 'https://mcp.example.com',
  OIDC_ISSUER: 'https://login.example.com',
  OAUTH_MODE: 'broker',
  OAUTH_CLIENT_ID: 'gateway',
  OAUTH_CLIENT_SECRET: 'secret-of-the-gateway',
  OAUTH_STATE_SECRET: 'a secret of more than thirty-two characters',
};

test.each<[string, Readonly<Record<string, string>>, RegExp]>([
  [
    'proxy mode',
    { OIDC_ISSUER: BROKER.OIDC_ISSUER, ID_JAG: 'true' },
    /ID_JAG is for the gateway's own tokens/,
  ],
  [
    'issuers without ID_JAG',
    { ...BROKER, ID_JAG_ISSUERS: 'https://a.example' },
    /ID_JAG_ISSUERS has no effect without ID_JAG=true/,
  ],
  [
    'an issuer without TLS',
    { ...BROKER, ID_JAG: 'true', ID_JAG_ISSUERS: 'http://a.example' },
    /ID_JAG_ISSUERS: .*https/,
  ],
  ['no URL', { ...BROKER, ID_JAG: 'true', ID_JAG_ISSUERS: 'okta' }, /ID_JAG_ISSUERS: .*https/],
  [
    'the gateway itself',
    { ...BROKER, ID_JAG: 'true', ID_JAG_ISSUERS: 'https://mcp.example.com/' },
    /ID_JAG_ISSUERS: .*is this gateway/,
  ],
  [
    '21 issuers',
    {
      ...BROKER,
      ID_JAG: 'true',
      ID_JAG_ISSUERS: Array.from({ length: 21 }, (_, at) => `https://${at}.example`).join(),
    },
    /ID_JAG_ISSUERS: .*at most 20/,
  ],
])('§13.7 ID-JAG settings: %s stops the start', (_what, env, message) => {
  expect(() => loadConfig(env)).toThrow(message);
});

test('§13.7 ID-JAG settings: it is off unless it is switched on, and then the provider is the one issuer', () => {
  const read = (env: Readonly<Record<string, string>>) => {
    const { oauth } = loadConfig(env);
    return oauth.mode === 'broker' ? oauth.idJag : undefined;
  };
  expect(read(BROKER)?.isEnabled).toBe(false);
  expect(read({ ...BROKER, ID_JAG: 'true' })).toEqual({
    isEnabled: true,
    issuers: [BROKER.OIDC_ISSUER],
  });
});
