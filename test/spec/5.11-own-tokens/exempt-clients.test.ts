// Who may log in (§13.3) holds for whoever brings a token of the provider, too, but for clients that operators exempt.
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { createAuditLog } from '../../support/gateway/audit-log.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { ask } from '../../support/oauth/operator-logins.ts';
import { MCP, startOwnTokens } from '../../support/oauth/own-tokens.ts';

type Claims = Readonly<Record<string, unknown>>;

async function start(env: Readonly<Record<string, string>>) {
  const own = closeAfterTest(
    await startOwnTokens({
      isReplicated: true,
      env: {
        OAUTH_ACCEPT_PROVIDER_TOKENS: 'true',
        OIDC_AUDIENCE: MCP,
        LOGIN_EXEMPT_CLIENTS: 'nightly,backup',
        ...env,
      },
    }),
  );
  const now = Math.floor(own.clock.now() / 1000);
  const sign = (claims: Claims) =>
    own.provider.issuer.sign({ aud: MCP, azp: 'app', iat: now, exp: now + 600, ...claims });
  return { ...own, sign, call: async (claims: Claims) => own.call(await sign(claims)) };
}

const ADA = { sub: 'ada', email: 'ada@example.com', email_verified: true };

test.each<[string, string, Claims, Claims]>([
  ['LOGIN_ALLOWED_EMAILS', '*@example.com', ADA, { ...ADA, email: 'ada@elsewhere.example' }],
  ['LOGIN_ALLOWED_EMAILS', '*@example.com', ADA, { ...ADA, email_verified: false }],
  ['LOGIN_ALLOWED_EMAILS', '*@example.com', ADA, { sub: 'ada' }],
  ['LOGIN_ALLOWED_GROUPS', 'staff', { groups: ['staff'] }, { groups: ['alumni'] }],
  ['LOGIN_ALLOWED_CLAIMS', 'hd=example.com', { hd: 'example.com' }, { hd: 'example.org' }],
])(
  '§13.3, §5.11 tokens of the provider: %s=%s lets in %j and not %j',
  async (name, value, right, wrong) => {
    const own = await start({ [name]: value });
    expect((await own.call(right)).status).toBe(200);
    const { status, json, text, headers } = await own.call(wrong);
    expect([status, json.error.data.reason]).toEqual([403, 'user_not_allowed']);
    // A login would not help, and whom the settings let in is for operators.
    expect(headers['www-authenticate']).toBeUndefined();
    expect(text).not.toContain(value);
    expect(own.gateway.log.some((line) => JSON.stringify(line).includes(name))).toBe(true);
    expect((await own.call(right)).status).toBe(200);
  },
);

test('§13.3, §5.11 tokens of the provider: groups are those of OIDC_GROUPS_CLAIM', async () => {
  const own = await start({ LOGIN_ALLOWED_GROUPS: 'staff', OIDC_GROUPS_CLAIM: 'realm.roles' });
  expect((await own.call({ realm: { roles: ['staff'] } })).status).toBe(200);
  expect((await own.call({ groups: ['staff'] })).status).toBe(403);
});

test.each(['azp', 'client_id', 'cid', 'appid'])(
  '§13.3, §5.11 tokens of the provider: a client of LOGIN_EXEMPT_CLIENTS gets in, as %s names it',
  async (claim) => {
    const own = await start({ LOGIN_ALLOWED_EMAILS: '*@example.com' });
    const of = (client: unknown) => own.call({ sub: 'service', azp: undefined, [claim]: client });
    expect((await of('nightly')).status).toBe(200);
    for (const other of ['Nightly', 'nightl', '', ['nightly'], undefined]) {
      expect((await of(other)).status).toBe(403);
    }
  },
);

test('§13.3, §5.11 tokens of the provider: the first claim that names a client counts', async () => {
  const own = await start({ LOGIN_ALLOWED_EMAILS: '*@example.com' });
  expect((await own.call({ sub: 'ada', azp: 'app', client_id: 'nightly' })).status).toBe(403);
});

test('§13.3, §22.1 tokens of the provider: they hold at the API of operators, too', async () => {
  const audit = await createAuditLog();
  const own = await start({
    ...audit.env,
    ADMIN_GROUPS: 'operators',
    ADMIN_CLIENTS: 'ops,backup',
    LOGIN_ALLOWED_GROUPS: 'staff',
  });
  const show = async (claims: Claims) =>
    (await ask(own.other, await own.sign({ sub: 'olga', ...claims }), '/grants')).status;
  expect(await show({ groups: ['operators'], azp: 'ops' })).toBe(403);
  expect(await show({ groups: ['operators', 'staff'], azp: 'ops' })).toBe(200);
  expect(await show({ groups: ['operators'], azp: 'backup' })).toBe(200);
});

test('§5.11 settings: LOGIN_EXEMPT_CLIENTS has no use where no token of the provider is accepted', () => {
  const env = {
    BASE_URL: 'https://mcp.example.com',
    OIDC_ISSUER: 'https://login.example.com',
    OAUTH_MODE: 'broker',
    OAUTH_CLIENT_ID: 'gateway',
    OAUTH_CLIENT_SECRET: 'secret-of-the-gateway',
    OAUTH_STATE_SECRET: 'a secret of more than thirty-two characters',
    LOGIN_EXEMPT_CLIENTS: 'nightly',
  };
  expect(() => loadConfig(env)).toThrow(/LOGIN_EXEMPT_CLIENTS has no effect without/);
});
